"""npu_fused_linear_attention: causal convolution and recurrent state of a linear attention layer, prefill and decode."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import FLOATS, MOST, check_device, check_dtype, check_range, check_sizes, dtype_text, fail, shape_text
from ._attn_types import ATTN_TYPES, MAX_HEAD_DIM, MAX_TAPS, AttnType, Heads
from ._linear_attention_gradient import Setting, gradient
from ._opdef import OpDefCall

NAME = "npu_fused_linear_attention"
OP_TYPE = "FusedLinearAttention"
_INDICES = (torch.int32, torch.int64)


def check(qkv: Tensor, gate: Tensor, beta: Tensor, conv_weight: Tensor, conv_bias: Tensor | None, conv_state: Tensor | None,
          recurrent_state: Tensor | None, *, attn_type: str, num_k_heads: int, num_v_heads: int, head_k_dim: int, head_v_dim: int,
          gate_fold: bool, gate_coef: Tensor | None, gate_bias: Tensor | None, cu_seqlens: Tensor | None, state_indices: Tensor | None,
          has_initial_state: Tensor | None, token_major: bool) -> tuple[AttnType, Heads]:
    kind = _check_type(attn_type)
    heads = Heads(num_k_heads, num_v_heads, head_k_dim, head_v_dim)
    check_heads(NAME, kind, heads)
    _check_fold(kind, gate_fold, gate_coef, gate_bias)
    batch, length = _check_qkv(kind, heads, qkv, token_major)
    _check_weights(kind, heads, qkv, conv_weight, conv_bias)
    _check_gates(kind, heads, qkv, (batch, length), gate, beta, gate_coef, gate_bias)
    sequences = _check_sequences(qkv, batch, cu_seqlens, state_indices, has_initial_state)
    _check_states(kind, heads, qkv, conv_weight, sequences, state_indices, conv_state, recurrent_state)
    beside = {"gate": gate, "beta": beta, "conv_weight": conv_weight, "conv_bias": conv_bias, "conv_state": conv_state,
              "recurrent_state": recurrent_state, "gate_coef": gate_coef, "gate_bias": gate_bias, "cu_seqlens": cu_seqlens,
              "state_indices": state_indices, "has_initial_state": has_initial_state}
    for argument, tensor in beside.items():
        if tensor is not None:
            check_device(NAME, argument, tensor, qkv, "qkv")
    return kind, heads


def _check_type(attn_type: str) -> AttnType:
    if attn_type not in ATTN_TYPES:
        *first, last = ATTN_TYPES
        fail(NAME, f"attn_type '{attn_type}' is not known, use {', '.join(first)} or {last}")
    return ATTN_TYPES[attn_type]


def check_heads(name: str, kind: AttnType, heads: Heads) -> None:
    """name: whose sentence it is."""
    most = MAX_HEAD_DIM if kind.has_state else MOST
    check_range(name, "num_k_heads", heads.keys, 1, MOST)
    check_range(name, "num_v_heads", heads.values, 1, MOST)
    check_range(name, "head_k_dim", heads.key_dim, 1, most)
    check_range(name, "head_v_dim", heads.value_dim, 1, most)
    if not kind.has_heads and (heads.keys != 1 or heads.values != 1 or heads.key_dim != heads.value_dim):
        fail(name, f"attn_type {kind.name} takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim, got {heads.keys}, "
                   f"{heads.values}, {heads.key_dim} and {heads.value_dim}")
    if heads.values % heads.keys:
        fail(name, f"num_v_heads must be a multiple of num_k_heads, got {heads.values} and {heads.keys}")


def _check_fold(kind: AttnType, gate_fold: bool, gate_coef: Tensor | None, gate_bias: Tensor | None) -> None:
    if gate_fold and kind.gate == "none":
        fail(NAME, f"attn_type {kind.name} takes no gate_fold")
    for argument, tensor in (("gate_coef", gate_coef), ("gate_bias", gate_bias)):
        if gate_fold and tensor is None:
            fail(NAME, f"gate_fold needs {argument}")
        if not gate_fold and tensor is not None:
            fail(NAME, f"{argument} is only taken with gate_fold")


def _check_qkv(kind: AttnType, heads: Heads, qkv: Tensor, token_major: bool) -> tuple[int, int]:
    channels = kind.qkv_channels(heads)
    formula = "2 * num_k_heads * head_k_dim + num_v_heads * head_v_dim" if kind.has_heads else "3 * head_v_dim"
    form = "[B, L, D]" if token_major else "[B, D, L]"
    message = lambda: f"{NAME}: qkv must be {form} with D = {formula} = {channels}, got {shape_text(qkv.shape)}"  # noqa: E731
    torch._check(qkv.dim() == 3, message)
    batch, length, given = qkv.shape if token_major else (qkv.shape[0], qkv.shape[2], qkv.shape[1])
    torch._check(given == channels, message)
    check_dtype(NAME, "qkv", qkv, FLOATS)
    return batch, length


def _check_weights(kind: AttnType, heads: Heads, qkv: Tensor, conv_weight: Tensor, conv_bias: Tensor | None) -> None:
    channels = kind.conv_channels(heads)
    _check_same_dtype(qkv, "conv_weight", conv_weight)
    message = lambda: (f"{NAME}: conv_weight must be [C, 1, K] with C = {channels} and K 1 to {MAX_TAPS}, "  # noqa: E731
                       f"got {shape_text(conv_weight.shape)}")
    torch._check(conv_weight.dim() == 3, message)
    for holds in (conv_weight.shape[0] == channels, conv_weight.shape[1] == 1, conv_weight.shape[2] >= 1, conv_weight.shape[2] <= MAX_TAPS):
        torch._check(holds, message)
    if conv_bias is not None:
        _check_same_dtype(qkv, "conv_bias", conv_bias)
        check_sizes(conv_bias.shape, (channels,), lambda: f"{NAME}: conv_bias must be [C] = [{channels}], got {shape_text(conv_bias.shape)}")


def _check_gates(kind: AttnType, heads: Heads, qkv: Tensor, tokens: tuple[int, int], gate: Tensor, beta: Tensor, gate_coef: Tensor | None,
                 gate_bias: Tensor | None) -> None:
    accepted = (qkv.dtype, torch.float32) if qkv.dtype != torch.float32 else (torch.float32,)
    sizes = kind.gate_sizes(heads)
    names = {"none": "1", "per_head": "num_v_heads", "per_channel": "num_v_heads, head_k_dim"}[kind.gate]
    for argument, tensor, symbols, want in (("gate", gate, names, (*tokens, *sizes)),
                                            ("beta", beta, names.split(",")[0], (*tokens, sizes[0]))):
        check_dtype(NAME, argument, tensor, accepted)
        check_sizes(tensor.shape, want, lambda: f"{NAME}: {argument} must be [B, L, {symbols}] = {shape_text(want)} to match qkv "
                                                f"{shape_text(qkv.shape)}, got {shape_text(tensor.shape)}")
    for argument, tensor, symbols, want in (("gate_coef", gate_coef, "num_v_heads", sizes[:1]), ("gate_bias", gate_bias, names, sizes)):
        if tensor is not None:
            check_dtype(NAME, argument, tensor, (torch.float32,))
            check_sizes(tensor.shape, want, lambda: f"{NAME}: {argument} must be [{symbols}] = {shape_text(want)}, "
                                                    f"got {shape_text(tensor.shape)}")


def _check_sequences(qkv: Tensor, batch: int, cu_seqlens: Tensor | None, state_indices: Tensor | None,
                     has_initial_state: Tensor | None) -> int:
    """N"""
    sequences = batch
    if cu_seqlens is not None:
        check_dtype(NAME, "cu_seqlens", cu_seqlens, _INDICES)
        message = lambda: f"{NAME}: cu_seqlens must be [N + 1] with N at least 1, got {shape_text(cu_seqlens.shape)}"  # noqa: E731
        torch._check(cu_seqlens.dim() == 1, message)
        torch._check(cu_seqlens.shape[0] >= 2, message)
        torch._check(batch == 1, lambda: f"{NAME}: B must be 1 with cu_seqlens, got qkv {shape_text(qkv.shape)}")
        sequences = cu_seqlens.shape[0] - 1
    for argument, tensor, dtypes in (("state_indices", state_indices, _INDICES), ("has_initial_state", has_initial_state, (torch.bool,))):
        if tensor is not None:
            check_dtype(NAME, argument, tensor, dtypes)
            check_sizes(tensor.shape, (sequences,), lambda: f"{NAME}: {argument} must be [N] = [{sequences}], got {shape_text(tensor.shape)}")
    return sequences


def _check_states(kind: AttnType, heads: Heads, qkv: Tensor, conv_weight: Tensor, sequences: int, state_indices: Tensor | None,
                  conv_state: Tensor | None, recurrent_state: Tensor | None) -> None:
    if recurrent_state is not None and not kind.has_state:
        fail(NAME, f"attn_type {kind.name} has no recurrent_state")
    for argument, tensor, symbols, want in (
            ("conv_state", conv_state, "C, K - 1", (kind.conv_channels(heads), conv_weight.shape[2] - 1)),
            ("recurrent_state", recurrent_state, "num_v_heads, head_k_dim, head_v_dim", (heads.values, heads.key_dim, heads.value_dim))):
        if tensor is None:
            continue
        if argument == "conv_state":
            _check_same_dtype(qkv, argument, tensor)
        else:
            check_dtype(NAME, argument, tensor, (torch.float32,))
        slots, first = ("N", sequences) if state_indices is None else ("slots", tensor.shape[0] if tensor.dim() else 1)
        check_sizes(tensor.shape, (first, *want), lambda: f"{NAME}: {argument} must be [{slots}, {symbols}] = {shape_text((first, *want))}, "
                                                          f"got {shape_text(tensor.shape)}")
        torch._check(tensor.is_contiguous(), lambda: f"{NAME}: {argument} must be contiguous, it is written in place")
    if conv_state is not None and recurrent_state is not None:
        torch._check(conv_state.shape[0] == recurrent_state.shape[0],
                     lambda: f"{NAME}: conv_state and recurrent_state must have the same number of slots, got {conv_state.shape[0]} and "
                             f"{recurrent_state.shape[0]}")


def _check_same_dtype(qkv: Tensor, argument: str, tensor: Tensor) -> None:
    if tensor.dtype != qkv.dtype:
        fail(NAME, f"{argument} must have the dtype of qkv, {dtype_text(qkv.dtype)}, got {dtype_text(tensor.dtype)}")


@torch.library.register_fake(f"custom::{NAME}")
def fake(qkv, gate, beta, conv_weight, conv_bias=None, conv_state=None, recurrent_state=None, *, attn_type, num_k_heads, num_v_heads,
         head_k_dim, head_v_dim, use_qk_l2norm=True, gate_fold=False, gate_coef=None, gate_bias=None, cu_seqlens=None, state_indices=None,
         has_initial_state=None, token_major=False) -> Tensor:
    check(qkv, gate, beta, conv_weight, conv_bias, conv_state, recurrent_state, attn_type=attn_type, num_k_heads=num_k_heads,
          num_v_heads=num_v_heads, head_k_dim=head_k_dim, head_v_dim=head_v_dim, gate_fold=gate_fold, gate_coef=gate_coef,
          gate_bias=gate_bias, cu_seqlens=cu_seqlens, state_indices=state_indices, has_initial_state=has_initial_state,
          token_major=token_major)
    return qkv.new_empty((qkv.shape[0], qkv.shape[1 if token_major else 2], num_v_heads, head_v_dim))


def to_opdef(qkv, gate, beta, conv_weight, conv_bias=None, conv_state=None, recurrent_state=None, *, attn_type, num_k_heads, num_v_heads,
             head_k_dim, head_v_dim, use_qk_l2norm=True, gate_fold=False, gate_coef=None, gate_bias=None, cu_seqlens=None,
             state_indices=None, has_initial_state=None, token_major=False) -> OpDefCall:
    """qkv token-major, gate and beta of one dtype, indices int32; the states themselves, which the call writes."""
    out = fake(qkv, gate, beta, conv_weight, conv_bias, conv_state, recurrent_state, attn_type=attn_type, num_k_heads=num_k_heads,
               num_v_heads=num_v_heads, head_k_dim=head_k_dim, head_v_dim=head_v_dim, gate_fold=gate_fold, gate_coef=gate_coef,
               gate_bias=gate_bias, cu_seqlens=cu_seqlens, state_indices=state_indices, has_initial_state=has_initial_state,
               token_major=token_major)
    torch.ops.custom._check_linear_attention_memory(qkv, gate, beta, conv_weight, conv_bias, conv_state, recurrent_state, gate_coef,
                                                    gate_bias, cu_seqlens, state_indices, has_initial_state)
    gates = torch.float32 if gate.dtype != beta.dtype else gate.dtype
    if conv_weight.shape[2] == 1:
        conv_state = None  # of no elements
    inputs = {"qkv": qkv if token_major else qkv.transpose(1, 2), "gate": gate.to(gates), "beta": beta.to(gates),
              "conv_weight": conv_weight, "conv_bias": conv_bias, "conv_state": conv_state, "recurrent_state": recurrent_state,
              "gate_coef": gate_coef, "gate_bias": gate_bias, "cu_seqlens": _int32(cu_seqlens), "state_indices": _int32(state_indices),
              "has_initial_state": has_initial_state}
    attributes = {"attn_type": attn_type, "num_k_heads": num_k_heads, "num_v_heads": num_v_heads, "head_k_dim": head_k_dim,
                  "head_v_dim": head_v_dim, "use_qk_l2norm": use_qk_l2norm, "gate_fold": gate_fold}
    return OpDefCall(OP_TYPE, {name: tensor if tensor is None else tensor.contiguous() for name, tensor in inputs.items()}, attributes,
                     {"attn_out": out, "conv_state": conv_state, "recurrent_state": recurrent_state})


def _int32(indices: Tensor | None) -> Tensor | None:
    """What does not fit stays out of range."""
    return indices if indices is None or indices.dtype == torch.int32 else indices.clamp(-(2**31), MOST).to(torch.int32)


_OVERLOAD = getattr(torch.ops.custom, NAME).default
_ARGUMENTS = tuple(argument.name for argument in _OVERLOAD._schema.arguments)
_SETTING = ("attn_type", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim", "use_qk_l2norm", "gate_fold")
_WITH_GRADIENT = ("qkv", "gate", "beta", "conv_weight", "conv_bias", "gate_coef", "gate_bias")
_KEPT = (*_WITH_GRADIENT, "cu_seqlens")


def _backward(dout, qkv, gate, beta, conv_weight, conv_bias, conv_initial, recurrent_initial, gate_coef, gate_bias, cu_seqlens, live,
              attn_type, num_k_heads, num_v_heads, head_k_dim, head_v_dim, use_qk_l2norm, gate_fold) -> list[Tensor]:
    heads = Heads(num_k_heads, num_v_heads, head_k_dim, head_v_dim)
    return gradient(Setting(attn_type, heads, use_qk_l2norm, gate_fold), dout, qkv, gate, beta, conv_weight, conv_bias, conv_initial,
                    recurrent_initial, gate_coef, gate_bias, cu_seqlens, live)


def _backward_fake(dout, qkv, gate, beta, conv_weight, conv_bias, conv_initial, recurrent_initial, gate_coef, gate_bias, *_):
    return [qkv.new_empty(0) if tensor is None else tensor.new_empty(tensor.shape)
            for tensor in (qkv, gate, beta, conv_weight, conv_bias, gate_coef, gate_bias)]


# One node for a compiler, whatever the number of tokens.
_autograd.define(f"_{NAME}_backward(Tensor dout, Tensor qkv, Tensor gate, Tensor beta, Tensor conv_weight, Tensor? conv_bias, "
                 "Tensor conv_initial, Tensor? recurrent_initial, Tensor? gate_coef, Tensor? gate_bias, Tensor? cu_seqlens, Tensor? live, "
                 "str attn_type, int num_k_heads, int num_v_heads, int head_k_dim, int head_v_dim, bool use_qk_l2norm, bool gate_fold) "
                 "-> Tensor[]", _backward, _backward_fake)


def _initial(state: Tensor, slots: Tensor | None, continues: Tensor | None) -> Tensor:
    if slots is None:
        rows = state.clone()
    elif state.shape[0] == 0:  # all of them are padding
        rows = state.new_zeros(slots.shape[0], *state.shape[1:])
    else:
        rows = state.index_select(0, slots.clamp(0, state.shape[0] - 1))
    return rows if continues is None else torch.where(continues.view(-1, *[1] * (state.dim() - 1)), rows, 0)


# [N, ...]: what each sequence starts from. One node, since a compiler may compute PyTorch's own operations again in the backward, where
# the states have been overwritten.
_autograd.define(f"_{NAME}_initial(Tensor state, Tensor? state_indices, Tensor? has_initial_state) -> Tensor", _initial,
                 lambda state, slots, _: state.new_empty(state.shape if slots is None else (slots.shape[0], *state.shape[1:])))


class _FusedLinearAttention(torch.autograd.Function):
    """The states before the call count as constants; those that a sequence starts from are copied before they are overwritten."""

    @staticmethod
    def forward(ctx, *values):
        given = dict(zip(_ARGUMENTS, values))
        states = {name: given[name] for name in ("conv_state", "recurrent_state") if given[name] is not None}
        for name, state in states.items():
            if state.requires_grad:
                fail(NAME, f"{name} requires a gradient: it counts as a constant and is written in place, detach it")
        for name in _KEPT:  # autograd refuses them when the states have been written
            if given[name] is not None and given[name].is_inference():
                fail(NAME, f"{name} was made in inference mode and cannot be kept for a gradient, clone it")
        initial = _initial_states(given, states)
        out = _autograd.below(_OVERLOAD, **given)
        for state in states.values():
            torch.autograd.graph.increment_version(state)
        qkv = given["qkv"] if given["token_major"] else given["qkv"].transpose(1, 2)
        ctx.token_major, ctx.setting = given["token_major"], [given[name] for name in _SETTING]
        ctx.save_for_backward(qkv, given["gate"], given["beta"], given["conv_weight"], given["conv_bias"], initial["conv_state"],
                              initial.get("recurrent_state"), given["gate_coef"], given["gate_bias"], given["cu_seqlens"],
                              initial.get("live"))
        return out

    @staticmethod
    def backward(ctx, dout):
        if torch.is_grad_enabled():
            fail(NAME, "has no second derivative, which create_graph=True asks for")
        gradients = dict(zip(_WITH_GRADIENT, getattr(torch.ops.custom, f"_{NAME}_backward")(dout, *ctx.saved_tensors, *ctx.setting)))
        if not ctx.token_major:
            gradients["qkv"] = gradients["qkv"].transpose(1, 2)
        return tuple(gradients.get(name) if needed else None for name, needed in zip(_ARGUMENTS, ctx.needs_input_grad))


def _initial_states(given: dict, states: dict[str, Tensor]) -> dict[str, Tensor]:
    """[N, ...]: what each sequence starts from, and whether it is live."""
    slots, cu_seqlens = given["state_indices"], given["cu_seqlens"]
    copy = getattr(torch.ops.custom, f"_{NAME}_initial")
    initial = {name: copy(state, slots, given["has_initial_state"]) for name, state in states.items()}
    if slots is not None:
        initial["live"] = slots >= 0
    sequences = given["qkv"].shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    weight, sizes = given["conv_weight"], [given[name] for name in ("num_v_heads", "head_k_dim", "head_v_dim")]
    if "conv_state" not in initial:
        initial["conv_state"] = weight.new_zeros(sequences, weight.shape[0], weight.shape[2] - 1)
    if "recurrent_state" not in initial and ATTN_TYPES[given["attn_type"]].has_state:
        initial["recurrent_state"] = weight.new_zeros(sequences, *sizes, dtype=torch.float32)
    return initial


_autograd.register(NAME, _FusedLinearAttention)
