"""npu_fused_linear_attention: causal convolution and recurrent state of a linear attention layer, prefill and decode."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import FLOATS, check_device, check_dtype, check_range, check_sizes, dtype_text, fail, shape_text
from ._attn_types import ATTN_TYPES, MAX_HEAD_DIM, MAX_TAPS, AttnType, Heads
from ._opdef import OpDefCall

NAME = "npu_fused_linear_attention"
OP_TYPE = "FusedLinearAttention"
_MOST = 2**31 - 1
_INDICES = (torch.int32, torch.int64)


def check(qkv: Tensor, gate: Tensor, beta: Tensor, conv_weight: Tensor, conv_bias: Tensor | None, conv_state: Tensor | None,
          recurrent_state: Tensor | None, *, attn_type: str, num_k_heads: int, num_v_heads: int, head_k_dim: int, head_v_dim: int,
          gate_fold: bool, gate_coef: Tensor | None, gate_bias: Tensor | None, cu_seqlens: Tensor | None, state_indices: Tensor | None,
          has_initial_state: Tensor | None, token_major: bool) -> tuple[AttnType, Heads]:
    kind = _check_type(attn_type)
    heads = Heads(num_k_heads, num_v_heads, head_k_dim, head_v_dim)
    _check_heads(kind, heads)
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


def _check_heads(kind: AttnType, heads: Heads) -> None:
    most = MAX_HEAD_DIM if kind.has_state else _MOST
    check_range(NAME, "num_k_heads", heads.keys, 1, _MOST)
    check_range(NAME, "num_v_heads", heads.values, 1, _MOST)
    check_range(NAME, "head_k_dim", heads.key_dim, 1, most)
    check_range(NAME, "head_v_dim", heads.value_dim, 1, most)
    if not kind.has_heads and (heads.keys != 1 or heads.values != 1 or heads.key_dim != heads.value_dim):
        fail(NAME, f"attn_type {kind.name} takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim, got {heads.keys}, "
                   f"{heads.values}, {heads.key_dim} and {heads.value_dim}")
    if heads.values % heads.keys:
        fail(NAME, f"num_v_heads must be a multiple of num_k_heads, got {heads.values} and {heads.keys}")


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
    return indices if indices is None or indices.dtype == torch.int32 else indices.clamp(-(2**31), _MOST).to(torch.int32)


class _FusedLinearAttention(torch.autograd.Function):
    """Without a gradient, which backward says; the states are no part of the graph."""

    @staticmethod
    def forward(*arguments):
        names = [argument.name for argument in _OVERLOAD._schema.arguments]
        named = dict(zip(names, arguments, strict=True))
        positional = [named.pop(argument.name) for argument in _OVERLOAD._schema.arguments if not argument.kwarg_only]
        return _autograd.below(_OVERLOAD, *positional, **named)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        fail(NAME, "there is no gradient")


_OVERLOAD = torch.ops.custom.npu_fused_linear_attention.default
_autograd.register(NAME, _FusedLinearAttention)
