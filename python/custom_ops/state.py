"""The state that a linear attention layer carries from call to call."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from . import _state_file, functional
from ._fake import MOST, check_range
from ._state_rows import NAME, Layout, Storage, Tensors, error

Rows = Sequence[int] | Tensor | None


def _whole(number) -> bool:
    try:
        operator.index(number)
    except TypeError:
        return False
    return not isinstance(number, bool)


class LinearAttentionState:
    """Convolution and recurrent state of one linear attention layer, for a batch of sequences or the slots of a serving engine.

    A row is one sequence: its last K - 1 inputs of the convolution, its recurrent state, and how many tokens are in them. A row of 0
    tokens is zeros, so the first call of a sequence never sees what a row held before: `reset` a row before it gets a new sequence.

    The recurrence keeps no past: a row goes back to 0 tokens or to its snapshot, nowhere else (`erase`, `restore`).

    Args:
        attn_type:        "gated_delta_rule" | "kda" | "short_conv".
        num_k_heads, num_v_heads, head_k_dim, head_v_dim: as of custom_ops.fused_linear_attention; short_conv: 1, 1, H, H.
        conv_kernel_size: K, the taps of the convolution, 1 to 8.
        batch:            rows.
        dtype:            of the layer's activations, and so of conv_state; recurrent_state is float32 always.
    Attributes:
        conv_state:      [batch, C, K - 1]  dtype.
        recurrent_state: [batch, Hv, dk, dv]  float32; None of short_conv.
        lengths:         [batch]  int64, on the same device: tokens in each row, those of padding included.
    Their storage never moves: graphs that captured it stay valid through every method.

    Example:
        >>> import torch, custom_ops
        >>> state = custom_ops.LinearAttentionState("short_conv", head_k_dim=8, head_v_dim=8, conv_kernel_size=3, batch=2)
        >>> layer = custom_ops.nn.ShortConv(8, 3)
        >>> prompt, unused = layer(torch.randn(2, 5, 8), state), state.snapshot()
        >>> token = layer(torch.randn(2, 1, 8), state)
        >>> state.lengths.tolist(), state.erase(5), state.lengths.tolist()
        ([6, 6], None, [5, 5])
    """

    def __init__(self, attn_type: str, *, num_k_heads: int = 1, num_v_heads: int = 1, head_k_dim: int, head_v_dim: int,
                 conv_kernel_size: int, batch: int = 1, dtype: torch.dtype = torch.float32, device=None):
        layout = Layout(attn_type, num_k_heads, num_v_heads, head_k_dim, head_v_dim, conv_kernel_size, dtype)
        check_range(NAME, "batch", batch, 1, MOST)
        self._set(layout, Storage(layout.new(batch, device)), 0, batch)

    def _set(self, layout: Layout, storage: Storage, first: int, batch: int) -> LinearAttentionState:
        self.layout, self._storage, self._first, self.batch = layout, storage, first, batch
        with torch.inference_mode(False):
            storage.leave_inference_mode()
            self._live = storage.live.narrow(first, batch)
        self.conv_state, self.recurrent_state, self.lengths = self._live.conv, self._live.recurrent, self._live.lengths
        return self

    def __getstate__(self):
        return self.layout, self._storage, self._first, self.batch

    def __setstate__(self, state):  # its tensors are views of the storage again
        self._set(*state)

    @property
    def device(self) -> torch.device:
        return self.conv_state.device

    def __repr__(self) -> str:
        sizes = [list(tensor.shape) for tensor in (self.conv_state, self.recurrent_state) if tensor is not None]
        return f"{NAME}({self.layout.attn_type}, {' and '.join(map(str, sizes))}, {self.layout.dtype}, lengths={self.lengths.tolist()})"

    # --- calls

    def attend(self, qkv: Tensor, gate: Tensor, beta: Tensor, conv_weight: Tensor, conv_bias: Tensor | None = None, *,
               cu_seqlens: Tensor | None = None, state_indices: Tensor | None = None, has_initial_state: Tensor | None = None,
               token_major: bool = False, **options) -> Tensor:
        """custom_ops.fused_linear_attention from and into this state; counts the tokens. Row i of the state is slot i.

        options: use_qk_l2norm, gate_fold, gate_coef, gate_bias. Raises what the operator raises, and has then changed nothing."""
        layout = self.layout
        out = functional.fused_linear_attention(
            qkv, gate, beta, conv_weight, conv_bias, self.conv_state, self.recurrent_state, attn_type=layout.attn_type,
            num_k_heads=layout.num_k_heads, num_v_heads=layout.num_v_heads, head_k_dim=layout.head_k_dim, head_v_dim=layout.head_v_dim,
            cu_seqlens=cu_seqlens, state_indices=state_indices, has_initial_state=has_initial_state, token_major=token_major, **options)
        self._count(out.shape[1] if cu_seqlens is None else cu_seqlens.diff().to(torch.int64), state_indices, has_initial_state)
        return out

    def _count(self, tokens: int | Tensor, slots: Tensor | None, continues: Tensor | None) -> None:
        if slots is None:
            if continues is not None:
                self.lengths.mul_(continues)
            self.lengths.add_(tokens)
            return
        live = (slots >= 0) & (slots < self.batch)  # the NPU refuses none
        slots = slots.clamp(0, self.batch - 1).to(torch.int64)
        change = torch.as_tensor(tokens, device=slots.device).expand(slots.shape)
        if continues is not None:
            change = change - torch.where(continues, 0, self.lengths[slots])
        self.lengths.index_add_(0, slots, torch.where(live, change, 0))

    # --- going back

    def reset(self, rows: Rows = None) -> None:
        """Rows (default: all) become new sequences: 0 tokens, zeros, no snapshot."""
        index = self._index(rows)
        for tensor in self._live.each():
            tensor.index_fill_(0, index, 0)
        self._forget_snapshot(index)

    def snapshot(self, rows: Rows = None) -> None:
        """Keeps a copy of the rows (default: all) as they are: the end of a shared prefix, or the state before a draft is verified.
        One per row; the next replaces it."""
        self._storage.make_kept()
        index = self._index(rows)
        self._kept.put(index, self._live.select(index))

    def snapshot_lengths(self) -> list[int | None]:
        """Tokens in the snapshot of each row; None where there is none."""
        if self._kept is None:
            return [None] * self.batch
        return [None if length < 0 else length for length in self._kept.lengths.tolist()]

    def restore(self, rows: Rows = None) -> None:
        """Rows (default: all) are as at their snapshot again, which stays. RuntimeError where one has none; nothing is changed then."""
        index = self._index(rows)
        kept = self.snapshot_lengths()
        for row in index.tolist():
            if kept[row] is None:
                raise error(f"row {row} has no snapshot")
        self._live.put(index, self._kept.select(index))

    def erase(self, begin: int, end: int | None = None, rows: Rows = None) -> None:
        """Takes tokens begin .. end - 1 (default: to the last) out of the rows (default: all).

        Possible is what leaves 0 tokens, those of the snapshot, or all. Anything else raises RuntimeError with the reason: a recurrent
        state holds the sum of its tokens, not each of them. Every row is checked before one is changed.
        """
        if not _whole(begin) or not (end is None or _whole(end)):
            raise error(f"erase takes numbers of tokens, got {begin!r} and {end!r}")
        index = self._index(rows)
        kept, lengths = self.snapshot_lengths(), self.lengths.tolist()
        zero, back = [], []
        for row in index.tolist():
            length, last = lengths[row], lengths[row] if end is None else end
            if not 0 <= begin <= last <= length:
                raise error(f"tokens {begin} to {last} cannot be erased, row {row} has {length}")
            if begin == last:
                continue
            if last < length:
                raise error(f"tokens {begin} to {last} of {length} in row {row} cannot be erased from the middle: a recurrent state holds "
                             f"the sum of its tokens; erase to the end and run tokens {last} to {length} again")
            if begin == 0:
                zero.append(row)
            elif begin == kept[row]:
                back.append(row)
            else:
                points = "0 tokens" if kept[row] is None else f"0 tokens or to its snapshot of {kept[row]}"
                raise error(f"row {row} of {length} tokens cannot go back to {begin}, only to {points}")
        if zero:
            self.reset(zero)
        if back:
            self.restore(back)

    # --- rows

    def view(self, first: int = 0, rows: int | None = None) -> LinearAttentionState:
        """Rows first .. first + rows - 1 (default: all) as a state on the same storage, snapshots included: what one writes the other
        sees. So a prefill and a decode module share a state, or a prompt is read into one row of a running batch."""
        if not _whole(first) or not (rows is None or _whole(rows)):
            raise error(f"view takes a row and a number of rows, got {first!r} and {rows!r}")
        rows = self.batch - first if rows is None else rows
        if first < 0 or rows < 1 or first + rows > self.batch:
            raise error(f"view of rows {first} to {first + rows} of {self.batch}")
        return object.__new__(LinearAttentionState)._set(self.layout, self._storage, self._first + first, rows)

    def select(self, rows: Rows = None) -> LinearAttentionState:
        """A copy of the rows (default: all) in this order, each as often as it is named; of the snapshots too."""
        index = self._index(rows, repeated=True)
        if not len(index):
            raise error("select takes at least one row")
        storage = Storage(self._live.select(index))
        if self._kept is not None:
            storage.make_kept().put(torch.arange(len(index), device=self.device), self._kept.select(index))
        return object.__new__(LinearAttentionState)._set(self.layout, storage, 0, len(index))

    clone = select

    def reorder(self, rows: Sequence[int] | Tensor) -> None:
        """Row i becomes what row rows[i] was (beam search), in place; the snapshots too. As many rows as there are."""
        index = self._index(rows, repeated=True)
        if len(index) != self.batch:
            raise error(f"reorder takes {self.batch} rows, got {len(index)}; select gives a state of another size")
        everything = self._index(None)
        for tensors in (self._live, self._kept):
            if tensors is not None:
                tensors.put(everything, tensors.select(index))

    def copy_from(self, other: LinearAttentionState, source: Rows = None, target: Rows = None) -> None:
        """Rows `target` of this state become those `source` of the other (default: all), without their snapshots: a cached prefix goes
        into the row of a request."""
        if other.layout != self.layout:
            raise error(f"copy_from takes a state like {self.layout}, got {other.layout}")
        source, target = other._index(source, repeated=True), self._index(target)
        if len(source) != len(target):
            raise error(f"copy_from: {len(source)} rows do not go into {len(target)}")
        self._live.put(target, other._live.select(source).to(self.device))
        self._forget_snapshot(target)

    # --- files

    def save(self, path: str | os.PathLike, tag: str = "") -> None:
        """Writes all rows and their lengths; the file appears complete or not at all. Takes a snapshot: what is written is a prefix to
        go back to.

        tag: compared when the file is read, for instance the model and the layer: every layer's state has the same shape."""
        _state_file.write(path, tag, self.layout, self._live)
        self.snapshot()

    def load(self, path: str | os.PathLike, tag: str = "") -> None:
        """Takes all rows from a file of `save`, and a snapshot of them. RuntimeError where tag, layout, dtype or the number of rows differ
        from the file's; nothing is changed then."""
        layout, tensors = _state_file.read(path, tag)
        if layout != self.layout:
            raise error(f"{path} is a state like {layout}, this is one like {self.layout}")
        if len(tensors.lengths) != self.batch:
            raise error(f"{path} has {len(tensors.lengths)} rows, this state {self.batch}")
        self._live.put(self._index(None), tensors.to(self.device))
        self.snapshot()

    @classmethod
    def from_file(cls, path: str | os.PathLike, tag: str = "", device=None) -> LinearAttentionState:
        """A state of the file's layout and rows, with its content; otherwise as load."""
        layout, tensors = _state_file.read(path, tag)
        state = object.__new__(cls)._set(layout, Storage(tensors.to(device or "cpu")), 0, len(tensors.lengths))
        state.snapshot()
        return state

    # --- Hugging Face

    def export_hf(self) -> tuple[Tensor, Tensor | None]:
        """(conv_states [batch, C, K], recurrent_states [batch, Hv, dk, dv] or None) as transformers' caches hold them: K inputs of the
        convolution, the first of which is never read and 0 here. Copies; hand them to update_conv_state and update_recurrent_state of a
        Cache that is empty there."""
        conv = torch.nn.functional.pad(self.conv_state, (1, 0))
        return conv, None if self.recurrent_state is None else self.recurrent_state.clone()

    def import_hf(self, conv_states: Tensor, recurrent_states: Tensor | None = None, *, tokens: int | Sequence[int]) -> None:
        """Takes all rows from what transformers' caches hold: Cache.get_conv_state and get_recurrent_state of a layer.

        tokens: how many are in them, of all rows or of each; the cache of a linear layer does not count them. Values are converted to
        the dtypes here. Drops the snapshots. RuntimeError where a shape differs; nothing is changed then.
        """
        want = (self.batch, self.conv_state.shape[1], self.layout.conv_kernel_size)
        if tuple(conv_states.shape) != want:
            raise error(f"conv_states must be [batch, C, K] = {list(want)}, got {list(conv_states.shape)}")
        if (recurrent_states is None) != (self.recurrent_state is None):
            raise error(f"{self.layout.attn_type} {'needs' if recurrent_states is None else 'has no'} recurrent_states")
        if recurrent_states is not None and recurrent_states.shape != self.recurrent_state.shape:
            raise error(f"recurrent_states must be [batch, Hv, dk, dv] = {list(self.recurrent_state.shape)}, "
                         f"got {list(recurrent_states.shape)}")
        counts = [tokens] * self.batch if isinstance(tokens, int) else tokens.tolist() if isinstance(tokens, Tensor) else list(tokens)
        if len(counts) != self.batch or not all(_whole(count) and count >= 0 for count in counts):
            raise error(f"tokens must be {self.batch} whole numbers >= 0, got {counts}")
        self.conv_state.copy_(conv_states[..., 1:])
        if recurrent_states is not None:
            self.recurrent_state.copy_(recurrent_states)
        self.lengths.copy_(torch.tensor(counts))
        self._forget_snapshot(self._index(None))

    # ---

    @property
    def _kept(self) -> Tensors | None:
        kept = self._storage.kept
        return kept if kept is None else kept.narrow(self._first, self.batch)

    def _forget_snapshot(self, index: Tensor) -> None:
        if self._kept is not None:
            self._kept.lengths.index_fill_(0, index, -1)

    def _index(self, rows: Rows, repeated: bool = False) -> Tensor:
        """[n] int64 on the device; numbers of rows that are given on the host are checked."""
        if rows is None:
            return torch.arange(self.batch, device=self.device)
        numbers = rows.tolist() if isinstance(rows, Tensor) else rows
        if not isinstance(numbers, Iterable) or not all(map(_whole, numbers := list(numbers))):
            raise error(f"rows must be a sequence of numbers of rows, got {numbers}")
        if any(not 0 <= row < self.batch for row in numbers):
            raise error(f"rows must be 0 to {self.batch - 1}, got {numbers}")
        if not repeated and len(set(numbers)) != len(numbers):
            raise error(f"rows must differ, got {numbers}")
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)
