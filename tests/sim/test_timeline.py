"""Modelled time and bytes of copies, against figures worked out by hand from the SoC table."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops

KERNEL = Path(__file__).parent / "kernels" / "transfers.cpp"
KIB = 1 << 10
TILE = 64 * KIB
#: Cycles of the SoC table: issue of an instruction, latency of a copy, flag and barrier of all pipes.
ISSUE, LATENCY, SYNC = 2, 512, 20
#: Bytes per cycle of one vector core: from HBM, from L2, to GM; and of the chip's HBM at its clock.
RATES = {"Ascend910B3": (32, 110, 64, 1600e9 / 1.8e9), "Ascend950PR": (31, 42, 40, 1400e9 / 1.65e9)}
SOCS = list(RATES)


def reads(soc, cores, tiles, passes, first, **options):
    x = np.zeros((cores * first + tiles) * TILE, np.uint8)
    return custom_ops.sim.launch(KERNEL, "reads", cores, [x, TILE, tiles, passes, first], soc=soc, inputs=["x"], **options)


def writes(soc, passes, reads_back):
    return custom_ops.sim.launch(KERNEL, "writes", 1, [np.zeros(TILE, np.uint8), TILE, passes, reads_back], soc=soc, outputs=["x"])


def after(*copies):
    """End of copies that wait for each other, in cycles: issue, then each with its latency, then the barrier that ends a kernel."""
    return ISSUE + sum(copies) + LATENCY * len(copies) + SYNC


@pytest.mark.parametrize("soc", SOCS)
def test_a_tile_read_again_comes_from_l2(soc):
    hbm, l2, _, _ = RATES[soc]
    report = reads(soc, cores=1, tiles=1, passes=3, first=0)
    assert (report.hbm_bytes, report.l2_bytes) == (TILE, 2 * TILE)
    assert report.modelled_cycles == pytest.approx(after(TILE / hbm, TILE / l2, TILE / l2))
    assert report.pipes["MTE2"].busy_cycles == pytest.approx(TILE / hbm + 2 * TILE / l2)


@pytest.mark.parametrize("over, passes_of_hbm", [(0, 1), (1, 2)], ids=["fits", "does not fit"])
def test_what_is_larger_than_l2_comes_from_hbm_again(over, passes_of_hbm):
    tiles = (96 << 20) // TILE + over          # L2 of the 910B4; lines leave in the order they came
    report = reads("Ascend910B4", cores=1, tiles=tiles, passes=2, first=0, checks=False)
    assert report.hbm_bytes == passes_of_hbm * tiles * TILE
    assert report.l2_bytes == (2 - passes_of_hbm) * tiles * TILE
    second = TILE / 32 if over else TILE / 110
    assert report.modelled_cycles == pytest.approx(after(*[TILE / 32] * tiles, *[second] * tiles))


@pytest.mark.parametrize("soc", SOCS)
def test_a_weight_read_by_all_cores_comes_from_hbm_once(soc):
    cores = 40
    report = reads(soc, cores, tiles=1, passes=1, first=0)
    assert (report.hbm_bytes, report.l2_bytes) == (TILE, (cores - 1) * TILE)
    assert report.modelled_cycles == pytest.approx(after(TILE / RATES[soc][0]))    # nobody has it before HBM has delivered it


@pytest.mark.parametrize("soc", SOCS)
def test_cores_share_the_bandwidth_of_hbm(soc):
    cores, chip = 40, RATES[soc][3]
    report = reads(soc, cores, tiles=4, passes=1, first=4)
    assert (report.hbm_bytes, report.l2_bytes) == (4 * cores * TILE, 0)
    bytes_alone = 4 * cores * TILE / chip
    assert bytes_alone <= report.modelled_cycles <= bytes_alone + 4 * LATENCY + SYNC + 256    # windows of 256 cycles
    alone = reads(soc, 1, tiles=4, passes=1, first=4)
    assert alone.modelled_cycles == pytest.approx(after(*[TILE / RATES[soc][0]] * 4))


@pytest.mark.parametrize("soc", SOCS)
def test_writes_count_once_against_hbm_and_are_read_from_l2(soc):
    _, l2, out, _ = RATES[soc]
    assert [(r.hbm_bytes, r.l2_bytes) for r in (writes(soc, 1, False), writes(soc, 3, False), writes(soc, 1, True))] == [
        (TILE, 0), (TILE, 2 * TILE), (TILE, TILE)]   # fmt: skip
    written, back = writes(soc, 1, False), writes(soc, 1, True)
    assert written.pipes["MTE3"].busy_cycles == pytest.approx(TILE / out)
    assert back.modelled_cycles - written.modelled_cycles == pytest.approx(TILE / l2 + LATENCY, abs=2 * SYNC)


@pytest.mark.parametrize("blocks, waves", [(40, 1), (41, 2), (80, 2), (81, 3)])
def test_blocks_beyond_the_cores_run_in_waves(blocks, waves):
    report = reads("Ascend910B3", blocks, tiles=1, passes=1, first=0)
    assert report.modelled_cycles == pytest.approx(after(TILE / 32) + (waves - 1) * after(TILE / 110), abs=waves * 256)


def test_time_depends_neither_on_threads_nor_on_what_is_checked():
    figures = set()
    for options in ({"host_threads": 1}, {"host_threads": 4}, {"checks": False}, {"trace": True}, {"adversarial_seed": 3}):
        report = reads("ascend910b", 40, tiles=3, passes=2, first=1, **options)
        busy = tuple(use.busy_cycles for use in report.pipes.values())
        figures.add((round(report.modelled_cycles, 6), report.hbm_bytes, report.l2_bytes, tuple(round(b, 6) for b in busy)))
    assert len(figures) == 1
