"""The operators as typed functions. Each is its torch.ops.custom.npu_* operator and nothing more: same dispatch (CPU, NPU, fake
tensors, `custom_ops.simulate`), same gradients. hc_head, which has no operator of its own, is put together from operators here."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _head

_linear_attention = torch.ops.custom.npu_fused_linear_attention.default
_post = torch.ops.custom.npu_hc_post.default
_pre = torch.ops.custom.npu_hc_pre.default
_inv_rms = torch.ops.custom.npu_hc_pre_inv_rms.default
_sinkhorn = torch.ops.custom.npu_hc_pre_sinkhorn.default


def fused_linear_attention(qkv: Tensor, gate: Tensor, beta: Tensor, conv_weight: Tensor, conv_bias: Tensor | None = None,
                           conv_state: Tensor | None = None, recurrent_state: Tensor | None = None, *, attn_type: str, num_k_heads: int,
                           num_v_heads: int, head_k_dim: int, head_v_dim: int, use_qk_l2norm: bool = True, gate_fold: bool = False,
                           gate_coef: Tensor | None = None, gate_bias: Tensor | None = None, cu_seqlens: Tensor | None = None,
                           state_indices: Tensor | None = None, has_initial_state: Tensor | None = None,
                           token_major: bool = False) -> Tensor:
    """A linear attention layer between its projections: causal convolution, gate and recurrent state, for prefill and decode alike.

    gated_delta_rule and kda, with q | k | v = SiLU(conv(qkv)), value head h on the q and k of key head h // (Hv / Hk), for every token t:

        q, k  = q / sqrt(sum q^2 + 1e-6), k / sqrt(sum k^2 + 1e-6)     with use_qk_l2norm
        S     = exp(gate[t]) * S                                       [dk, dv]; kda: row i by exp(gate[t, i])
        delta = beta[t] * (v[t] - S^T k[t])
        S     = S + k[t] delta^T
        out   = S^T q[t] / sqrt(dk)

    short_conv, with B | C | x = qkv: out = C * conv(B * x), where B * x is rounded to the dtype of qkv.
    conv(u)[t] = sum_j conv_weight[j] * u[t - K + 1 + j] + conv_bias: the last tap is that of token t.

    Args:
        qkv:             [B, D, L], with token_major [B, L, D]  bfloat16 | float16 | float32. D = 2 Hk dk + Hv dv, of short_conv 3 H. A
                         transposed view of the other form is used as it lies, without a copy.
        gate:            [B, L, Hv]; kda [B, L, Hv, dk]; short_conv [B, L, 1], not read. Dtype of qkv or float32. Log of the decay (<= 0).
        beta:            [B, L, Hv]; short_conv [B, L, 1], not read. Dtype of qkv or float32. Write strength, after the sigmoid.
        conv_weight:     [C, 1, K]  dtype of qkv; C = D, of short_conv H; K 1 to 8.
        conv_bias:       [C]  dtype of qkv.
        conv_state:      [slots, C, K - 1]  dtype of qkv, contiguous. WRITTEN: the last inputs of the convolution, newest last.
        recurrent_state: [slots, Hv, dk, dv]  float32, contiguous. WRITTEN. Not of short_conv.
        attn_type:       "gated_delta_rule" | "kda" | "short_conv".
        num_k_heads, num_v_heads, head_k_dim, head_v_dim: Hk, Hv (a multiple of Hk), dk, dv (1 to 512); short_conv: 1, 1, H, H.
        gate_fold:       gate and beta are the raw projections a and b: the gate is gate_coef * softplus(a + gate_bias), beta sigmoid(b).
        gate_coef:       [Hv]  float32, -exp(A_log). With gate_fold only.
        gate_bias:       [Hv]; kda [Hv, dk]  float32, dt_bias. With gate_fold only.
        cu_seqlens:      [N + 1]  int32 | int64: sequence i is tokens cu_seqlens[i] up to cu_seqlens[i + 1] of the one row (B = 1);
                         may be empty. Without it every row is a sequence and N = B.
        state_indices:   [N]  int32 | int64: the slot of each sequence; -1 is padding, whose output is 0 and which touches no state.
                         Without it slots = N.
        has_initial_state: [N]  bool: False takes the state as zeros, whatever is in it, and overwrites it.
        A state that is left out is zeros and not kept; one that is given shares no memory with another argument. Other tensors that are
        not contiguous are made so.
    Returns: [B, L, Hv, dv], short_conv [B, L, 1, H], dtype of qkv; computed in float32, rounded once to nearest even. A new tensor.
    Raises: RuntimeError naming the argument that does not fit, before anything runs or is written. The values of cu_seqlens (not in order)
        and state_indices (no such slot, one slot twice) are checked on the CPU; the NPU does not read them on the host: there such a
        sequence gives NaN and touches no state, and a slot that two sequences name is a race.
    Accuracy: on the CPU a call gives the same bits as any split of its tokens into several calls that carry the states, on any number of
        threads and beside any other sequences.
    Gradient: of qkv, gate, beta, conv_weight, conv_bias, gate_coef and gate_bias, computed in float32 by PyTorch in chunks of 64 tokens
        (kda 16). The states a sequence starts from count as constants: one that requires a gradient is refused, so is a second derivative.
    Source: gated delta rule (arXiv 2412.06464), Kimi Delta Attention (arXiv 2510.26692), the short convolution of LFM2.
    """
    # The dispatcher takes half a microsecond for every keyword it is given: a decode step leaves defaults out.
    if use_qk_l2norm and not gate_fold and gate_coef is gate_bias is cu_seqlens is state_indices is has_initial_state is None:
        return _linear_attention(qkv, gate, beta, conv_weight, conv_bias, conv_state, recurrent_state, attn_type=attn_type,
                                 num_k_heads=num_k_heads, num_v_heads=num_v_heads, head_k_dim=head_k_dim, head_v_dim=head_v_dim,
                                 token_major=token_major)
    return _linear_attention(qkv, gate, beta, conv_weight, conv_bias, conv_state, recurrent_state, attn_type=attn_type,
                             num_k_heads=num_k_heads, num_v_heads=num_v_heads, head_k_dim=head_k_dim, head_v_dim=head_v_dim,
                             use_qk_l2norm=use_qk_l2norm, gate_fold=gate_fold, gate_coef=gate_coef, gate_bias=gate_bias,
                             cu_seqlens=cu_seqlens, state_indices=state_indices, has_initial_state=has_initial_state, token_major=token_major)


def hc_post(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """The output of a block merged into the residual streams, which mix with each other (mHC).

    y[t, j] = post[t, j] * x[t] + sum_i comb[t, i, j] * residual[t, i]

    Args:
        x:        [T, d] or [b, s, d]        bfloat16 | float16 | float32; d at least 1, T may be 0.
        residual: [T, n, d] or [b, s, n, d]  dtype of x; n = hc_mult is 1 to 16.
        post:     [T, n] or [b, s, n]        bfloat16 | float16 | float32, whatever x is; from hc_pre_sinkhorn.
        comb:     [T, n, n] or [b, s, n, n]  dtype of post; row i is the source stream, column j the destination.
        Tensors that are not contiguous are made so.
    Returns: shape and dtype of residual; products and sums in float32, rounded once to nearest even. A new tensor: no input is
        written, none is aliased.
    Raises: RuntimeError naming the argument that does not fit, before anything runs.
    Accuracy: the float64 oracle rounded to the dtype of x, or its neighbour at a rounding tie; float32 1e-5 of the summands. The CPU
        result does not depend on the number of threads nor on the other tokens of the call.
    Gradient: of all four tensors, computed in float32; a second derivative works too.
    Source: residual update of DeepSeek mHC (arXiv 2512.24880); docs/ops/hc_post.md.
    """
    return _post(x, residual, post, comb)


def hc_pre(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, *, hc_mult: int = 4, hc_sinkhorn_iters: int = 20,
           norm_eps: float = 1e-6, hc_eps: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    """The residual streams merged into the input of a block, and the weights that merge its output again: all that stands before a
    block (mHC).

    With n = hc_mult, and x[t] flattened to n * d values:

        rs[t]         = 1 / sqrt(mean of x[t]^2 + norm_eps)
        mixes[t, m]   = sum_k x[t, k] * hc_fn[m, k]
        y, post, comb = hc_pre_sinkhorn(mixes, rs, hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)

    Args:
        x:        [T, n, d] or [b, s, n, d]   bfloat16 | float16 | float32; d at least 1, T may be 0.
        hc_fn:    [(2 + n) * n, n * d]        float32; rows in the order pre, post, comb (row-major, source stream first).
        hc_scale: [3]                         float32; of pre, post, comb.
        hc_base:  [(2 + n) * n]               float32.
        hc_mult:  n, 1 to 16.
        hc_sinkhorn_iters: at least 1; iteration 1 is the softmax and one column step.
        norm_eps: of the mean square; finite, >= 0.
        hc_eps:   of the weights and of the Sinkhorn sums; finite, >= 0.
        Tensors that are not contiguous are made so.
    Returns:
        y [T, d] or [b, s, d] in the dtype of x, post [..., n] and comb_frag [..., n, n] in float32: what hc_post takes. New tensors: no
        input is written, none is aliased.
    Raises: RuntimeError naming the argument that does not fit, before anything runs.
    Accuracy: every product of x and hc_fn is that of float32, sums are in float32; docs/ops/hc_pre.md has the bound. The CPU result
        does not depend on the number of threads nor on the other tokens of the call.
    Gradient: of all four tensors, computed in float32; a second derivative works too.
    Source: DeepSeek mHC (arXiv 2512.24880); docs/ops/hc_pre.md.
    """
    return _pre(x, hc_fn, hc_scale, hc_base, hc_mult=hc_mult, hc_sinkhorn_iters=hc_sinkhorn_iters, norm_eps=norm_eps, hc_eps=hc_eps)


def hc_head(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, *, norm_eps: float = 1e-6, hc_eps: float = 1e-6) -> Tensor:
    """The residual streams merged into one after the last layer (mHC): the weights of hc_pre alone, no post, no comb.

        y[t] = sum_i pre[t, i] * x[t, i],  pre[t, i] = sigmoid(rs[t] * sum_k x[t, k] * hc_fn[i, k] * hc_scale + hc_base[i]) + hc_eps

    with rs as in hc_pre. Not an operator of its own: hc_pre_inv_rms and PyTorch's, on whatever device x is.

    Args:
        x:        [T, n, d] or [b, s, n, d]  bfloat16 | float16 | float32; n is 1 to 16, d at least 1, T may be 0.
        hc_fn:    [n, n * d]                 float32.
        hc_scale: [1]                        float32.
        hc_base:  [n]                        float32.
        norm_eps, hc_eps: finite, >= 0.
    Returns: [T, d] or [b, s, d], dtype of x; computed in float32, rounded once to nearest even.
    Raises: RuntimeError naming the argument that does not fit, before anything runs.
    Gradient: of all four tensors.
    Source: DeepSeek mHC (arXiv 2512.24880); docs/ops/hc_pre.md.
    """
    return _head.compute(x, hc_fn, hc_scale, hc_base, norm_eps, hc_eps)


def hc_pre_inv_rms(x: Tensor, *, epsilon: float = 1e-20) -> Tensor:
    """Reciprocal root mean square of every token over all its residual streams (mHC).

    y[t] = 1 / sqrt(sum_{i, c} x[t, i, c]^2 / (hc_mult * d) + epsilon)

    Args:
        x:       [T, hc_mult, d] or [b, s, hc_mult, d]  bfloat16 | float16 | float32; hc_mult is 1 to 16, d at least 1,
                 T may be 0; made contiguous if it is not.
        epsilon: finite, >= 0. The default 1e-20 is the published one of this operator; DeepSeek-V4 passes 1e-6, which is also
                 the default of the OpDef attribute.
    Returns: [T, 1] or [b, s, 1], float32. inf for a row of zeros with epsilon = 0.
    Raises: RuntimeError naming the argument that does not fit, before anything runs.
    Accuracy: 4e-6 relative to the float64 oracle for every finite x, also where x^2 leaves the range of float32.
    Gradient: dx = -(dy * y^3 / (hc_mult * d)) * x; a second derivative works too.
    Source: RMS step of hc_pre, DeepSeek mHC (arXiv 2512.24880); docs/ops/hc_pre_inv_rms.md.
    """
    return _inv_rms(x, epsilon=epsilon)


def hc_pre_sinkhorn(mixes: Tensor, rsqrt: Tensor, hc_scale: Tensor, hc_base: Tensor, x: Tensor, hc_mult: int = 4,
                    hc_sinkhorn_iters: int = 20, hc_eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """Mixing weights of a token, its doubly stochastic residual mix, and the streams merged into the block's input (mHC).

    With n = hc_mult and m = mixes[t] * rsqrt[t], cut into n + n + n * n values (comb row-major, row: source stream):

        pre[i]     = sigmoid(m[i] * hc_scale[0] + hc_base[i]) + hc_eps
        post[j]    = 2 * sigmoid(m[n + j] * hc_scale[1] + hc_base[n + j])
        C[i, j]    = softmax over j of m[2n + n i + j] * hc_scale[2] + hc_base[2n + n i + j], plus hc_eps
        C         /= sum_i C + hc_eps, then hc_sinkhorn_iters - 1 times: C /= sum_j C + hc_eps; C /= sum_i C + hc_eps
        y[t, c]    = sum_i pre[i] * x[t, i, c]

    Args:
        mixes:    [T, (2 + n) * n] or [b, s, (2 + n) * n]  float32; the projection before it is multiplied by rsqrt.
        rsqrt:    [T], [T, 1], [b, s] or [b, s, 1]         float32; from hc_pre_inv_rms.
        hc_scale: [3]            float32; of pre, post, comb.
        hc_base:  [(2 + n) * n]  float32.
        x:        [T, n, d] or [b, s, n, d]  bfloat16 | float16 | float32; d at least 1, T may be 0.
        hc_mult:  n, 1 to 16.
        hc_sinkhorn_iters: at least 1.
        hc_eps:   finite, >= 0. The default 1e-5 is the published one of this operator; DeepSeek-V4 passes 1e-6, which is also the
                  default of the OpDef attribute. The two differ by up to 1.5e-4 in comb on mild logits, much more on peaked ones.
                  At 0 a logit spread over 87 within a row underflows float32 and may give NaN.
        Tensors that are not contiguous are made so.
    Returns:
        y [T, d] or [b, s, d] in the dtype of x; post [..., n] and comb_frag [..., n, n] in float32. Computed in float32, y
        rounded once to nearest even. Columns of comb_frag sum to 1 - hc_eps or so; rows do when the rounds have converged.
    Raises: RuntimeError naming the argument that does not fit, before anything runs.
    Accuracy: post and comb_frag 1e-5 of the float64 oracle, y 1e-4 or one ulp of its dtype at a rounding tie. The CPU result does not
        depend on the number of threads nor on the other tokens of the call.
    Gradient: of all five tensors, computed in float32 by running the rounds again; a second derivative works too.
    Source: Sinkhorn step of hc_pre, DeepSeek mHC (arXiv 2512.24880); docs/ops/hc_pre_sinkhorn.md.
    """
    return _sinkhorn(mixes, rsqrt, hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)
