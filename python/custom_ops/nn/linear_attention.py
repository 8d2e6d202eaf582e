"""Layers of linear attention. Their parameters carry the names that transformers gives them, so its weights load by name."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import functional
from .._fake import MOST, check_range
from ..ops._attn_types import ATTN_TYPES, MAX_TAPS, Heads
from ..ops.fused_linear_attention import check_heads
from ..state import LinearAttentionState
from .few_tokens import Linear, project


class _Layer(nn.Module):
    """What the layers share: their dimensions in the operator's words, and the state."""

    def __init__(self, attn_type: str, hidden_size: int, conv_kernel_size: int, **heads: int):
        super().__init__()
        check_range(type(self).__name__, "hidden_size", hidden_size, 1, MOST)
        check_heads(type(self).__name__, ATTN_TYPES[attn_type], Heads(*heads.values()))
        check_range(type(self).__name__, "conv_kernel_size", conv_kernel_size, 1, MAX_TAPS)
        self.attn_type, self.hidden_size, self.conv_kernel_size, self._heads = attn_type, hidden_size, conv_kernel_size, heads

    def new_state(self, batch: int = 1) -> LinearAttentionState:
        """An empty state for this layer, on its device and in its dtype."""
        weight = self.out_proj.weight
        return LinearAttentionState(self.attn_type, conv_kernel_size=self.conv_kernel_size, batch=batch, dtype=weight.dtype,
                                    device=weight.device, **self._heads)

    def _check(self, hidden_states: Tensor, state: LinearAttentionState | None) -> None:
        name = type(self).__name__
        if hidden_states.dim() != 3 or hidden_states.shape[2] != self.hidden_size:
            raise RuntimeError(f"{name}: hidden_states must be [B, L, {self.hidden_size}], got {list(hidden_states.shape)}")
        if state is None:
            return
        if not isinstance(state, LinearAttentionState):
            raise RuntimeError(f"{name}: state must be a LinearAttentionState, got {type(state).__name__}; new_state makes one")
        if state.layout.of_layer() != (self.attn_type, *self._heads.values(), self.conv_kernel_size):
            raise RuntimeError(f"{name}: the state is that of another layer, {state.layout}; new_state makes one")

    def _attend(self, state: LinearAttentionState | None, qkv: Tensor, gate: Tensor, beta: Tensor, conv: nn.Conv1d, **options) -> Tensor:
        # Under autocast qkv is narrower than the weights.
        weight, bias = (tensor if tensor is None else tensor.to(qkv.dtype) for tensor in (conv.weight, conv.bias))
        if state is not None:
            return state.attend(qkv, gate, beta, weight, bias, token_major=True, **options)
        return functional.fused_linear_attention(qkv, gate, beta, weight, bias, attn_type=self.attn_type, token_major=True, **self._heads,
                                                 **options)


