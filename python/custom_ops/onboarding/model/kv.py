"""Keys and values of the attention layers, and which of them a query sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..architecture import Span

#: A sliding store keeps this many tokens more than its window, so that as many can always be taken back.
RETAINED = 64
#: Rows of unequal lengths take at most this many tokens in a call; LlmModel cuts longer ones. What a sliding store has room for.
PIECE = 64


@dataclass
class Visible:
    """mask: [B or 1, 1, L, S] bool, True where query t sees key s; causal: L == S and key s is seen by t >= s. Neither: everything."""

    mask: Tensor | None = None
    causal: bool = False

    def as_mask(self, queries: int, keys: int, device) -> Tensor | None:
        if not self.causal:
            return self.mask
        return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


def visible(span: Span, queries: Sequence[int], length: int, keys: Sequence[int], slots: int, starts: Sequence[int],
            device) -> Visible:
    """For rows whose first query is token queries[i] and whose slot 0 holds token keys[i]; tokens before starts[i] are padding. The last
    query's token stands in the last slot of the longest row.

    A padding query sees itself alone: a softmax over nothing would be NaN, and 0 NaN too where its value is a key's.
    """
    padded = any(start > key for start, key in zip(starts, keys))
    if not padded and len(set(zip(queries, keys, starts if span.chunked else keys))) == 1:
        whole = _all_in_span(span, keys[0] - starts[0], queries[0] - starts[0] + length - 1, slots)
        if length == 1 and whole:
            return Visible()
        if queries[0] == keys[0] and slots == length and whole:
            return Visible(causal=True)
        queries, keys, starts = queries[:1], keys[:1], starts[:1]
    return Visible(_mask(span, queries, length, keys, slots, starts, device))


def _all_in_span(span: Span, first: int, last: int, slots: int) -> bool:
    """Whether the query at position `last` sees the key at position `first`, the oldest of `slots`."""
    if span.window is None:
        return True
    return first // span.window == last // span.window if span.chunked else slots <= span.window


def _mask(span, queries, length, keys, slots, starts, device) -> Tensor:
    first = torch.tensor([queries, keys, starts], device=device).view(3, -1, 1, 1, 1)
    query = first[0] + torch.arange(length, device=device).view(-1, 1)
    key = first[1] + torch.arange(slots, device=device)
    seen = (key <= query) & ((key >= first[2]) | (key == query))
    if span.window is None:
        return seen
    if span.chunked:
        return seen & ((key - first[2]) // span.window == (query - first[2]) // span.window)
    return seen & (key > query - span.window)


@dataclass
class Plan:
    """What one call does in every layer of a store. first: token of slot 0, of each row, after the call."""

    rows: range
    length: int  # tokens of the call
    used: list[int]  # slots in use before it
    first: list[int]
    low: int  # the first slot that a query sees
    visible: Visible
    shift: list[int] | None = None  # rows of unequal lengths: slots dropped at the front before the tokens are written
    keep: int | None = None  # more tokens than fit: so many old ones join them, and the last `retained` of both are stored


class KvStore:
    """[B, kv_heads, capacity, head_dim] keys and values of all attention layers with one span.

    The same tokens stand in the same slots in every layer. Without a window a store grows; with one it holds the last tokens: at least
    window - 1 + RETAINED of them.
    """

    def __init__(self, layers: dict[int, tuple[int, int]], span: Span, batch: int, capacity: int, dtype, device):
        window = span.window
        self.span, self.window, self.first = span, window, [0] * batch
        self.retained = capacity if window is None else window - 1 + RETAINED
        self.capacity = max(1, capacity if window is None else self.retained + PIECE)
        self.tensors = {layer: tuple(torch.zeros(batch, heads, self.capacity, dim, dtype=dtype, device=device) for _ in range(2))
                        for layer, (heads, dim) in layers.items()}
        self.kept: dict[int, tuple[Tensor, Tensor]] | None = None
        self.kept_first = [0] * batch

    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensors in (self.tensors, self.kept or {}) for pair in tensors.values() for tensor in pair)

    # --- a call

    def plan(self, rows: range, lengths: Sequence[int], length: int, starts: Sequence[int], device) -> Plan:
        """For `length` new tokens in rows that hold `lengths`. Makes room; changes nothing else."""
        first = [self.first[row] for row in rows]
        used = [have - begin for have, begin in zip(lengths, first)]
        if self.window is None:
            self._grow(max(used) + length)
        if len(set(zip(used, first))) > 1:
            return self._plan_unequal(rows, lengths, length, starts, device, used, first)
        low = 0 if self.window is None else max(0, used[0] - self.window + 1)
        if used[0] + length <= self.capacity:
            seen = visible(self.span, lengths, length, [begin + low for begin in first], used[0] + length - low, starts, device)
            return Plan(rows, length, used, first, low, seen)
        keep = min(used[0], self.retained)
        low = max(0, keep - self.window + 1)
        oldest = [have - keep for have in lengths]
        seen = visible(self.span, lengths, length, [token + low for token in oldest], keep + length - low, starts, device)
        after = [token + max(0, keep + length - self.retained) for token in oldest]
        return Plan(rows, length, used, after, low, seen, keep=keep)

    def _plan_unequal(self, rows, lengths, length, starts, device, used, first) -> Plan:
        if self.window is not None and length > PIECE:
            raise RuntimeError(f"rows of unequal lengths take at most {PIECE} tokens in a call, got {length}")
        shift = [have - self.retained if have + length > self.capacity else 0 for have in used]
        used, first = ([value + sign * move for value, move in zip(values, shift)] for values, sign in ((used, -1), (first, 1)))
        seen = visible(self.span, lengths, length, first, max(used) + length, starts, device)
        return Plan(rows, length, used, first, 0, seen, shift=shift)

    def remember(self, layer: int, plan: Plan, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores k, v [B, kv_heads, L, head_dim] of the plan's call; returns those that its queries see."""
        return tuple(self._write(tensor, plan, new) for tensor, new in zip(self.tensors[layer], (k, v)))

    def rows(self, layer: int, plan: Plan) -> tuple[Tensor, Tensor]:
        """Keys and values of the plan's rows, all slots."""
        return tuple(tensor[plan.rows.start : plan.rows.stop] for tensor in self.tensors[layer])

    def _write(self, whole: Tensor, plan: Plan, new: Tensor) -> Tensor:
        tensor = whole[plan.rows.start : plan.rows.stop]
        if plan.keep is not None:
            used = plan.used[0]
            joined = torch.cat((tensor[:, :, used - plan.keep : used], new), 2)
            last = joined[:, :, -self.retained :]
            tensor[:, :, : last.shape[2]] = last
            return joined[:, :, plan.low :]
        if plan.shift is None:
            end = plan.used[0] + plan.length
            tensor[:, :, plan.used[0] : end] = new
            return tensor[:, :, plan.low : end]
        for row, (used, shift) in enumerate(zip(plan.used, plan.shift)):
            if shift:
                tensor[row, :, :used] = tensor[row, :, shift : shift + used].clone()
            tensor[row, :, used : used + plan.length] = new[row]
        return tensor[:, :, : max(plan.used) + plan.length]

    def commit(self, plan: Plan) -> None:
        self.first[plan.rows.start : plan.rows.stop] = plan.first

    def _grow(self, capacity: int) -> None:
        if capacity <= self.capacity:
            return
        self.capacity = max(capacity, 2 * self.capacity)
        for layer, pair in self.tensors.items():
            grown = tuple(tensor.new_zeros(*tensor.shape[:2], self.capacity, tensor.shape[3]) for tensor in pair)
            for new, old in zip(grown, pair):
                new[:, :, : old.shape[2]] = old
            self.tensors[layer] = grown

    # --- rows

    def can_return(self, row: int, length: int) -> bool:
        """Whether a row may go back to `length` tokens: all that the next query sees are still here."""
        return self.window is None or self.first[row] <= max(0, length - self.window + 1)

    def reset(self, row: int) -> None:
        self.first[row] = 0

    def snapshot(self, row: int) -> None:
        """Without a window the tokens of a snapshot stay where they are for as long as it is valid: nothing to copy."""
        if self.window is None:
            return
        if self.kept is None:
            self.kept = {layer: tuple(map(torch.zeros_like, pair)) for layer, pair in self.tensors.items()}
        self._copy(self.tensors, self.kept, row)
        self.kept_first[row] = self.first[row]

    def restore(self, row: int) -> None:
        if self.window is None:
            return
        self._copy(self.kept, self.tensors, row)
        self.first[row] = self.kept_first[row]

    def _copy(self, source, target, row: int) -> None:
        for layer, pair in source.items():
            for old, new in zip(pair, target[layer]):
                new[row] = old[row]

    def reorder(self, rows: range, order: Sequence[int]) -> None:
        """Row rows[i] becomes what row rows[order[i]] was."""
        index = torch.tensor([rows[i] for i in order])
        for tensors in (self.tensors, self.kept or {}):
            for pair in tensors.values():
                for tensor in pair:
                    tensor[rows.start : rows.stop] = tensor[index.to(tensor.device)]
        for values in (self.first, self.kept_first):
            values[rows.start : rows.stop] = [values[rows[i]] for i in order]
