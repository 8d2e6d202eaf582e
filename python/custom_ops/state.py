"""The state that a linear attention layer carries from call to call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from . import functional
from .ops._attn_types import ATTN_TYPES, MAX_TAPS, AttnType, Heads

_NAME = "LinearAttentionState"
_FILE_FORMAT = "custom_ops.LinearAttentionState 1"
Rows = Sequence[int] | Tensor | None


@dataclass(frozen=True)
class _Layout:
    """What a row of a state looks like: two states of one layout can take each other's rows."""

    attn_type: str
    num_k_heads: int
    num_v_heads: int
    head_k_dim: int
    head_v_dim: int
    conv_kernel_size: int
    dtype: torch.dtype  # of the convolution's inputs

    @property
    def kind(self) -> AttnType:
        return ATTN_TYPES[self.attn_type]

    def conv_sizes(self) -> tuple[int, int]:
        heads = Heads(self.num_k_heads, self.num_v_heads, self.head_k_dim, self.head_v_dim)
        return self.kind.conv_channels(heads), self.conv_kernel_size - 1

    def new(self, rows: int, device) -> _Tensors:
        recurrent = None
        if self.kind.has_state:
            recurrent = torch.zeros(rows, self.num_v_heads, self.head_k_dim, self.head_v_dim, dtype=torch.float32, device=device)
        return _Tensors(torch.zeros(rows, *self.conv_sizes(), dtype=self.dtype, device=device), recurrent,
                        torch.zeros(rows, dtype=torch.int64, device=device))


@dataclass(frozen=True)
class _Tensors:
    """States [rows, ...] and the number of tokens in each of them."""

    conv: Tensor
    recurrent: Tensor | None
    lengths: Tensor

    def each(self) -> list[Tensor]:
        return [tensor for tensor in (self.conv, self.recurrent, self.lengths) if tensor is not None]

    def map(self, function: Callable[[Tensor], Tensor]) -> _Tensors:
        return _Tensors(*(t if t is None else function(t) for t in (self.conv, self.recurrent, self.lengths)))

    def select(self, index: Tensor) -> _Tensors:
        return self.map(lambda tensor: tensor.index_select(0, index))

    def narrow(self, first: int, rows: int) -> _Tensors:
        return self.map(lambda tensor: tensor.narrow(0, first, rows))

    def to(self, device) -> _Tensors:
        return self.map(lambda tensor: tensor.to(device))

    def put(self, index: Tensor, values: _Tensors) -> None:
        for tensor, value in zip(self.each(), values.each()):
            tensor.index_copy_(0, index, value)


