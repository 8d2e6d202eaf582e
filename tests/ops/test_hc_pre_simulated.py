"""Every plan of HcPre (decode, grid, stream, widen) on the simulated chips, through its op package: numbers, order, refusals."""

import functools
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from compare import assert_pre_matches
from inputs import DTYPES, pre_inputs

import custom_ops

ROOT = Path(__file__).resolve().parents[2]
SOCS = ("ascend910_93", "ascend950")  # 910B has the kernels of 910_93 and other numbers of cores: test_hc_pre.py
DECODE, GRID, STREAM, WIDEN = 0, 1, 2, 3  # tiling keys


@functools.cache
def hc_pre(soc):
    return custom_ops.sim.build(ROOT, soc=soc, ops=["HcPre"])


def inputs_of(law, rng, tokens, n, d, dtype):
    inputs = pre_inputs("rows" if law == "wide" else law, rng, tokens, n, d, dtype)
    if law == "wide":  # hc_fn over 2^24: all three terms that the cube gets count
        fn = inputs["hc_fn"]
        inputs["hc_fn"] = fn * 2.0 ** torch.randint(-12, 12, fn.shape, generator=rng) / 256
    return inputs


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    key: int = DECODE  # the plan on 910_93
    n: int = 4
    dtype: str = "bfloat16"
    law: str = "normal"
    iters: int = 20
    norm_eps: float = 1e-6
    hc_eps: float = 1e-6
    why: str = ""

    def __str__(self):
        return f"{'x'.join(map(str, self.tokens))}-n{self.n}-d{self.d}-{self.dtype}-{self.law}-it{self.iters}"

    def attributes(self):
        return {"hc_sinkhorn_iters": self.iters, "norm_eps": self.norm_eps, "hc_eps": self.hc_eps}