class GatedDeltaNet(_Layer):
    """The linear attention layer of Qwen3-Next and Qwen3.5: projections, npu_fused_linear_attention, gated norm, output projection.

        qkv, z, b, a = projections of x;  o = fused_linear_attention(qkv, a, b, gate_fold)
        y = out_proj(norm.weight * o / sqrt(mean of o^2 over dv + norm_eps) * act(z))

    Args:
        hidden_size: hid.
        num_k_heads, num_v_heads, head_k_dim, head_v_dim: Hk, Hv (a multiple of Hk), dk, dv; linear_num_key_heads ... of the configuration.
        conv_kernel_size: K, linear_conv_kernel_dim.
        norm_eps:         rms_norm_eps.
        output_gate:      act, "silu" | "sigmoid".
    Parameters, named as in Qwen3.5:
        in_proj_qkv.weight [2 Hk dk + Hv dv, hid], in_proj_z.weight [Hv dv, hid], in_proj_b.weight, in_proj_a.weight [Hv, hid],
        conv1d.weight [2 Hk dk + Hv dv, 1, K], A_log, dt_bias [Hv], norm.weight [dv], out_proj.weight [hid, Hv dv].
        load_state_dict also takes Qwen3-Next's in_proj_qkvz and in_proj_ba, which interleave the key heads, and puts them in order.
        A_log and dt_bias are used in float32 whatever the module was converted to.

    Example:
        >>> import torch, custom_ops
        >>> layer = custom_ops.nn.GatedDeltaNet(64, num_k_heads=2, num_v_heads=4, head_k_dim=16, head_v_dim=16)
        >>> state = layer.new_state(batch=3)
        >>> prompt = layer(torch.randn(3, 7, 64), state)
        >>> layer(torch.randn(3, 1, 64), state).shape
        torch.Size([3, 1, 64])
    """

    def __init__(self, hidden_size: int, num_k_heads: int, num_v_heads: int, head_k_dim: int, head_v_dim: int, conv_kernel_size: int = 4, *,
                 norm_eps: float = 1e-6, output_gate: str = "silu", device=None, dtype=None):
        super().__init__("gated_delta_rule", hidden_size, conv_kernel_size, num_k_heads=num_k_heads, num_v_heads=num_v_heads,
                         head_k_dim=head_k_dim, head_v_dim=head_v_dim)
        if output_gate not in ("silu", "sigmoid"):
            raise ValueError(f"GatedDeltaNet: output_gate must be silu or sigmoid, got {output_gate!r}")
        self.num_k_heads, self.num_v_heads, self.head_k_dim, self.head_v_dim = num_k_heads, num_v_heads, head_k_dim, head_v_dim
        self.norm_eps, self.output_gate = norm_eps, output_gate
        options = {"bias": False, "device": device, "dtype": dtype}
        keys, values = num_k_heads * head_k_dim, num_v_heads * head_v_dim
        self.in_proj_qkv = Linear(hidden_size, 2 * keys + values, **options)
        self.in_proj_z = Linear(hidden_size, values, **options)
        self.in_proj_b = Linear(hidden_size, num_v_heads, **options)
        self.in_proj_a = Linear(hidden_size, num_v_heads, **options)
        self.conv1d = _depthwise(2 * keys + values, conv_kernel_size, **options)
        self.A_log = nn.Parameter(torch.empty(num_v_heads, device=device, dtype=dtype))
        self.dt_bias = nn.Parameter(torch.empty(num_v_heads, device=device, dtype=dtype))
        self.norm = nn.RMSNorm(head_v_dim, norm_eps, device=device, dtype=dtype)  # its weight; the gate stands inside the rounding
        self.out_proj = Linear(values, hidden_size, **options)
        self.reset_parameters()
        self.register_load_state_dict_pre_hook(_separate_interleaved)

    def reset_parameters(self) -> None:
        """A_log the logarithm of 0.01 to 16, dt_bias 1, norm 1, the rest as of nn.Linear and nn.Conv1d."""
        for module in (self.in_proj_qkv, self.in_proj_z, self.in_proj_b, self.in_proj_a, self.conv1d, self.norm, self.out_proj):
            module.reset_parameters()
        with torch.no_grad():
            self.A_log.uniform_(0.01, 16).log_()
        nn.init.ones_(self.dt_bias)

    def forward(self, hidden_states: Tensor, state: LinearAttentionState | None = None, attention_mask: Tensor | None = None, *,
                cu_seqlens: Tensor | None = None, state_indices: Tensor | None = None, has_initial_state: Tensor | None = None) -> Tensor:
        """[B, L, hid], dtype of hidden_states.

        Args:
            hidden_states:  [B, L, hid].
            state:          continued and written; without one the layer starts from zeros and keeps nothing.
            attention_mask: [B, L], 0 at padding: its hidden states count as zeros, as in transformers. That is exact where padding
                            stands before the first token of a sequence; behind or between tokens it would move the state: pack those by
                            cu_seqlens.
            cu_seqlens, state_indices, has_initial_state: as of custom_ops.fused_linear_attention.
        """
        self._check(hidden_states, state)
        hidden_states = _masked(hidden_states, attention_mask)
        projected = project(hidden_states, self.in_proj_qkv, self.in_proj_z, self.in_proj_b, self.in_proj_a)
        return self.out_proj(self.attended(*projected, state, cu_seqlens=cu_seqlens, state_indices=state_indices,
                                           has_initial_state=has_initial_state))

    def attended(self, qkv: Tensor, z: Tensor, b: Tensor, a: Tensor, state: LinearAttentionState | None, **sequences) -> Tensor:
        """[B, L, Hv dv], from the projections to what out_proj takes."""
        out = self._attend(state, qkv, a, b, self.conv1d, gate_fold=True, gate_coef=-self.A_log.float().exp(),
                           gate_bias=self.dt_bias.float(), **sequences)
        return self._gated_norm(out, z.view(out.shape)).flatten(-2)

    def _gated_norm(self, out: Tensor, z: Tensor) -> Tensor:
        """Norm before gate. Rounded where transformers rounds: normed values, their product with the weight, the result."""
        normed = F.rms_norm(out.float(), (self.head_v_dim,), eps=self.norm_eps).to(out.dtype)
        gate = F.silu(z.float()) if self.output_gate == "silu" else torch.sigmoid(z.float())
        return (self.norm.weight * normed * gate).to(out.dtype)

    def extra_repr(self) -> str:
        return (f"num_k_heads={self.num_k_heads}, num_v_heads={self.num_v_heads}, head_k_dim={self.head_k_dim}, "
                f"head_v_dim={self.head_v_dim}, output_gate={self.output_gate}")


