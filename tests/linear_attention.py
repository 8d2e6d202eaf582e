"""Inputs of npu_fused_linear_attention, and its comparison with the float64 oracle."""

from dataclasses import dataclass

import numpy as np
import torch
from compare import Tolerance, assert_matches

import custom_ops
from custom_ops import reference_linear_attention

STATES = ("conv_state", "recurrent_state")


@dataclass(frozen=True)
class Layer:
    """Sizes and flags of a layer. short_conv: H = dv, and no heads."""

    attn_type: str = "gated_delta_rule"
    Hk: int = 2
    Hv: int = 4
    dk: int = 16
    dv: int = 16
    K: int = 4
    dtype: torch.dtype = torch.float32
    bias: bool = False
    fold: bool = False
    l2norm: bool = True
    gates: torch.dtype | None = None  # of gate and beta; None: that of qkv

    def __str__(self):
        flags = "".join(f"-{flag}" for flag in ("bias", "fold") if getattr(self, flag)) + ("" if self.l2norm else "-no_l2norm")
        heads = f"-{self.Hk}x{self.Hv}-{self.dk}x{self.dv}" if self.heads else f"-{self.dv}"
        return f"{self.attn_type}{heads}-K{self.K}-{str(self.dtype).removeprefix('torch.')}{flags}"

    @property
    def heads(self) -> bool:
        return self.attn_type != "short_conv"

    @property
    def channels(self) -> int:
        return 2 * self.Hk * self.dk + self.Hv * self.dv if self.heads else self.dv

    @property
    def qkv_channels(self) -> int:
        return self.channels if self.heads else 3 * self.dv

    @property
    def gate_sizes(self) -> tuple[int, ...]:
        return {"gated_delta_rule": (self.Hv,), "kda": (self.Hv, self.dk), "short_conv": (1,)}[self.attn_type]

    def attributes(self) -> dict:
        heads = (self.Hk, self.Hv, self.dk, self.dv) if self.heads else (1, 1, self.dv, self.dv)
        return dict(zip(("num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"), heads), attn_type=self.attn_type,
                    use_qk_l2norm=self.l2norm, gate_fold=self.fold)

    def tensors(self, rng: torch.Generator, batch: int, length: int, regime: str = "normal", slots: int | None = None) -> dict:
        """Token-major. The states are those of a sequence under way."""
        slots, gates = batch if slots is None else slots, self.gates or self.dtype
        randn = lambda *shape: torch.randn(shape, generator=rng)  # noqa: E731
        rand = lambda *shape: torch.rand(shape, generator=rng)    # noqa: E731
        qkv = randn(batch, length, self.qkv_channels)
        gate = randn(batch, length, *self.gate_sizes) if self.fold else -rand(batch, length, *self.gate_sizes) ** 4 * 4
        beta = randn(batch, length, self.gate_sizes[0]) if self.fold else rand(batch, length, self.gate_sizes[0])
        qkv, gate, beta = REGIMES[regime](qkv, gate, beta, rng)
        weight = randn(self.channels, 1, self.K) / self.K**0.5
        if not self.l2norm:  # beta |k|^2 > 2 would diverge
            weight /= self.dk**0.5
        call = {"qkv": qkv.to(self.dtype), "gate": gate.to(gates), "beta": beta.to(gates),
                "conv_weight": weight.to(self.dtype),
                "conv_bias": randn(self.channels).to(self.dtype) if self.bias else None,
                "conv_state": randn(slots, self.channels, self.K - 1).to(self.dtype),
                "recurrent_state": randn(slots, self.Hv, self.dk, self.dv) / 4 if self.heads else None}
        if self.fold:
            call |= {"gate_coef": -rand(self.Hv), "gate_bias": randn(*self.gate_sizes)}
        return call


REGIMES = {
    "normal": lambda qkv, gate, beta, rng: (qkv, gate, beta),
    "no_decay": lambda qkv, gate, beta, rng: (qkv, gate * 0, beta),
    "slow": lambda qkv, gate, beta, rng: (qkv, gate * 0 - 1e-4, beta),
    "fast": lambda qkv, gate, beta, rng: (qkv, gate * 0 - 20, beta),
    "forget": lambda qkv, gate, beta, rng: (qkv, gate * 0 - 100, beta),
    "sparse": lambda qkv, gate, beta, rng: (qkv, gate * (torch.rand(gate.shape, generator=rng) < 0.5), beta),
    "beta0": lambda qkv, gate, beta, rng: (qkv, gate, beta * 0),
    "beta1": lambda qkv, gate, beta, rng: (qkv, gate, beta * 0 + 1),
    "beta2": lambda qkv, gate, beta, rng: (qkv, gate, beta * 0 + 2),
    "identical": lambda qkv, gate, beta, rng: (qkv[:, :1].expand(qkv.shape), gate * 0, beta * 0 + 0.99),
    "zeros": lambda qkv, gate, beta, rng: (qkv * 0, gate, beta),
    "tiny": lambda qkv, gate, beta, rng: (qkv * 1e-4, gate, beta),
    "large": lambda qkv, gate, beta, rng: (qkv * 30, gate, beta),
    "outliers": lambda qkv, gate, beta, rng: (qkv * (1 + 300 * (torch.rand(qkv.shape, generator=rng) < 0.01)), gate, beta),
}


def clone(call: dict) -> dict:
    return {name: value.clone() if name in STATES and value is not None else value for name, value in call.items()}


def run(layer: Layer, call: dict, token_major: bool = True):
    """(attn_out, conv_state, recurrent_state) after the call, whose own states stay as they are."""
    call = clone(call)
    out = custom_ops.fused_linear_attention(**call, **layer.attributes(), token_major=token_major)
    return out, call["conv_state"], call["recurrent_state"]


def assert_same(got, want):
    for name, one, other in zip(("attn_out", *STATES), got, want):
        assert (one is None) == (other is None), name
        assert one is None or torch.equal(one, other), name


# Of the root mean square of a head. The recurrence multiplies and adds in float32 and corrects its own errors (facts 7.3: 4e-7 of the RMS
# after 4096 tokens); single elements lie some standard deviations above that, and sums of 512 terms add rounding of their own.
RECURRENT = 1e-5


def assert_matches_oracle(layer: Layer, call: dict, got, where: str = "", bound: float = RECURRENT):
    want = reference_linear_attention.fused_linear_attention(**call, **layer.attributes(), token_major=True)
    out, conv_state, state = got
    wide = out.dtype == torch.float32
    tolerance = Tolerance(bound if wide else 0, 1e-36, tie=0 if wide else bound)
    assert_matches("attn_out", out, want[0], tolerance, magnitude=_rms(want[0], (1, 3)), where=where)
    if conv_state is not None:
        assert conv_state.shape == want[1].shape and np.array_equal(conv_state.double().numpy(), want[1], equal_nan=True), f"conv_state {where}"
    if state is not None:
        assert_matches("recurrent_state", state, want[2], Tolerance(bound, 1e-36), magnitude=_rms(want[2], (2, 3)), where=where)


def _rms(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.sqrt(np.nanmean(values**2, axis=axes, keepdims=True)) if values.size else values, values.shape)
