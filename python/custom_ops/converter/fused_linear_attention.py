"""GE node of npu_fused_linear_attention. The OpDef takes qkv token-major, gate and beta of one dtype, and int32 indices; its outputs of the
states' names are the states, which torchair finds by these names; a state that is not given has none."""

from __future__ import annotations


def convert(qkv, gate, beta, conv_weight, conv_bias=None, conv_state=None, recurrent_state=None, *, attn_type, num_k_heads, num_v_heads,
            head_k_dim, head_v_dim, use_qk_l2norm=True, gate_fold=False, gate_coef=None, gate_bias=None, cu_seqlens=None,
            state_indices=None, has_initial_state=None, token_major=False, meta_outputs=None):
    from torchair import ge

    gates = gate.dtype if gate.dtype == beta.dtype else ge.DataType.DT_FLOAT
    if conv_weight.symsize[2] == 1:
        conv_state = None  # of no elements
    states = {"conv_state": conv_state, "recurrent_state": recurrent_state}
    inputs = {"qkv": qkv if token_major else _transposed(qkv), "gate": _cast(gate, gates), "beta": _cast(beta, gates),
              "conv_weight": conv_weight, "conv_bias": conv_bias, **states, "gate_coef": gate_coef, "gate_bias": gate_bias,
              "cu_seqlens": _int32(cu_seqlens), "state_indices": _int32(state_indices), "has_initial_state": has_initial_state}
    attributes = {"num_k_heads": num_k_heads, "num_v_heads": num_v_heads, "head_k_dim": head_k_dim, "head_v_dim": head_v_dim}
    results = ge.custom_op(
        "FusedLinearAttention",
        inputs=inputs,
        attrs={"attn_type": ge.attr.Str(attn_type), **{name: ge.attr.Int(value) for name, value in attributes.items()},
               "use_qk_l2norm": ge.attr.Bool(use_qk_l2norm), "gate_fold": ge.attr.Bool(gate_fold)},
        outputs=["attn_out", *(name for name, state in states.items() if state is not None)],
    )
    return results[0] if isinstance(results, (list, tuple)) else results


def _cast(tensor, dtype: int):
    from torchair import ge

    return tensor if tensor is None or tensor.dtype == dtype else ge.Cast(tensor, dst_type=dtype)


def _int32(indices):
    """What does not fit stays out of range: a cast keeps the low bits."""
    from torchair import ge
    from torchair._ge_concrete_graph.ge_apis import ClipByValueV2  # torchair.ge has none

    if indices is None or indices.dtype == ge.DataType.DT_INT32:
        return indices
    low, high = (ge.Const(limit, dtype=ge.DataType.DT_INT64) for limit in (-(2**31), 2**31 - 1))
    clipped = ClipByValueV2(indices, low, high)
    clipped.set_meta(indices.meta)
    return ge.Cast(clipped, dst_type=ge.DataType.DT_INT32)


def _transposed(qkv):
    from torchair import ge
    from torchair._ge_concrete_graph.ge_apis import Transpose  # torchair.ge has none

    return Transpose(qkv, ge.Const([0, 2, 1], dtype=ge.DataType.DT_INT64))
