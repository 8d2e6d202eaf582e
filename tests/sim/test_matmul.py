"""The high-level Matmul object against NumPy: types, layouts, tails, splits over cores, work for vector cores, host tiling."""

import ctypes
import sys
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import custom_ops
sys.path.insert(0, str(Path(__file__).parent))
from matmul_tiling import cube_tiling  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
SOCS = ("ascend910b", "ascend910_93", "ascend950")
TYPES = {"half": np.float16, "bfloat16_t": ml_dtypes.bfloat16, "float": np.float32, "int8_t": np.int8, "int32_t": np.int32}
#: float32 sums of a few hundred products, and one more rounding of 16-bit results; relative to the largest magnitude of C.
TOLERANCE = {"float": 1e-5, "half": 1e-3, "bfloat16_t": 8e-3, "int32_t": 0, "int8_t": 0}


@dataclass(frozen=True)
class Variant:
    """What is compiled in."""

    given: str = "half"
    result: str = "float"
    bias: str = "float"
    trans_a: bool = False
    trans_b: bool = False
    formats: str = "ND ND ND"
    config: str = "CFG_NORM"

    def defines(self):
        a, b, c = self.formats.split()
        return {"A_TYPE": self.given, "B_TYPE": self.given, "C_TYPE": self.result, "BIAS_TYPE": self.bias, "A_FORMAT": a, "B_FORMAT": b,
                "C_FORMAT": c, "A_TRANS": str(self.trans_a).lower(), "B_TRANS": str(self.trans_b).lower(),
                "CONFIG": self.config}  # fmt: skip

    def __str__(self):
        return f"{self.given}_to_{self.result}" + "-at" * self.trans_a + "-bt" * self.trans_b + (
            "" if self.formats == "ND ND ND" else "-" + self.formats.replace(" ", "_")) + ("-mdl" if "MDL" in self.config else "")


HALF = Variant(config="CFG_MDL")
HALF_T = Variant(trans_a=True, trans_b=True)
HALF_NZ = Variant(result="half", bias="half", formats="NZ NZ NZ")
HALF_NZ_T = Variant(trans_a=True, trans_b=True, formats="NZ NZ ND")
BF16 = Variant("bfloat16_t", "bfloat16_t", trans_b=True, config="CFG_MDL")
FLOAT = Variant("float")
FLOAT_T = Variant("float", trans_a=True, trans_b=True)
FLOAT_NZ = Variant("float", trans_a=True, formats="NZ NZ ND")
INT8 = Variant("int8_t", "int32_t", "int32_t")
INT8_T = Variant("int8_t", "half", "int32_t", trans_b=True)


@dataclass(frozen=True)
class Case:
    variant: Variant
    m: int
    n: int
    k: int
    base: tuple = (16, 32, 32)
    single: tuple | None = None
    cores: int = 1
    bias: bool = False
    hf32: bool = False
    stepwise: bool = False
    sequential: bool = False
    atomic: int = 0
    scale: float = 0.0
    tiling: dict = field(default_factory=dict, hash=False)

    def __str__(self):
        flags = "".join(f"-{f}" for f in ("bias", "hf32", "stepwise", "sequential") if getattr(self, f))
        return f"{self.variant}-m{self.m}-n{self.n}-k{self.k}{flags}" + f"-x{self.cores}" * (self.cores > 1)


