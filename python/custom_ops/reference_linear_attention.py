"""npu_fused_linear_attention in NumPy float64: token after token, formula by formula. What every kernel is compared with."""

import numpy as np
import torch

from .reference import _sigmoid, round_to, to_float64

L2_EPS = 1e-6


def fused_linear_attention(qkv, gate, beta, conv_weight, conv_bias=None, conv_state=None, recurrent_state=None, *, attn_type,
                           num_k_heads, num_v_heads, head_k_dim, head_v_dim, use_qk_l2norm=True, gate_fold=False, gate_coef=None,
                           gate_bias=None, cu_seqlens=None, state_indices=None, has_initial_state=None, token_major=False):
    """(attn_out [B, L, Hv, dv], conv_state, recurrent_state): the states after the call as new arrays, None where none is given.

    Arguments as of the operator, torch tensors or arrays; nothing is written. short_conv rounds B * x to the dtype of a torch qkv.
    """
    dtype = qkv.dtype if isinstance(qkv, torch.Tensor) else torch.float64
    qkv, gate, beta, weight = map(to_float64, (qkv, gate, beta, conv_weight))
    weight = weight[:, 0]
    bias = np.zeros(len(weight)) if conv_bias is None else to_float64(conv_bias)
    conv_state, recurrent_state = (None if s is None else to_float64(s).copy() for s in (conv_state, recurrent_state))
    if not token_major:
        qkv = qkv.swapaxes(1, 2)
    batch, length = qkv.shape[:2]
    if cu_seqlens is None:
        places = [(b, slice(0, length)) for b in range(batch)]
    else:
        ends = [int(end) for end in cu_seqlens]
        places = [(0, slice(first, last)) for first, last in zip(ends, ends[1:])]
    slots = range(len(places)) if state_indices is None else [int(slot) for slot in state_indices]
    begins = [True] * len(places) if has_initial_state is None else [bool(has) for has in has_initial_state]
    if gate_fold:
        gate, beta = folded_gate(gate, gate_coef, gate_bias), _sigmoid(beta)

    out = np.zeros((batch, length, num_v_heads, head_v_dim))
    for (row, tokens), slot, has_state in zip(places, slots, begins):
        if slot == -1:  # padding
            continue
        window = initial(conv_state, slot, has_state, (len(weight), weight.shape[1] - 1))
        x = qkv[row, tokens]
        if attn_type == "short_conv":
            out[row, tokens, 0], window = short_conv(x, weight, bias, window, dtype)
        else:
            x, window = causal_conv(x, weight, bias, window)
            state = initial(recurrent_state, slot, has_state, (num_v_heads, head_k_dim, head_v_dim))
            q, k, v = heads_of(x * _sigmoid(x), num_k_heads, num_v_heads, head_k_dim, head_v_dim, use_qk_l2norm)
            g = gate[row, tokens] if attn_type == "kda" else gate[row, tokens, :, None]
            out[row, tokens], state = delta_rule(q, k, v, g, beta[row, tokens], state)
            if recurrent_state is not None:
                recurrent_state[slot] = state
        if conv_state is not None:
            conv_state[slot] = window
    return out, conv_state, recurrent_state


def folded_gate(raw, coef, bias) -> np.ndarray:
    """[B, L, Hv] or [B, L, Hv, dk]: gate_coef * softplus(raw + gate_bias)."""
    coef, x = to_float64(coef), raw + to_float64(bias)
    softplus = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return (coef if x.ndim == 3 else coef[:, None]) * softplus


def initial(states, slot: int, has_state: bool, shape: tuple) -> np.ndarray:
    return states[slot] if states is not None and has_state else np.zeros(shape)


def causal_conv(x, weight, bias, window) -> tuple[np.ndarray, np.ndarray]:
    """x [L, C] after the state [C, K - 1]: the convolution [L, C] and the last K - 1 inputs [C, K - 1]."""
    taps = weight.shape[1]
    inputs = np.concatenate([window.T, x])
    y = sum((inputs[j : j + len(x)] * weight[:, j] for j in range(taps)), bias)
    return y, inputs[len(inputs) - (taps - 1) :].T


def short_conv(bcx, weight, bias, window, dtype) -> tuple[np.ndarray, np.ndarray]:
    """[L, 3 H] -> [L, H]: C * conv(B * x); what the state keeps, B * x, is rounded to `dtype` before its use."""
    b, c, x = np.split(bcx, 3, axis=1)
    y, window = causal_conv(round_to(b * x, dtype), weight, bias, window)
    return c * y, window


def heads_of(x, key_heads, value_heads, key_dim, value_dim, use_qk_l2norm):
    """q, k [L, Hv, dk] and v [L, Hv, dv] of x [L, D]: value head h has the q and k of key head h // (Hv // Hk)."""
    keys = key_heads * key_dim
    q, k = (part.reshape(len(x), key_heads, key_dim) for part in (x[:, :keys], x[:, keys : 2 * keys]))
    if use_qk_l2norm:
        q, k = (part / np.sqrt((part**2).sum(-1, keepdims=True) + L2_EPS) for part in (q, k))
    q, k = (np.repeat(part, value_heads // key_heads, axis=1) for part in (q * key_dim**-0.5, k))
    return q, k, x[:, 2 * keys :].reshape(len(x), value_heads, value_dim)


def delta_rule(q, k, v, g, beta, state) -> tuple[np.ndarray, np.ndarray]:
    """out [L, Hv, dv] and the state [Hv, dk, dv] after the last token. g [L, Hv, 1 or dk], beta [L, Hv]."""
    out, state = np.empty(v.shape), state.copy()
    for t in range(len(v)):
        state *= np.exp(g[t])[:, :, None]
        delta = beta[t, :, None] * (v[t] - np.einsum("hkv,hk->hv", state, k[t]))
        state += k[t, :, :, None] * delta[:, None, :]
        out[t] = np.einsum("hkv,hk->hv", state, q[t])
    return out, state