class ShortConv(_Layer):
    """The convolution layer of LFM2: y = out_proj(C * conv(B * x)) with B | C | x = in_proj(hidden_states).

    Args:
        hidden_size:      H.
        conv_kernel_size: K, conv_L_cache of the configuration.
        bias:             conv_bias of the configuration: of the convolution and of both projections.
    Parameters, named as in transformers: in_proj.weight [3 H, H], conv.weight [H, 1, K], out_proj.weight [H, H]; with bias theirs too.
    """

    def __init__(self, hidden_size: int, conv_kernel_size: int = 3, *, bias: bool = False, device=None, dtype=None):
        super().__init__("short_conv", hidden_size, conv_kernel_size, num_k_heads=1, num_v_heads=1, head_k_dim=hidden_size,
                         head_v_dim=hidden_size)
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.in_proj = Linear(hidden_size, 3 * hidden_size, **options)
        self.conv = _depthwise(hidden_size, conv_kernel_size, **options)
        self.out_proj = Linear(hidden_size, hidden_size, **options)

    def forward(self, hidden_states: Tensor, state: LinearAttentionState | None = None, attention_mask: Tensor | None = None, *,
                cu_seqlens: Tensor | None = None, state_indices: Tensor | None = None, has_initial_state: Tensor | None = None) -> Tensor:
        """[B, L, H]; arguments as of GatedDeltaNet.forward. With bias padding is not neutral, here as in transformers: in_proj(0) is
        not 0."""
        self._check(hidden_states, state)
        hidden_states = _masked(hidden_states, attention_mask)
        return self.out_proj(self.convolved(self.in_proj(hidden_states), state, cu_seqlens=cu_seqlens, state_indices=state_indices,
                                            has_initial_state=has_initial_state))

    def convolved(self, qkv: Tensor, state: LinearAttentionState | None, **sequences) -> Tensor:
        """[B, L, H], from in_proj to what out_proj takes."""
        unused = qkv[..., :1]
        return self._attend(state, qkv, unused, unused, self.conv, **sequences).flatten(-2)


def _depthwise(channels: int, taps: int, **options) -> nn.Conv1d:
    """Holds weight [channels, 1, taps] and bias under transformers' names; it is not called."""
    return nn.Conv1d(channels, channels, taps, groups=channels, **options)


def _masked(hidden_states: Tensor, attention_mask: Tensor | None) -> Tensor:
    if attention_mask is None:
        return hidden_states
    if attention_mask.shape != hidden_states.shape[:2]:
        raise RuntimeError(f"attention_mask must be [B, L] = {list(hidden_states.shape[:2])}, got {list(attention_mask.shape)}")
    return hidden_states.masked_fill((attention_mask == 0).unsqueeze(-1), 0)  # a product would keep NaN


def grouped_rows(groups: int, parts: dict[str, int]) -> dict[str, Tensor]:
    """The rows of each part of a matrix that holds, group after group (a head), so many rows of each part."""
    rows = torch.arange(groups * sum(parts.values())).unflatten(0, (groups, -1)).split(list(parts.values()), 1)
    return {part: index.flatten() for part, index in zip(parts, rows)}


def _separate_interleaved(layer: GatedDeltaNet, state_dict: dict, prefix: str, *_) -> None:
    """Qwen3-Next's in_proj_qkvz and in_proj_ba hold, key head after key head, rows of q, k, v, z and of b, a."""
    each = layer.num_v_heads // layer.num_k_heads  # value heads of a key head
    values = each * layer.head_v_dim
    for name, parts in (("in_proj_qkvz", {"q": layer.head_k_dim, "k": layer.head_k_dim, "v": values, "z": values}),
                        ("in_proj_ba", {"b": each, "a": each})):
        weight = state_dict.pop(f"{prefix}{name}.weight", None)
        if weight is None:
            continue
        wanted = layer.num_k_heads * sum(parts.values())
        if weight.shape[:1] != (wanted,):
            raise RuntimeError(f"GatedDeltaNet: {prefix}{name}.weight must have {wanted} rows, got {list(weight.shape)}")
        rows = grouped_rows(layer.num_k_heads, parts)
        if name == "in_proj_qkvz":
            rows["qkv"] = torch.cat([rows.pop(part) for part in "qkv"])
        for part, index in rows.items():
            state_dict[f"{prefix}in_proj_{part}.weight"] = weight[index.to(weight.device)]