DEEP = dict(depthA1=4, depthB1=8, stepKa=2, stepKb=4, dbL0C=2)
CASES = [
    Case(HALF, 16, 16, 16, (16, 16, 16)),
    Case(HALF, 33, 40, 70),                                            # tails in all three
    Case(HALF, 100, 130, 300, (32, 64, 32), tiling=DEEP),              # pieces of several base matrices, both orders, two of C
    Case(HALF, 100, 130, 300, (32, 64, 32), tiling=dict(DEEP, iterateOrder=1), bias=True),
    Case(HALF, 97, 30, 64, (32, 32, 32), tiling=dict(depthA1=8, stepM=2, stepKa=2)),   # the last base matrix has one row
    Case(HALF, 1, 50, 130, tiling=dict(stepKa=2, depthA1=4)),
    Case(HALF, 5, 3, 7, (16, 16, 16), bias=True),
    Case(HALF, 70, 90, 64, (16, 32, 32), (32, 48, 64), cores=6),       # the last core of both directions is short
    Case(HALF, 40, 40, 64, stepwise=True, bias=True, tiling=dict(dbL0C=2)),
    Case(HALF, 32, 64, 64, stepwise=True, sequential=True),
    Case(HALF, 33, 40, 70, atomic=1),
    Case(HALF_T, 33, 40, 70),
    Case(HALF_T, 1, 17, 35, bias=True),
    Case(HALF_T, 70, 90, 64, (16, 32, 32), (32, 48, 64), cores=6),
    Case(HALF_NZ, 33, 40, 70, bias=True),
    Case(HALF_NZ, 64, 80, 96, (16, 32, 32), (32, 48, 96), cores=4),
    Case(HALF_NZ_T, 33, 40, 70),
    Case(HALF_NZ_T, 1, 64, 96),
    Case(BF16, 31, 50, 200, (32, 32, 64), tiling=DEEP),
    Case(FLOAT, 19, 24, 40, (16, 16, 16)),
    Case(FLOAT, 33, 41, 52, (16, 32, 16), bias=True, hf32=True),
    Case(FLOAT, 1, 30, 100),
    Case(FLOAT_T, 19, 24, 40, (16, 16, 16)),
    Case(FLOAT_T, 37, 9, 21, (32, 16, 16), bias=True),
    Case(FLOAT_T, 1, 20, 30),
    Case(FLOAT_NZ, 33, 41, 52, (16, 32, 16)),
    Case(INT8, 16, 32, 64),
    Case(INT8, 30, 50, 100, (16, 64, 32), bias=True),                  # an odd number of fractals along n
    Case(INT8, 20, 100, 100, (16, 32, 64)),
    Case(INT8_T, 30, 50, 100, scale=0.0625, bias=True),
]