class _Storage:
    """The live tensors and those of the snapshot, made at the first one; a length of -1: no snapshot of that row. Shared by views."""

    def __init__(self, live: _Tensors):
        self.live = live
        self.kept: _Tensors | None = None

    def make_kept(self) -> _Tensors:
        if self.kept is None:
            self.kept = self.live.map(torch.zeros_like)
            self.kept.lengths.fill_(-1)
        return self.kept


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
        if attn_type not in ATTN_TYPES:
            raise _error(f"attn_type '{attn_type}' is not known, use one of {', '.join(ATTN_TYPES)}")
        if not 1 <= conv_kernel_size <= MAX_TAPS:
            raise _error(f"conv_kernel_size must be 1 to {MAX_TAPS}, got {conv_kernel_size}")
        if batch < 1:
            raise _error(f"batch must be at least 1, got {batch}")
        layout = _Layout(attn_type, num_k_heads, num_v_heads, head_k_dim, head_v_dim, conv_kernel_size, dtype)
        self._set(layout, _Storage(layout.new(batch, device)), 0, batch)

    def _set(self, layout: _Layout, storage: _Storage, first: int, batch: int) -> LinearAttentionState:
        self.layout, self._storage, self._first, self.batch = layout, storage, first, batch
        self._live = storage.live.narrow(first, batch)
        self.conv_state, self.recurrent_state, self.lengths = self._live.conv, self._live.recurrent, self._live.lengths
        return self

    @property
    def device(self) -> torch.device:
        return self.conv_state.device

    def __repr__(self) -> str:
        sizes = [list(tensor.shape) for tensor in (self.conv_state, self.recurrent_state) if tensor is not None]
        return f"{_NAME}({self.layout.attn_type}, {' and '.join(map(str, sizes))}, {self.layout.dtype}, lengths={self.lengths.tolist()})"

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
        live, slots = slots >= 0, slots.clamp(min=0).to(torch.int64)
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
                raise _error(f"row {row} has no snapshot")
        self._live.put(index, self._kept.select(index))

    def erase(self, begin: int, end: int | None = None, rows: Rows = None) -> None:
        """Takes tokens begin .. end - 1 (default: to the last) out of the rows (default: all).

        Possible is what leaves 0 tokens, those of the snapshot, or all. Anything else raises RuntimeError with the reason: a recurrent
        state holds the sum of its tokens, not each of them. Every row is checked before one is changed.
        """
        index = self._index(rows)
        kept, lengths = self.snapshot_lengths(), self.lengths.tolist()
        zero, back = [], []
        for row in index.tolist():
            length, last = lengths[row], lengths[row] if end is None else end
            if not 0 <= begin <= last <= length:
                raise _error(f"tokens {begin} to {last} cannot be erased, row {row} has {length}")
            if begin == last:
                continue
            if last < length:
                raise _error(f"tokens {begin} to {last} of {length} in row {row} cannot be erased from the middle: a recurrent state holds "
                             f"the sum of its tokens; erase to the end and run tokens {last} to {length} again")
            if begin == 0:
                zero.append(row)
            elif begin == kept[row]:
                back.append(row)
            else:
                points = "0 tokens" if kept[row] is None else f"0 tokens or to its snapshot of {kept[row]}"
                raise _error(f"row {row} of {length} tokens cannot go back to {begin}, only to {points}")
        if zero:
            self.reset(zero)
        if back:
            self.restore(back)

    # --- rows

    def view(self, first: int = 0, rows: int | None = None) -> LinearAttentionState:
        """Rows first .. first + rows - 1 (default: all) as a state on the same storage, snapshots included: what one writes the other
        sees. So a prefill and a decode module share a state, or a prompt is read into one row of a running batch."""
        rows = self.batch - first if rows is None else rows
        if first < 0 or rows < 1 or first + rows > self.batch:
            raise _error(f"view of rows {first} to {first + rows} of {self.batch}")
        return object.__new__(LinearAttentionState)._set(self.layout, self._storage, self._first + first, rows)

    def select(self, rows: Rows = None) -> LinearAttentionState:
        """A copy of the rows (default: all) in this order, each as often as it is named; of the snapshots too."""
        index = self._index(rows, repeated=True)
        storage = _Storage(self._live.select(index))
        if self._kept is not None:
            storage.make_kept().put(torch.arange(len(index), device=self.device), self._kept.select(index))
        return object.__new__(LinearAttentionState)._set(self.layout, storage, 0, len(index))

    clone = select

    def reorder(self, rows: Sequence[int] | Tensor) -> None:
        """Row i becomes what row rows[i] was (beam search), in place; the snapshots too. As many rows as there are."""
        index = self._index(rows, repeated=True)
        if len(index) != self.batch:
            raise _error(f"reorder takes {self.batch} rows, got {len(index)}; select gives a state of another size")
        everything = self._index(None)
        for tensors in (self._live, self._kept):
            if tensors is not None:
                tensors.put(everything, tensors.select(index))

    def copy_from(self, other: LinearAttentionState, source: Rows = None, target: Rows = None) -> None:
        """Rows `target` of this state become those `source` of the other (default: all), without their snapshots: a cached prefix goes
        into the row of a request."""
        if other.layout != self.layout:
            raise _error(f"copy_from takes a state like {self.layout}, got {other.layout}")
        source, target = other._index(source, repeated=True), self._index(target)
        if len(source) != len(target):
            raise _error(f"copy_from: {len(source)} rows do not go into {len(target)}")
        self._live.put(target, other._live.select(source).to(self.device))
        self._forget_snapshot(target)

    # --- files

    def save(self, path: str | os.PathLike, tag: str = "") -> None:
        """Writes all rows and their lengths; the file appears complete or not at all. Takes a snapshot: what is written is a prefix to
        go back to.

        tag: compared when the file is read, for instance the model and the layer: every layer's state has the same shape."""
        content = {"format": _FILE_FORMAT, "tag": tag, "layout": asdict(self.layout), "conv_state": self.conv_state.cpu(),
                   "lengths": self.lengths.cpu()}
        if self.recurrent_state is not None:
            content["recurrent_state"] = self.recurrent_state.cpu()
        # Copies: of a view, torch.save would write all that it is a part of.
        content = {name: value.clone() if isinstance(value, Tensor) else value for name, value in content.items()}
        path = os.fspath(path)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=os.path.basename(path) + ".")
        try:
            with os.fdopen(handle, "wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        self.snapshot()

    def load(self, path: str | os.PathLike, tag: str = "") -> None:
        """Takes all rows from a file of `save`, and a snapshot of them. RuntimeError where tag, layout, dtype or the number of rows differ
        from the file's; nothing is changed then."""
        layout, tensors = _read(path, tag)
        if layout != self.layout:
            raise _error(f"{path} is a state like {layout}, this is one like {self.layout}")
        if len(tensors.lengths) != self.batch:
            raise _error(f"{path} has {len(tensors.lengths)} rows, this state {self.batch}")
        self._live.put(self._index(None), tensors.to(self.device))
        self.snapshot()

    @classmethod
    def from_file(cls, path: str | os.PathLike, tag: str = "", device=None) -> LinearAttentionState:
        """A state of the file's layout and rows, with its content; otherwise as load."""
        layout, tensors = _read(path, tag)
        state = object.__new__(cls)._set(layout, _Storage(tensors.to(device or "cpu")), 0, len(tensors.lengths))
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
            raise _error(f"conv_states must be [batch, C, K] = {list(want)}, got {list(conv_states.shape)}")
        if (recurrent_states is None) != (self.recurrent_state is None):
            raise _error(f"{self.layout.attn_type} {'needs' if recurrent_states is None else 'has no'} recurrent_states")
        if recurrent_states is not None and recurrent_states.shape != self.recurrent_state.shape:
            raise _error(f"recurrent_states must be [batch, Hv, dk, dv] = {list(self.recurrent_state.shape)}, "
                         f"got {list(recurrent_states.shape)}")
        counts = [tokens] * self.batch if isinstance(tokens, int) else list(tokens)
        if len(counts) != self.batch or min(counts) < 0:
            raise _error(f"tokens must be {self.batch} numbers >= 0, got {counts}")
        self.conv_state.copy_(conv_states[..., 1:])
        if recurrent_states is not None:
            self.recurrent_state.copy_(recurrent_states)
        self.lengths.copy_(torch.tensor(counts))
        self._forget_snapshot(self._index(None))

    # ---

    @property
    def _kept(self) -> _Tensors | None:
        kept = self._storage.kept
        return kept if kept is None else kept.narrow(self._first, self.batch)

    def _forget_snapshot(self, index: Tensor) -> None:
        if self._kept is not None:
            self._kept.lengths.index_fill_(0, index, -1)

    def _index(self, rows: Rows, repeated: bool = False) -> Tensor:
        """[n] int64 on the device; numbers of rows that are given on the host are checked."""
        if rows is None:
            return torch.arange(self.batch, device=self.device)
        numbers = rows.tolist() if isinstance(rows, Tensor) else list(rows)
        if any(not 0 <= row < self.batch for row in numbers):
            raise _error(f"rows must be 0 to {self.batch - 1}, got {numbers}")
        if not repeated and len(set(numbers)) != len(numbers):
            raise _error(f"rows must differ, got {numbers}")
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)


def _read(path, tag: str) -> tuple[_Layout, _Tensors]:
    content = torch.load(path, weights_only=True, map_location="cpu")
    if not isinstance(content, dict) or content.get("format") != _FILE_FORMAT:
        raise _error(f"{path} is not a file of {_NAME}.save")
    if content["tag"] != tag:
        raise _error(f"{path} has the tag '{content['tag']}', not '{tag}'")
    layout = _Layout(**content["layout"])
    tensors = _Tensors(content["conv_state"], content.get("recurrent_state"), content["lengths"])
    want = layout.new(len(tensors.lengths), "meta")
    if [(t.shape, t.dtype) for t in tensors.each()] != [(t.shape, t.dtype) for t in want.each()]:
        raise _error(f"{path}: its tensors are not those of {layout}")
    return layout, tensors


def _error(what: str) -> RuntimeError:
    return RuntimeError(f"{_NAME}: {what}")