CASES = [
    Case((1,), 1, n=1, why="the smallest legal call"),
    Case((1,), 4096, law="published"),
    Case((16,), 4096, law="rows", key=WIDEN, why="the published decode"),
    Case((8,), 4096, law="rows", why="the same on vector cores"),
    Case((2, 2), 512, dtype="float16", law="rows", iters=1),
    Case((2,), 1033, n=3, dtype="float32", law="rows", why="F4: K is no multiple of 32, F5: hc_mult is not 4"),
    Case((2,), 33, n=3, dtype="float32", law="rows", key=STREAM, why="the same on a single cube core, two tokens 8 times over"),
    Case((7,), 1001, law="streams", why="F4"),
    Case((1,), 512, why="F9: fewer slices than cores"),
    Case((17,), 264, n=2, dtype="float16"),
    Case((5,), 130, n=6, law="rows", norm_eps=1e-2, why="attribute order: norm_eps is not hc_eps"),
    Case((17,), 130, n=6, law="rows", norm_eps=1e-2, key=WIDEN),
    Case((3,), 4100, n=8, dtype="float32", law="rows", hc_eps=1e-2),
    Case((9,), 72, n=8, dtype="float32", law="rows", hc_eps=1e-2, key=GRID),
    Case((1,), 70, n=16, why="one buffer per tile; repeats past 255"),
    Case((3,), 70, n=16, key=WIDEN, why="fewer tokens than fill up a fractal"),
    Case((16,), 128, law="zeros", key=WIDEN),
    Case((5,), 2096, dtype="float32", law="subnormal"),
    Case((5,), 96, dtype="float32", law="subnormal", key=STREAM),
    Case((8,), 515, dtype="float16", n=5, iters=3),
    Case((50,), 15, dtype="float16", n=5, iters=3, key=WIDEN, why="two parts of K, all other cores idle"),
    Case((200,), 1041, dtype="float16", law="wide", key=WIDEN, why="K ends in the middle of 16; more tokens than UB holds at a time"),
    Case((33,), 257, n=5, dtype="float16", law="subnormal", key=WIDEN),
    Case((24,), 4100, law="wide", key=WIDEN, why="hc_fn over 2^24, as it is"),
    Case((7,), 1001, n=16, iters=1, law="rows", key=WIDEN, why="288 mixes: several tiles of hc_fn"),
    Case((70,), 16400, iters=1, law="exact", key=GRID, why="K beyond a copy's steps from row to row: rows one by one"),
    Case((130,), 9001, n=8, iters=1, law="exact", key=GRID, why="the same, the last tokens one by one too, and several steps in L1"),
    Case((70,), 16385, dtype="float32", iters=1, key=GRID, why="hc_fn's rows are too long as well: it is one term"),
    Case((129,), 512, law="rows", n=8, key=GRID, why="F1, F2, F3: several rows per chunk; F11: the last 16 rows are one"),
    Case((97,), 512, law="rows", n=8, key=WIDEN, why="the same"),
    Case((3, 43), 1000, law="rows", n=6, key=GRID, iters=2, why="K is no multiple of 16 per part"),
    Case((513,), 516, law="wide", key=GRID, why="tails in tokens and K"),
    Case((300,), 2560, law="published", key=GRID, iters=1),
    Case((65,), 5120, law="rows", iters=2, key=GRID, why="910B: one batch of two rows, each in two tiles"),
    Case((529,), 72, n=16, law="rows", key=GRID, why="288 mixes"),
    Case((300,), 1040, dtype="float16", law="rows", key=GRID, why="rows of hc_fn scaled by powers of two"),
    Case((300,), 257, n=5, dtype="float16", law="wide", key=GRID),
    Case((1300,), 48, dtype="float16", law="rows", key=STREAM),
    Case((1100,), 33, n=3, law="rows", key=STREAM, why="K = 99: one short step in L0"),
    Case((3073,), 64, law="rows", key=STREAM, why="F12: all cores; F1, F2: squares of every token of a block"),
    Case((9000,), 16, n=2, law="normal", key=STREAM, why="F8: several rounds of blocks"),
    Case((129,), 512, dtype="float32", law="rows", n=8, key=GRID),
    Case((3, 43), 1000, dtype="float32", law="rows", n=6, key=GRID, iters=2),
    Case((513,), 516, dtype="float32", law="wide", key=GRID, why="tails in tokens and K"),
    Case((200,), 333, dtype="float32", n=7, law="rows", key=GRID, why="K is odd: hc_fn's rows start anywhere"),
    Case((13,), 72, n=16, law="rows", key=WIDEN),
    Case((13,), 9001, n=8, iters=1, law="exact", why="950: grid, few tokens, one by one"),
    Case((3,), 520, n=16, dtype="float32", law="rows", key=GRID, why="the first tokens again and again"),
    Case((529,), 72, dtype="float32", n=16, law="rows", key=GRID),
    Case((300,), 257, dtype="float32", n=5, law="wide", key=GRID),
    Case((130,), 96, dtype="float32", law="rows", key=STREAM),
    Case((1100,), 33, dtype="float32", n=3, law="rows", key=STREAM, why="K = 99: three columns in the last 8"),
    Case((1100,), 40, dtype="float32", n=1, law="rows", key=STREAM, why="3 mixes"),
    Case((3073,), 64, dtype="float32", law="rows", key=STREAM),
    Case((9000,), 16, dtype="float32", n=2, law="normal", key=STREAM),
]


def run(soc, inputs, n, **options):
    attributes = {name: options.pop(name) for name in ("hc_sinkhorn_iters", "norm_eps", "hc_eps") if name in options}
    op = hc_pre(soc).with_options(**options)
    return op(**inputs, hc_mult=n, **attributes), op.report


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, soc, rng):
    inputs = inputs_of(case.law, rng, case.tokens, case.n, case.d, DTYPES[case.dtype])
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    got, report = run(soc, inputs, case.n, **case.attributes())
    assert report.findings == [] and (soc != "ascend910_93" or report.tiling_key == case.key)
    assert_pre_matches(got, inputs, case.n, case.iters, case.norm_eps, case.hc_eps, soc)
    assert all(torch.equal(inputs[name], before[name]) for name in inputs)