def nz(x):
    """[columns / C0][rows to 16][C0], filled up with zeros."""
    c0 = 32 // x.itemsize
    rows, columns = -(-x.shape[0] // 16) * 16, -(-x.shape[1] // c0) * c0
    padded = np.zeros((rows, columns), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(padded.reshape(rows, columns // c0, c0).transpose(1, 0, 2))


def from_nz(x, m, n, width):
    return x.reshape(-1, -(-m // 16) * 16, width).transpose(1, 0, 2).reshape(-(-m // 16) * 16, -1)[:m, :n]


def draw(rng, dtype, *shape):
    return rng.integers(-100, 100, shape).astype(dtype) if np.issubdtype(dtype, np.integer) else rng.standard_normal(shape).astype(dtype)


def hf32(x):
    """The nearest float with 10 bits of mantissa, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


class Options(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_uint32) for name in ("bias", "hf32", "stepwise", "sequential", "atomic")), ("scale", ctypes.c_float),
                *((name, ctypes.c_uint32) for name in ("a", "b", "c"))]  # fmt: skip


def run(case, soc, **options):
    """(C of the kernel, C in float64 or int64, report)."""
    rng = np.random.default_rng(3)
    v = case.variant
    given, result = TYPES[v.given], TYPES[v.result]
    a, b = draw(rng, given, case.m, case.k), draw(rng, given, case.k, case.n)
    bias = draw(rng, TYPES[v.bias], case.n)
    wide = np.int64 if given is np.int8 else np.float64
    left, right = (hf32(x) if case.hf32 else x for x in (a, b))
    want = left.astype(wide) @ right.astype(wide) + (bias.astype(wide) if case.bias else 0)
    if case.scale:
        want = want * case.scale
    stored = [a.T if v.trans_a else a, b.T if v.trans_b else b]
    stored = [np.ascontiguousarray(x) for x in stored]
    stored = [nz(x) if f == "NZ" else x for x, f in zip(stored, v.formats.split(), strict=False)]
    nz_c = v.formats.endswith("NZ")
    padded = (-(-case.n // 16), -(-case.m // 16) * 16, 16)
    c = np.full(padded if nz_c else (case.m, case.n), 2 if case.atomic else 0, result)
    tiling = cube_tiling(case.m, case.n, case.k, case.base, case.single, isBias=int(case.bias), **case.tiling)
    given_options = Options(case.bias, case.hf32, case.stepwise, case.sequential, case.atomic, case.scale,
                            stored[0].size, stored[1].size, c.size)  # fmt: skip
    report = custom_ops.sim.launch(
        KERNELS / "matmul_cube.cpp", "product", case.cores, [*stored, bias, c, given_options], tiling=tiling, soc=soc,
        outputs=[] if case.atomic or nz_c else ["c"], defines=v.defines(), **options)  # fmt: skip
    if nz_c:
        c = from_nz(c, case.m, case.n, 16)
    if case.sequential:   # base matrices, m first
        bm, bn, _ = case.base
        c = c.reshape(case.n // bn, case.m // bm, bm, bn).transpose(1, 2, 0, 3).reshape(case.m, case.n)
    return c, want + (2 if case.atomic else 0), report


def assert_close(got, want, result):
    assert np.abs(got.astype(np.float64) - want.astype(np.float64)).max() <= TOLERANCE[result] * max(1, np.abs(want).max())


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_product_matches_numpy(case, soc):
    got, want, report = run(case, soc)
    assert report.findings == []
    assert_close(got, want, case.variant.result)


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("case", [c for c in CASES if c.m > 1 and c.bias], ids=str)
def test_order_holds_when_instructions_are_late(case, soc):
    got, want, report = run(case, soc, adversarial_seed=5)
    assert report.findings == []
    assert_close(got, want, case.variant.result)


@dataclass(frozen=True)
class Mixed:
    m: int
    n: int
    k: int
    base: tuple
    single: tuple
    blocks: int   # of one cube core and its vector cores

    def __str__(self):
        return f"m{self.m}-n{self.n}-k{self.k}-x{self.blocks}"


MIXED = [
    Mixed(64, 64, 64, (32, 32, 32), (64, 64, 64), 1),        # the second vector core has nothing to do
    Mixed(70, 90, 80, (16, 32, 32), (32, 48, 80), 3),        # six vector cores, tails in both directions
    Mixed(33, 20, 50, (16, 16, 32), (16, 32, 50), 2),
]


def mixed_operands(case):
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((case.m, case.k), (case.k, case.n)))
    bias = rng.standard_normal(case.n).astype(np.float32)
    return a, b, bias, a.astype(np.float64) @ b.astype(np.float64) + bias


def launch_mixed(entry, case, soc, *arguments, **options):
    a, b, bias, want = mixed_operands(case)
    c = np.zeros((case.m, case.n), np.float32)
    tiling = cube_tiling(case.m, case.n, case.k, case.base, case.single, isBias=1, dbL0C=2)
    report = custom_ops.sim.launch(
        KERNELS / "matmul_mixed.cpp", entry, case.blocks, [a, b, bias, c, *arguments], tiling=tiling, soc=soc, outputs=["c"],
        workspace=2 * case.blocks * 4 * (case.single[0] + case.base[0]) * (case.single[1] + case.base[1]), **options)  # fmt: skip
    return c, want, report


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("seed", [0, 7], ids=["eager", "adversarial"])
@pytest.mark.parametrize("entry", ["leaky_product", "leaky_product_ahead"])
@pytest.mark.parametrize("case", MIXED, ids=str)
def test_vector_cores_work_on_each_base_matrix(case, entry, seed, soc):
    c, want, report = launch_mixed(entry, case, soc, adversarial_seed=seed)
    assert report.findings == []
    assert_close(c, np.where(want >= 0, want, 0.1 * want), "float")


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("case", MIXED, ids=str)
def test_iterate_all_for_vector_cores(case, sync, soc):
    c, want, report = launch_mixed("whole_product", case, soc, np.bool_(sync))
    assert report.findings == []
    assert_close(c, want, "float")


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("seed", [0, 7], ids=["eager", "adversarial"])
def test_matrices_in_ub_and_two_objects(seed, soc):
    rng = np.random.default_rng(5)
    a, b, b2 = (rng.standard_normal((48, 48)).astype(np.float16) / 4 for _ in range(3))
    d = np.zeros((48, 48), np.float32)
    report = custom_ops.sim.launch(KERNELS / "matmul_mixed.cpp", "chain", 1, [a, b, b2, d], tiling=cube_tiling(48, 48, 48, (32, 32, 32)),
                                   soc=soc, outputs=["d"], adversarial_seed=seed)  # fmt: skip
    assert report.findings == []
    first = (2 * a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16).astype(np.float64)
    assert np.abs(d - first @ b2.astype(np.float64)).max() <= 2e-2 * np.abs(d).max()


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_neither_numbers_nor_time_depend_on_the_host(soc):
    runs = [launch_mixed("leaky_product", MIXED[1], soc, host_threads=threads) for threads in (1, 2, 4)]
    for c, _, report in runs[1:]:
        assert np.array_equal(c, runs[0][0])
        assert report.modelled_us == runs[0][2].modelled_us


@pytest.fixture(scope="module", params=SOCS)
def built(request):
    return custom_ops.sim.build(Path(__file__).parent / "ops" / "matmul", soc=request.param)


def fits(plan, soc, given):
    """Two of each operand in L0A and L0B, C in L0C, the pieces in L1."""
    l0c = (256 if soc.startswith("Ascend950") else 128) * 1024
    m, n, k = (plan[f"base{x}"] for x in "MNK")
    return (plan["dbL0A"] * m * k * given <= 65536 and plan["dbL0B"] * n * k * given <= 65536 and plan["dbL0C"] * m * n * 4 <= l0c
            and (plan["depthA1"] * m + plan["depthB1"] * n) * k * given <= 512 * 1024)  # fmt: skip


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (100, 300, 77), (513, 65, 256)])
def test_host_tiling_of_a_mixed_op(built, m, n, k):
    rng = np.random.default_rng(m)
    op = built["MatmulLeaky"]
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    bias = rng.standard_normal(n).astype(np.float32)
    c = op(a, b, bias, slope=0.25)
    want = a.astype(np.float64) @ b.astype(np.float64) + bias
    assert_close(c, np.where(want >= 0, want, 0.25 * want), "float")
    plan = op.report.plan["cubeTilingData"]
    assert op.report.plan["slope"] == 0.25 and (plan["M"], plan["N"], plan["Ka"], plan["isBias"]) == (m, n, k, 1)
    blocks = -(-m // plan["singleCoreM"]) * -(-n // plan["singleCoreN"])
    assert plan["usedCoreNum"] == blocks and fits(plan, op.report.soc, 2)


@pytest.mark.parametrize("given", ["float", "half", "bfloat16_t"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 7, 3), (130, 90, 200)])
def test_host_tiling_in_a_plain_struct(built, m, n, k, given):
    rng = np.random.default_rng(m)
    op = built["MatmulPlain"]
    a, b = (rng.standard_normal((rows, k)).astype(TYPES[given]) for rows in (m, n))
    c = op(a, b)
    assert_close(c, a.astype(np.float64) @ b.astype(np.float64).T, "float")
    plan = op.report.plan["cube"]
    assert (plan["M"], plan["N"], plan["Ka"], plan["Kb"]) == (m, n, k, k) and fits(plan, op.report.soc, a.itemsize)


def test_a_split_that_does_not_fit_is_refused(built):
    half = np.ones((64, 64), np.float16)
    with pytest.raises(custom_ops.KernelError, match="SetFixSplit"):
        built["MatmulLeaky"](half, half, np.ones(64, np.float32), fixed_base=2048)


def test_a_workspace_without_the_systems_part_is_reported(built):
    half = np.ones((64, 64), np.float16)
    with pytest.raises(custom_ops.KernelError, match="GetLibApiWorkSpaceSize"):
        built["MatmulLeaky"](half, half, np.ones(64, np.float32), small_workspace=1)
