"""The cube core: products through L1, L0 and Fixpipe against NumPy, for all types, layouts and tails."""

from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import custom_ops

KERNEL = Path(__file__).parent / "kernels" / "cube_matmul.cpp"
SOCS = ("ascend910b", "ascend950")


@dataclass(frozen=True)
class Case:
    entry: str
    m: int
    n: int
    k: int
    transposed: bool = False    # b is [k, n]
    bias: bool = False
    hf32: bool = False

    def __str__(self):
        return f"{self.entry}-m{self.m}-n{self.n}-k{self.k}" + "-b_kn" * self.transposed + "-bias" * self.bias + "-hf32" * self.hf32


CASES = [
    Case("half_to_float", 16, 16, 16),
    Case("half_to_float", 32, 48, 64),
    Case("half_to_float", 33, 17, 40),                    # tails in all three
    Case("half_to_float", 33, 24, 48, transposed=True),
    Case("half_to_float", 20, 32, 16, bias=True),
    Case("half_to_half", 17, 32, 128),
    Case("bfloat16_to_bfloat16", 31, 16, 96),
    Case("float_to_float", 19, 24, 40),
    Case("float_to_float", 16, 24, 64, hf32=True),
    Case("float_to_float", 16, 32, 8, bias=True),
    Case("int8_to_int32", 16, 32, 64),
    Case("int8_to_int32", 30, 20, 96),
]
TYPES = {"half": np.float16, "bfloat16": ml_dtypes.bfloat16, "float": np.float32, "int8": np.int8, "int32": np.int32}
#: Sums in float32 of at most 128 products: 128 * 2^-24 of the sum of magnitudes; 16-bit results are rounded once more.
TOLERANCE = {np.float32: 1e-5, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, np.int32: 0}


def hf32(x):
    """The nearest float with 10 bits of mantissa, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def operands(case, rng):
    given, result = (TYPES[part] for part in case.entry.split("_to_"))
    draw = (lambda *shape: rng.integers(-128, 128, shape).astype(np.int8)) if given is np.int8 else (
        lambda *shape: rng.standard_normal(shape).astype(given))
    accumulator = np.int32 if given is np.int8 else np.float32
    a, b = draw(case.m, case.k), draw(*((case.k, case.n) if case.transposed else (case.n, case.k)))
    return a, b, np.arange(-(-case.n // 16) * 16).astype(accumulator), np.zeros((case.m, case.n), result)


def product(case, a, b, bias):
    wide = np.int64 if a.dtype == np.int8 else np.float64
    left, right = (hf32(x) if case.hf32 else x for x in (a, b))
    return left.astype(wide) @ (right if case.transposed else right.T).astype(wide) + (bias[: case.n] if case.bias else 0)


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("seed", [0, 3], ids=["eager", "adversarial"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_product_matches_numpy(case, seed, soc):
    a, b, bias, c = operands(case, np.random.default_rng(7))
    arguments = [a, b, bias, c, np.uint32(case.m), np.uint32(case.n), np.uint32(case.k), np.bool_(case.transposed),
                 np.bool_(case.bias), np.bool_(case.hf32)]  # fmt: skip
    report = custom_ops.sim.launch(KERNEL, case.entry, 1, arguments, soc=soc, outputs=[3], adversarial_seed=seed)
    assert report.findings == []
    want = product(case, a, b, bias)
    bound = TOLERANCE[c.dtype.type] * max(1, np.abs(want).max())
    assert np.abs(c.astype(np.float64) - want.astype(np.float64)).max() <= bound


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("seed", [0, 5], ids=["eager", "adversarial"])
def test_mixed_kernel_hands_over_through_gm(threads, seed, soc):
    x = np.concatenate([np.arange(256, dtype=np.float32), np.eye(16, dtype=np.float32).ravel()])
    y = np.zeros(256, np.float32)
    report = custom_ops.sim.launch(
        Path(__file__).parent / "rules" / "cube.cpp", "vector_core_reads_what_the_cube_core_writes", 1, [x, y, np.bool_(True)],
        soc=soc, host_threads=threads, adversarial_seed=seed,
    )  # fmt: skip
    assert report.findings == []
    np.testing.assert_array_equal(y, x[:256])


def test_a_mixed_kernel_reports_its_cores_by_kind():
    x = np.concatenate([np.zeros(256, np.float32), np.eye(16, dtype=np.float32).ravel()])
    with pytest.raises(custom_ops.KernelError, match="AIC 0 and AIV 0 both touch y"):
        custom_ops.sim.launch(Path(__file__).parent / "rules" / "cube.cpp", "vector_core_reads_what_the_cube_core_writes", 1,
                              [x, np.zeros(256, np.float32), np.bool_(False)], soc="ascend910b")  # fmt: skip


PIPELINE = KERNEL.with_name("cube_pipeline.cpp")
PLANS = [  # soc, tiling key, cores, tokens, depth
    *((soc, 1, 4, 3, 256) for soc in SOCS),       # vector cores alone: K split
    *((soc, 2, 1, 32, 64) for soc in SOCS),       # one block: nothing to overlap
    *((soc, 2, 2, 320, 256) for soc in SOCS),     # ten blocks on two cube cores
    ("ascend910_93", 2, 3, 512, 128),             # a block more on one of them
    ("ascend950", 3, 2, 320, 256),                # mode 4, waits of one pipe
]


@pytest.mark.parametrize("seed", [0, 5], ids=["eager", "adversarial"])
@pytest.mark.parametrize("soc, key, cores, tokens, depth", PLANS, ids=lambda v: str(v))
def test_pipeline_of_cube_and_vector_cores(soc, key, cores, tokens, depth, seed):
    """Tiling keys of one kernel on different cores, workspace and flags between them, products exact to float32."""
    rng = np.random.default_rng(depth)
    x, f = rng.standard_normal((tokens, depth)).astype(ml_dtypes.bfloat16), rng.standard_normal((16, depth)).astype(np.float32)
    y = np.zeros((tokens, 16), np.float32)
    report = custom_ops.sim.launch(PIPELINE, "projection", cores, [x, f, y, np.uint32(tokens), np.uint32(depth)], soc=soc,
                                   tiling_key=key, inputs=["x", "f"], outputs=["y"], workspace=1 << 20, adversarial_seed=seed)  # fmt: skip
    assert report.findings == []
    wide = x.astype(np.float64)
    magnitude = np.abs(wide) @ np.abs(f.astype(np.float64)).T
    assert (np.abs(y - wide @ f.astype(np.float64).T) <= 2**-20 * magnitude).all()   # float32 sums; HF32 would be off by 2^-11
    names = [core["name"].split()[0] for core in report.per_core]
    assert names == (["core"] * cores if key == 1 else ["AIC", "AIV", "AIV"] * cores)
