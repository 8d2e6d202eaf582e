"""Register API of the 950: results against NumPy, and which lanes of a load count as used."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

KERNELS = Path(__file__).parent / "kernels" / "registers.cpp"
SOC = "ascend950"


def launch(entry, arguments, **options):
    return custom_ops.sim.launch(KERNELS, entry, 1, arguments, soc=SOC, outputs=[1], **options)


@pytest.mark.parametrize("seed", [0, 1, 2], ids=["eager", "seed1", "seed2"])
@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200])
def test_inv_rms(columns, seed):
    rows, pitch = 5, (columns + 7) // 8 * 8
    x = np.random.default_rng(columns).standard_normal((rows, pitch)).astype(np.float32)
    x[:, columns:] = 1e30  # must not count
    y = np.zeros(8, np.float32)
    report = launch("inv_rms", [x, y, np.uint32(rows), np.uint32(columns), np.uint32(pitch)], adversarial_seed=seed)
    assert report.findings == []
    want = 1 / np.sqrt(np.mean(x[:, :columns].astype(np.float64) ** 2, axis=1) + 1e-6)
    np.testing.assert_allclose(y[:rows], want, rtol=1e-6)  # float sums of at most 200 squares


def test_functions():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-20, 20, (2, 64)).astype(np.float32)
    y = np.zeros((8, 64), np.float32)
    report = launch("functions", [np.concatenate([a, b]), y])
    assert report.findings == []
    wide = a.astype(np.float64)
    np.testing.assert_array_max_ulp(y[0], np.exp(wide).astype(np.float32), 1)
    np.testing.assert_array_max_ulp(y[1], np.log(np.abs(wide)).astype(np.float32), 1)
    np.testing.assert_array_equal(y[2], (wide * b + 0.5).astype(np.float32))  # one rounding
    bits = a.view(np.uint32)
    np.testing.assert_array_equal(y[3], ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32))
    np.testing.assert_array_equal(y[4], np.where(np.arange(64) % 3 == 0, a + b, 0))
    np.testing.assert_array_equal(y[5], np.maximum(a, b))
    assert y[6, 0] == a.max() and y[6, 1:2].view(np.uint32)[0] == a.argmax() and not y[6, 2:].any()
    both = np.concatenate([a, b])
    np.testing.assert_array_equal(y[7], both[::2] - both[1::2])


@pytest.mark.parametrize("lanes", [1, 8, 9, 16])
def test_blocks(lanes):
    """A block with no active lane is not read: here it lies past the buffer, or at 1 MiB."""
    x = np.random.default_rng(lanes).standard_normal(200).astype(np.float32)
    near = np.array([5, 3, 24, 3, 11, 2, 20, 7], np.uint32)
    far = np.where(np.arange(8) * 8 < lanes, near, 2**15).astype(np.uint32)
    x[:16].view(np.uint32)[:] = np.concatenate([near, far]) * 32
    y, rows = np.zeros((4, 64), np.float32), x.reshape(25, 8)
    assert launch("blocks", [x, y, np.uint32(200), np.uint32(lanes)]).findings == []
    np.testing.assert_array_equal(y[0], rows[2::3].ravel())
    np.testing.assert_array_equal(y[1], np.where(np.arange(64) < lanes, np.resize(x[-16:], 64), 0))
    np.testing.assert_array_equal(y[2], rows[near].ravel())
    np.testing.assert_array_equal(y[3], np.where(np.arange(64) < lanes, rows[near].ravel(), 0))


def test_masked_lanes_of_a_load_are_not_used():
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    assert launch("tail", [x, y, np.uint32(10)]).findings == []
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize(("used", "says"), [(17, "mask those lanes off"), (64, "mask those lanes off")])
def test_lanes_beyond_the_data_are_reported_when_used(used, says):
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    with pytest.raises(KernelError, match=says) as caught:
        launch("tail", [x, y, np.uint32(used)])
    assert caught.value.rule in ("uninitialized-read", "out-of-range")
    assert Path(caught.value.file).name == KERNELS.name