#: tokens, d, n, dtype, plan on 910_93; both sizes of the cube's operands
PLANS = {
    "decode": ((7,), 2096, 4, "bfloat16", DECODE), "decode-float32": ((7,), 2096, 4, "float32", DECODE),
    "grid": ((70,), 600, 5, "bfloat16", GRID), "grid-float32": ((70,), 600, 8, "float32", GRID),
    "stream": ((1300,), 40, 4, "bfloat16", STREAM), "stream-float32": ((1300,), 40, 4, "float32", STREAM),
    "widen": ((40,), 601, 8, "bfloat16", WIDEN),
}
every_plan = pytest.mark.parametrize("tokens, d, n, dtype, key", PLANS.values(), ids=PLANS)


@pytest.mark.parametrize("soc", SOCS)
@every_plan
def test_results_do_not_depend_on_how_the_simulator_runs(tokens, d, n, dtype, key, soc, rng):
    """Two runs, host threads, and the order of everything the kernel leaves unordered: the same bits."""
    inputs = pre_inputs("rows", rng, tokens, n, d, DTYPES[dtype])
    want, report = run(soc, inputs, n)
    assert soc != "ascend910_93" or report.tiling_key == key
    assert report.plan["rows"]["tokens"] == tokens[0] and report.plan["blocks"]["count"] >= 1, "the plan, with the structs in it"
    for options in ({}, {"host_threads": 1}, {"checks": False}, {"adversarial_seed": 1}, {"adversarial_seed": 2}):
        got, _ = run(soc, inputs, n, **options)
        assert all(torch.equal(one, other) for one, other in zip(got, want)), options


@pytest.mark.parametrize("soc", SOCS)
@every_plan
def test_non_finite_tokens_keep_to_themselves(tokens, d, n, dtype, key, soc, rng):
    inputs = pre_inputs("normal", rng, tokens, n, d, DTYPES[dtype])
    clean, _ = run(soc, inputs, n)
    inputs["x"] = inputs["x"].clone()
    inputs["x"][3, 0, 5] = torch.nan
    inputs["x"][5, n - 1, d - 1] = torch.inf
    inputs["x"][tokens[0] - 1, 0, 0] = torch.nan
    got, _ = run(soc, inputs, n)
    assert_pre_matches(got, inputs, n, where=soc)
    others = [t for t in range(tokens[0]) if t not in (3, 5, tokens[0] - 1)]
    for one, other in zip(got, clean):
        assert torch.equal(one[others], other[others])


@pytest.mark.parametrize("soc", SOCS)
def test_no_tokens(soc, rng):
    inputs = pre_inputs("normal", rng, (0, 3), 4, 64, torch.bfloat16)
    (y, post, comb), _ = run(soc, inputs, 4)
    assert y.shape == (0, 3, 64) and post.shape == (0, 3, 4) and comb.shape == (0, 3, 4, 4)


@pytest.mark.parametrize("arguments, sentence", [
    (dict(hc_mult=3), "x must have hc_mult = 3 streams (dimension -2), got [8, 4, 32]"),
    (dict(hc_fn=torch.zeros(23, 128)), "hc_fn must be [(2 + hc_mult) * hc_mult, hc_mult * d] = [24, 128] for x [8, 4, 32], got [23, 128]"),
    (dict(hc_fn=torch.zeros(24, 127)), "got [24, 127]"),
    (dict(hc_scale=torch.zeros(2)), "hc_scale must hold 3 values (pre, post, comb), got [2]"),
    (dict(hc_base=torch.zeros(23)), "hc_base must hold (2 + hc_mult) * hc_mult = 24 values, got [23]"),
    (dict(hc_sinkhorn_iters=0), "hc_sinkhorn_iters is 0, supported are 1 to 2147483647"),
    (dict(norm_eps=-1.0), "norm_eps must be a finite number >= 0, got -1"),
], ids=str)
def test_host_refuses(arguments, sentence, rng):
    call = {**pre_inputs("normal", rng, (8,), 4, 32, torch.bfloat16), "hc_mult": 4} | arguments
    with pytest.raises(custom_ops.KernelError) as refused:
        hc_pre("ascend910_93")(**call)
    assert sentence in str(refused.value) and "hc_pre: " in str(refused.value)
