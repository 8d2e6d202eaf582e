"""What sequences carry from call to call: keys and values, sliding windows of them, states of linear attention, or several of these."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...state import LinearAttentionState
from ..architecture import Architecture, ShortConvSpec, Span
from .kv import KvStore

Rows = Sequence[int] | None


def _state(spec, hidden: int, batch: int, dtype, device) -> LinearAttentionState:
    if isinstance(spec, ShortConvSpec):
        heads = {"head_k_dim": hidden, "head_v_dim": hidden}
    else:
        heads = {"num_k_heads": spec.k_heads, "num_v_heads": spec.v_heads, "head_k_dim": spec.head_k_dim, "head_v_dim": spec.head_v_dim}
    kind = "short_conv" if isinstance(spec, ShortConvSpec) else "gated_delta_rule"
    return LinearAttentionState(kind, conv_kernel_size=spec.kernel, batch=batch, dtype=dtype, device=device, **heads)


class _Storage:
    """What a memory and its views share."""

    def __init__(self, architecture: Architecture, batch: int, stores: dict[Span, KvStore], states: dict[int, LinearAttentionState]):
        self.architecture, self.stores, self.states = architecture, stores, states
        self.lengths, self.starts = [0] * batch, [0] * batch
        self.kept: list[int | None] = [None] * batch  # tokens in the snapshot
        self.kept_starts = [0] * batch


class Memory:
    """The memory of `batch` sequences for one LlmModel, chosen by its architecture. A row is one sequence.

    kind:    "none" | "kv" | "sliding" | "recurrent" | "hybrid", see Architecture.memory_kind.
    lengths: tokens of each row, padding included. Rows may differ: read prompts through `view(row, 1)`, then decode all rows at once.

    Going back: a row goes to 0 tokens or to its snapshot always; to any other point where no layer holds the sum of its tokens and every
    window still has what the next token sees (the last 64 tokens can always be taken back). What is not possible raises RuntimeError
    with the reason and changes nothing. If a forward fails midway, reset or restore the rows.

    Example:
        >>> memory = model.new_memory(batch=2)          # doctest: +SKIP
        >>> model(prompts, memory); memory.snapshot()
        >>> model(draft, memory); memory.restore()      # as after the prompts
    """

    def __init__(self, architecture: Architecture, batch: int = 1, *, capacity: int = 256, dtype=torch.float32, device=None):
        """capacity: tokens that layers without a window have room for at first; they grow."""
        if batch < 1:
            raise RuntimeError(f"Memory: batch must be at least 1, got {batch}")
        attention: dict[Span, dict[int, tuple[int, int]]] = {}
        states = {}
        for index, layer in enumerate(architecture.layers):
            spec = layer.mixer
            if layer.keeps_keys:
                attention.setdefault(spec.span, {})[index] = spec.kv_heads, spec.head_dim
            elif not layer.is_attention:
                states[index] = _state(spec, architecture.hidden, batch, dtype, device)
        stores = {span: KvStore(layers, span, batch, capacity, dtype, device) for span, layers in attention.items()}
        self._set(architecture.memory_kind(), _Storage(architecture, batch, stores, states), range(batch), states)

    def _set(self, kind: str, storage: _Storage, rows: range, states: dict[int, LinearAttentionState]) -> Memory:
        self.kind, self._storage, self._rows, self.states = kind, storage, rows, states
        return self

    @property
    def batch(self) -> int:
        return len(self._rows)

    def fits(self, architecture: Architecture) -> bool:
        """Whether it is a memory of such a model."""
        made_for = self._storage.architecture
        return made_for is architecture or made_for == architecture

    @property
    def lengths(self) -> list[int]:
        return self._mine(self._storage.lengths)

    @property
    def starts(self) -> list[int]:
        """Padding tokens before the first token of each row."""
        return self._mine(self._storage.starts)

    def snapshot_lengths(self) -> list[int | None]:
        """Tokens in the snapshot of each row; None where there is none."""
        return self._mine(self._storage.kept)

    def nbytes(self) -> int:
        """Bytes of all rows, those of other views included."""
        states = (tensor for state in self._storage.states.values() for tensor in (state.conv_state, state.recurrent_state))
        return sum(store.nbytes() for store in self._storage.stores.values()) + sum(t.nbytes for t in states if t is not None)

    def __repr__(self) -> str:
        return f"Memory({self.kind}, lengths={self.lengths}, {self.nbytes()} bytes)"

    # --- a call (made by LlmModel)

    def store(self, span: Span) -> KvStore:
        return self._storage.stores[span]

    def plan(self, span: Span, length: int, starts: Sequence[int], device):
        return self._storage.stores[span].plan(self._rows, self.lengths, length, starts, device)

    def commit(self, plans, length: int, starts: Sequence[int]) -> None:
        """The end of a call: every row has `length` tokens more."""
        for span, plan in plans.items():
            self._storage.stores[span].commit(plan)
        for row, start in zip(self._rows, starts):
            self._storage.lengths[row] += length
            self._storage.starts[row] = start

    # --- going back

    def reset(self, rows: Rows = None) -> None:
        """Rows (default: all) become new sequences: 0 tokens, no snapshot."""
        index = self._index(rows)
        for state in self.states.values():
            state.reset(index)
        for row in (self._rows[i] for i in index):
            for store in self._storage.stores.values():
                store.reset(row)
            self._storage.lengths[row] = self._storage.starts[row] = 0
            self._storage.kept[row] = None

    def snapshot(self, rows: Rows = None) -> None:
        """Keeps the rows (default: all) as they are: the end of a shared prefix, or the state before a draft. One per row; the next
        replaces it."""
        index = self._index(rows)
        for state in self.states.values():
            state.snapshot(index)
        for row in (self._rows[i] for i in index):
            for store in self._storage.stores.values():
                store.snapshot(row)
            self._storage.kept[row], self._storage.kept_starts[row] = self._storage.lengths[row], self._storage.starts[row]

    def restore(self, rows: Rows = None) -> None:
        """Rows (default: all) are as at their snapshot again, which stays."""
        index = self._index(rows)
        for i in index:
            if self._storage.kept[self._rows[i]] is None:
                raise RuntimeError(f"Memory: row {i} has no snapshot")
        for state in self.states.values():
            state.restore(index)
        for row in (self._rows[i] for i in index):
            for store in self._storage.stores.values():
                store.restore(row)
            self._storage.lengths[row], self._storage.starts[row] = self._storage.kept[row], self._storage.kept_starts[row]

    def rollback(self, length: int, rows: Rows = None) -> None:
        """Rows (default: all) go back to their first `length` tokens. A snapshot of more tokens than that is dropped."""
        index = self._index(rows)
        for i in index:
            if refusal := self._refusal(i, length):
                raise RuntimeError(f"Memory: {refusal}")
        for i in index:
            row, storage = self._rows[i], self._storage
            if length == storage.lengths[row]:
                continue
            if length == 0:
                self.reset([i])
            elif length == storage.kept[row]:
                self.restore([i])
            else:
                storage.lengths[row] = length
                storage.starts[row] = min(storage.starts[row], length)
                if storage.kept[row] is not None and storage.kept[row] > length:
                    storage.kept[row] = None

    def can_rollback(self, length: int, rows: Rows = None) -> bool:
        """Whether rollback would do it."""
        return not any(self._refusal(i, length) for i in self._index(rows))

    def _refusal(self, i: int, length: int) -> str:
        """Why row i cannot go back to `length` tokens; empty where it can."""
        row, storage = self._rows[i], self._storage
        have, kept = storage.lengths[row], storage.kept[row]
        if not 0 <= length <= have:
            return f"row {i} has {have} tokens and cannot go back to {length}"
        if length in (0, kept, have):
            return ""
        points = "0 tokens" if kept is None else f"0 tokens or to its snapshot of {kept}"
        if storage.states:
            return (f"row {i} of {have} tokens goes back to {points}, not to {length}: layers of linear attention hold the sum of their "
                    "tokens, not each of them")
        window = next((store.window for store in storage.stores.values() if not store.can_return(row, length)), None)
        if window is None:
            return ""
        return (f"row {i} of {have} tokens cannot go back to {length}, tokens that a window of {window} sees from there are gone; it goes "
                f"back to {points}")

    # --- rows

    def view(self, first: int = 0, rows: int = 1) -> Memory:
        """Rows first .. first + rows - 1 as a memory on the same storage: a prompt is read into one row of a running batch."""
        if first < 0 or rows < 1 or first + rows > self.batch:
            raise RuntimeError(f"Memory: view of rows {first} to {first + rows} of {self.batch}")
        states = {layer: state.view(first, rows) for layer, state in self.states.items()}
        return object.__new__(Memory)._set(self.kind, self._storage, self._rows[first : first + rows], states)

    def reorder(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was (beam search), snapshots included. As many rows as there are."""
        order = self._index(rows, repeated=True)
        if len(order) != self.batch:
            raise RuntimeError(f"Memory: reorder takes {self.batch} rows, got {len(order)}")
        for state in self.states.values():
            state.reorder(order)
        for store in self._storage.stores.values():
            store.reorder(self._rows, order)
        storage, span = self._storage, slice(self._rows.start, self._rows.stop)
        for values in (storage.lengths, storage.starts, storage.kept, storage.kept_starts):
            values[span] = [values[self._rows[i]] for i in order]

    def _mine(self, values: list) -> list:
        return values[self._rows.start : self._rows.stop]

    def _index(self, rows: Rows, repeated: bool = False) -> list[int]:
        index = list(range(self.batch)) if rows is None else [int(row) for row in rows]
        if any(not 0 <= i < self.batch for i in index):
            raise RuntimeError(f"Memory: rows must be 0 to {self.batch - 1}, got {index}")
        if not repeated and len(set(index)) != len(index):
            raise RuntimeError(f"Memory: rows must differ, got {index}")
        return index
