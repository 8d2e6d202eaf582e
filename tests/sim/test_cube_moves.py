"""Ways into and out of L0, cross-core modes and modelled times of the cube, against NumPy and figures worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops

KERNELS = Path(__file__).parent / "kernels"
SOCS = ("ascend910b", "ascend950")
SEEDS = pytest.mark.parametrize("seed", [0, 3], ids=["eager", "adversarial"])


def product(entry, a, b, c, m, n, k, *more, soc, seed=0):
    report = custom_ops.sim.launch(KERNELS / "cube_moves.cpp", entry, 1, [a, b, c, *map(np.uint32, (m, n, k)), *more], soc=soc,
                                   inputs=["a", "b"], outputs=["c"], adversarial_seed=seed)  # fmt: skip
    assert report.findings == []
    return report


def halves(rng, *shape):
    return rng.standard_normal(shape).astype(np.float16)


@SEEDS
@pytest.mark.parametrize("soc", SOCS)
def test_transposed_bytes(soc, seed):
    rng = np.random.default_rng(1)
    m, n, k = 32, 64, 96
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.int32)
    product("transposed_int8", a, b, c, m, n, k, soc=soc, seed=seed)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@SEEDS
@pytest.mark.parametrize("soc", SOCS)
def test_transposed_floats(soc, seed):
    rng = np.random.default_rng(2)
    m, n, k = 32, 48, 64
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    product("transposed_float", a, b, c, m, n, k, soc=soc, seed=seed)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-4)


@SEEDS
@pytest.mark.parametrize("soc", SOCS)
def test_fixpipe_to_l1(soc, seed):
    rng = np.random.default_rng(3)
    m, n = 32, 48
    a, b, c = halves(rng, m, n), halves(rng, n, n), np.zeros((m, n), np.float32)
    product("chained_through_l1", a, b, c, m, n, n, soc=soc, seed=seed)
    first = np.maximum(a.astype(np.float64) @ b, 0).astype(np.float16)
    np.testing.assert_allclose(c, first.astype(np.float64) @ b, atol=2e-2 * np.abs(first).max())   # the half may round the other way


QUANTISED = [  # entry, operand, result, scale
    ("int32_to_half", np.int8, np.float16, 2.0**-8),
    ("int32_to_int8", np.int8, np.int8, 2.0**-9),          # of both signs, some saturate
    ("float_to_int8", np.float16, np.int8, 20.0),
]


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("entry, operand, result, scale", QUANTISED, ids=[q[0] for q in QUANTISED])
def test_quantisation(entry, operand, result, scale, soc):
    rng = np.random.default_rng(4)
    m, n, k = 32, 48, 64
    most, unit = (128, 1) if operand is np.int8 else (8, 8)   # halves: eighths, so that sums are exact
    a, b = ((rng.integers(-most, most, shape) / unit).astype(operand) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), result)
    product(entry, a, b, c, m, n, k, np.float32(scale), soc=soc)
    scaled = (a.astype(np.float64) @ b.astype(np.float64).T) * scale
    want = np.clip(np.rint(scaled), -128, 127) if result is np.int8 else scaled.astype(np.float16)
    np.testing.assert_array_equal(c, want)
    if result is np.int8:
        assert (np.abs(scaled) > 128).any() and (np.abs(scaled) < 1).any()


@SEEDS
@pytest.mark.parametrize("soc", SOCS)
def test_unit_flags_order_the_cube_and_fixpipe(soc, seed):
    rng = np.random.default_rng(5)
    m, n, k = 32, 32, 64
    a, b, c = halves(rng, m, k), halves(rng, k, n), np.zeros((m, n), np.float32)
    product("unit_flags", a, b, c, m, n, k, soc=soc, seed=seed)
    np.testing.assert_allclose(c, 2 * (a.astype(np.float64) @ b), atol=1e-4)


@pytest.mark.parametrize("soc", SOCS)
def test_one_row_is_no_fractal(soc):
    rng = np.random.default_rng(6)
    n, k = 32, 512
    a, b, c = halves(rng, 1, k), halves(rng, k, n), np.zeros((1, n), np.float32)
    product("vector_times_matrix", a, b, c, 1, n, k, soc=soc)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-3)


@SEEDS
@pytest.mark.parametrize("entry", ["rectangles", "rectangles_column_major", "rectangles_nz"])
def test_rectangles_of_fractals(entry, seed):
    rng = np.random.default_rng(7)
    m, n, k = 48, 32, 64
    a, b, c = halves(rng, m, k), halves(rng, k, n), np.zeros(m * n, np.float32)
    product(entry, a, b, c, m, n, k, soc="ascend950", seed=seed)
    got = {"rectangles": lambda: c.reshape(m, n), "rectangles_column_major": lambda: c.reshape(n, m).T,
           "rectangles_nz": lambda: c.reshape(n // 16, m, 16).transpose(1, 0, 2).reshape(m, n)}[entry]()  # fmt: skip
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("of_block", [False, True], ids=["mode 0", "mode 1"])
def test_flags_between_vector_cores(of_block, soc, threads):
    blocks = 3
    x = np.arange(2 * blocks * 64, dtype=np.float32).reshape(-1, 64)
    y = np.zeros_like(x)
    report = custom_ops.sim.launch(KERNELS / "cube_flags.cpp", "exchange", blocks, [x, y, np.bool_(of_block)], soc=soc, outputs=["y"],
                                   host_threads=threads)  # fmt: skip
    assert report.findings == []
    order = [i ^ 1 for i in range(2 * blocks)] if of_block else [(i + 1) % (2 * blocks) for i in range(2 * blocks)]
    np.testing.assert_array_equal(y, x[order])


#: L1 -> L0A, L0B, GM -> L1, L0C -> GM in bytes per cycle; k of one step of the cube in float; all from the SoC table.
RATES = {"ascend910b": (256, 128, 32, 64, 4), "ascend950": (256, 256, 31, 40, 1)}


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("entry, size, m, n, k", [("half_to_float", 2, 64, 64, 256), ("float_to_float", 4, 64, 64, 128)])
def test_modelled_times_of_the_cube(entry, size, m, n, k, soc):
    to_a, to_b, gm, out, float_k = RATES[soc]
    kind = np.float16 if size == 2 else np.float32
    a, b, c = np.ones((m, k), kind), np.ones((n, k), kind), np.zeros((m, n), np.float32)
    arguments = [a, b, np.zeros(n, np.float32), c, *map(np.uint32, (m, n, k)), *map(np.bool_, (False, False, False))]
    report = custom_ops.sim.launch(KERNELS / "cube_matmul.cpp", entry, 1, arguments, soc=soc, outputs=["c"])
    steps = (m // 16) * (n // 16) * (k // (16 if size == 2 else float_k))
    busy = {name: use.busy_cycles for name, use in report.pipes.items()}
    assert busy["M"] == 16 + steps
    assert busy["MTE1"] == pytest.approx(m * k * size / to_a + n * k * size / to_b)
    assert busy["MTE2"] == pytest.approx((m + n) * k * size / gm)
    assert busy["FIX"] == pytest.approx(m * n * 4 / out)
    assert report.hbm_bytes == (m + n) * k * size + m * n * 4 and report.l2_bytes == 0
