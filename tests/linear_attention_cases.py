"""Calls of FusedLinearAttention on the simulated chips, through the op package: cases, their inputs, the call."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from inputs import DTYPES, SIMULATED, uniform

import custom_ops

ROOT = Path(__file__).resolve().parents[1]
SHORT_CONV, RECURRENT, CHUNKED = 0, 1, 2  # tiling keys
GDN, KDA, CONV = "gated_delta_rule", "kda", "short_conv"
on_every_chip = pytest.mark.parametrize("soc", SIMULATED)
FAMILIES = ("ascend910_93", "ascend950")  # 910B has the kernels of 910_93


@functools.cache
def kernel(soc):
    return custom_ops.sim.build(ROOT, soc=soc, ops=["FusedLinearAttention"])


@dataclass(frozen=True)
class Case:
    type: str = GDN
    batch: int = 1
    length: int = 1
    heads: tuple = (1, 2)    # Hk, Hv
    dims: tuple = (16, 16)   # dk, dv; short_conv: H twice
    taps: int = 4
    dtype: str = "bfloat16"
    gate: str = ""           # dtype of gate and beta; that of qkv by default
    law: str = "model"
    bias: bool = True
    states: str = "both"     # "both", "none", "conv", "recurrent"
    fold: bool = False
    norm: bool = True
    ends: tuple = ()         # cu_seqlens
    slots: tuple = ()        # state_indices
    has: tuple = ()          # has_initial_state
    why: str = ""

    def __str__(self):
        parts = [self.type, f"B{self.batch}", f"L{self.length}", "h{}-{}".format(*self.heads), "d{}-{}".format(*self.dims), f"K{self.taps}",
                 self.dtype, self.gate and f"gate-{self.gate}", self.law, "" if self.bias else "nobias", self.states, self.fold and "fold",
                 "" if self.norm else "nonorm", self.ends and "ends" + "-".join(map(str, self.ends)),
                 self.slots and "slots" + "-".join(map(str, self.slots)), self.has and "has"]
        return "-".join(str(part) for part in parts if part)

    @property
    def sequences(self):
        return len(self.ends) - 1 if self.ends else self.batch


def inputs_of(case: Case, rng) -> dict:
    dtype, (hk, hv), (dk, dv) = DTYPES[case.dtype], case.heads, case.dims
    gate_dtype = DTYPES[case.gate or case.dtype]
    conv = case.type == CONV
    channels = 3 * dv if conv else 2 * hk * dk + hv * dv
    rows = dv if conv else channels
    slots = max([case.sequences, *(slot + 2 for slot in case.slots if slot < 100)])
    gate_heads = 1 if conv else hv
    amplitude = {"large": 1000.0, "tiny": 1e-4}.get(case.law, 1.0)
    qkv = torch.randn(case.batch, case.length, channels, generator=rng) * amplitude
    if case.law == "identical":
        qkv = qkv[:1, :1].expand(qkv.shape)
    gate_shape = (case.batch, case.length, gate_heads, *((dk,) if case.type == KDA else ()))
    beta = torch.rand(case.batch, case.length, gate_heads, generator=rng)
    gate = -torch.nn.functional.softplus(torch.randn(gate_shape, generator=rng))
    if case.law == "forget":
        gate = torch.full(gate_shape, -100.0)
    elif case.law == "keep":
        gate, beta = torch.zeros(gate_shape), torch.ones_like(beta)
    elif case.law == "beta":
        beta = torch.randint(0, 3, beta.shape, generator=rng).float()
    tensors = {"qkv": qkv, "gate": gate, "beta": beta, "conv_weight": torch.randn(rows, 1, case.taps, generator=rng) / case.taps**0.5}
    if case.bias:
        tensors["conv_bias"] = torch.randn(rows, generator=rng) * 0.5
    if case.states in ("both", "conv"):
        tensors["conv_state"] = torch.randn(slots, rows, case.taps - 1, generator=rng)
    tensors = {name: value.to(gate_dtype if name in ("gate", "beta") else dtype).contiguous() for name, value in tensors.items()}
    if case.states in ("both", "recurrent") and not conv:
        tensors["recurrent_state"] = torch.randn(slots, hv, dk, dv, generator=rng)
    if case.fold:
        tensors["gate"] = (torch.randn(gate_shape, generator=rng) * 3).to(gate_dtype)
        tensors["beta"] = torch.randn(beta.shape, generator=rng).to(gate_dtype)
        tensors["gate_coef"] = -uniform(rng, hv, low=0.1, high=4)
        tensors["gate_bias"] = torch.randn((hv, dk) if case.type == KDA else (hv,), generator=rng)
    if case.ends:
        tensors["cu_seqlens"] = torch.tensor(case.ends, dtype=torch.int32)
    if case.slots:
        tensors["state_indices"] = torch.tensor(case.slots, dtype=torch.int32)
    if case.has:
        tensors["has_initial_state"] = torch.tensor(case.has)
    return tensors


def attributes_of(case: Case) -> dict:
    return {"attn_type": case.type, "num_k_heads": case.heads[0], "num_v_heads": case.heads[1], "head_k_dim": case.dims[0],
            "head_v_dim": case.dims[1], "use_qk_l2norm": case.norm, "gate_fold": case.fold}


def run(soc, case: Case, tensors: dict, **options):
    """attn_out and the states after the call, in tensors of their own; and the report."""
    tensors = dict(tensors)
    for name in ("conv_state", "recurrent_state"):
        if name in tensors:
            tensors[name] = tensors[name].clone()
    op = kernel(soc).with_options(**options)
    return op(**tensors, **attributes_of(case)), op.report


def in_order(ends: tuple, length: int) -> int:
    """How many sequences come before the first boundary that is out of order."""
    count = 0
    while count + 1 < len(ends) and ends[0] == 0 and ends[count] <= ends[count + 1] <= length:
        count += 1
    return count


def assert_only_sequences_in_order_count(soc, case: Case, rng, key):
    """Boundaries out of order: rows from there on are NaN and the states behind untouched, the rest is what a call without them gives."""
    tensors = inputs_of(case, rng)
    (out, *states), report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == key
    count = in_order(case.ends, case.length)
    rows = case.ends[count] if count else 0
    assert out[:, rows:].isnan().all() and rows < case.length
    before = [tensors.get(name) for name in ("conv_state", "recurrent_state")]
    assert all(state is None or torch.equal(state[count:], old[count:]) for state, old in zip(states, before))
    if count == 0:
        return
    part = {name: value[:, :rows].contiguous() if name in ("qkv", "gate", "beta") else value for name, value in tensors.items()}
    part |= {"cu_seqlens": torch.tensor(case.ends[:count + 1], dtype=torch.int32), "state_indices": torch.arange(count, dtype=torch.int32)}
    (want, *kept), report = run(soc, replace(case, length=rows), part)
    assert report.tiling_key == key and torch.equal(out[:, :rows], want)
    assert all(state is None or torch.equal(state, other) for state, other in zip(states, kept))


#: Sequences without tokens first, in the middle and last; padding; slots out of order.
VARLEN = {"length": 40, "ends": (0, 0, 3, 3, 20, 21, 40, 40), "slots": (4, 1, -1, 6, 2, 5, 0),
          "has": (False, True, True, False, True, True, True)}
