"""Plans of hc_post: what holds for every shape and chip, and what the published plan (hc_mult 4, facts on mHC 3.4) leaves undone."""

import tiling_plans as plans
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_invariants import (assert_rows_are_covered_once, assert_tiles_cover_once, chips, element_bytes, hidden, some_cores, tokens)
from tiling_plans import Chip, Refused

#: chip -> per TOKENS: cores used, tokens of the busiest core
TOKENS = (1, 16, 48, 128, 129, 512, 4096)
PUBLISHED = {
    "A48": [(1, 1), (16, 1), (48, 1), (48, 3), (48, 3), (48, 11), (48, 86)],
    "A40": [(1, 1), (16, 1), (40, 2), (40, 4), (40, 4), (40, 13), (40, 103)],
    "D64": [(1, 1), (16, 1), (48, 1), (64, 2), (64, 3), (64, 8), (64, 64)],
}


@given(chip=chips, tokens=tokens, hc_mult=st.integers(1, 16), hidden=hidden, element_bytes=element_bytes, weight_bytes=element_bytes)
@example(chip=plans.CHIPS["A40"], tokens=0, hc_mult=4, hidden=4096, element_bytes=2, weight_bytes=4)
@example(chip=plans.CHIPS["A40"], tokens=1, hc_mult=16, hidden=1, element_bytes=4, weight_bytes=2)
@example(chip=plans.CHIPS["D64"], tokens=2**31 - 1, hc_mult=16, hidden=2**29 - 1, element_bytes=4, weight_bytes=4)
def test_invariants(chip, tokens, hc_mult, hidden, element_bytes, weight_bytes):
    plan = plans.post(chip, tokens, hc_mult, hidden, element_bytes, weight_bytes)
    assert 1 <= plan.usedCores <= chip.cores
    if tokens == 0:
        assert plan.usedCores == 1 and plan.rowsPerFormer == plan.rowsPerTail == plan.formerCores == 0
        return
    groups = plan.usedCores // plan.coresPerToken
    assert groups * plan.coresPerToken == plan.usedCores
    assert_rows_are_covered_once(plan, groups, tokens)
    assert plan.rowsPerTail >= 1, "no core is idle"

    # columns: every core of a token has some, every slice starts on 512 B of 16-bit x
    assert (plan.coresPerToken - 1) * plan.columnsPerCore < hidden <= plan.coresPerToken * plan.columnsPerCore
    assert plan.coresPerToken == 1 or (plan.columnsPerCore % 256 == 0 and plan.columnsPerCore >= 512)

    # the tile, the batch and the UB they take
    pitch = -(-plan.dFactor * element_bytes // 32) * 32
    assert plan.residualOffset * element_bytes == plan.rowFactor * pitch
    assert plan.inBytes >= plan.rowFactor * (1 + hc_mult) * pitch and plan.outBytes == plan.rowFactor * hc_mult * pitch
    assert plan.dLoop == 1 or (plan.rowFactor == 1 and plan.dFactor % 64 == 0)
    assert plan.dLoop == -(-plan.columnsPerCore // plan.dFactor)
    assert plan.rowFactor * hc_mult <= 4095, "blocks of one DMA"
    assert 1 <= plan.rowFactor <= plan.batchRows <= plan.rowsPerFormer
    assert plan.combOffset >= plan.batchRows * hc_mult and plan.combOffset * weight_bytes % 32 == 0
    assert plan.weightBytes >= (plan.combOffset + plan.batchRows * hc_mult**2) * weight_bytes
    assert plan.valueBytes == plan.weightBytes // weight_bytes * 4
    if element_bytes == 2 and not chip.regbase:
        assert plan.sumBytes == 2 * plan.outBytes and plan.wideBytes == 2 * plan.rowFactor * pitch
    else:
        assert plan.sumBytes == plan.wideBytes == 0
    twice = [plan.weightBytes, plan.inBytes, plan.outBytes, plan.wideBytes]
    assert all(size % 32 == 0 for size in (*twice, plan.valueBytes, plan.sumBytes))
    assert 2 * sum(twice) + plan.valueBytes + plan.sumBytes == plan.ubBytes <= chip.ub_bytes

    if plan.rowsPerFormer * plan.dLoop <= 5000:
        for part in some_cores(plan.coresPerToken):
            columns = min(plan.columnsPerCore, hidden - part * plan.columnsPerCore)
            for rows in {plan.rowsPerFormer, plan.rowsPerTail}:
                assert_tiles_cover_once(plans.tiles(plan, rows, columns), rows, columns, plan.rowFactor, plan.dFactor)


@pytest.mark.parametrize("hidden", [512, 1280, 2560, 4096, 7168])
@pytest.mark.parametrize("chip", plans.CHIPS)
def test_no_core_does_more_than_in_the_published_plan(chip, hidden):
    for tokens, (used, rows) in zip(TOKENS, PUBLISHED[chip]):
        plan = plans.post(plans.CHIPS[chip], tokens, 4, hidden)
        assert plan.usedCores >= used or plan.rowsPerFormer * plan.columnsPerCore < rows * hidden
        assert plan.rowsPerFormer * plan.columnsPerCore <= rows * hidden


@pytest.mark.parametrize("hidden", [512, 1280, 2560, 4096, 7168])
@pytest.mark.parametrize("chip", plans.CHIPS)
def test_full_dma_where_there_is_enough(chip, hidden):
    """Many tokens: residual tiles of 16 KiB at least, up to the part of one by which they do not divide."""
    plan = plans.post(plans.CHIPS[chip], 4096, 4, hidden)
    assert plan.rowFactor * 4 * plan.dFactor * 2 >= 14 << 10


@pytest.mark.parametrize("chip", plans.CHIPS)
@pytest.mark.parametrize("tokens", [1, 2, 7, 16])
def test_few_tokens_share_their_columns(chip, tokens):
    """P8: one token on one core."""
    spec = plans.CHIPS[chip]
    plan = plans.post(spec, tokens, 4, 4096)
    assert plan.coresPerToken > 1
    assert plan.rowsPerFormer * plan.columnsPerCore <= max(512, 1.5 * tokens * 4096 / spec.cores)


def test_a_token_is_not_cut_below_1_kib():
    plan = plans.post(plans.CHIPS["A48"], 1, 4, 4096)
    assert (plan.usedCores, plan.coresPerToken, plan.columnsPerCore) == (8, 8, 512)
    plan = plans.post(plans.CHIPS["A48"], 1, 4, 512)
    assert (plan.usedCores, plan.coresPerToken) == (1, 1)


def test_uneven_tokens_are_evened_out_over_columns():
    """32 tokens on 48 cores: 16 groups of three cores with two tokens each, 2731 columns' worth and not 4096."""
    plan = plans.post(plans.CHIPS["A48"], 32, 4, 4096)
    assert (plan.usedCores, plan.coresPerToken, plan.rowsPerFormer) == (48, 3, 2)


@pytest.mark.parametrize("arguments, sentence", [
    (dict(hc_mult=0), "residual has 0 streams (dimension -2), supported are 1 to 16"),
    (dict(hc_mult=17), "residual has 17 streams (dimension -2), supported are 1 to 16"),
    (dict(hidden=0), "residual has d = 0 (last dimension), supported are 1 to 536870911"),
    (dict(tokens=2**31), "residual has 2147483648 tokens, supported are up to 2147483647"),
], ids=str)
def test_refuses(arguments, sentence):
    call = dict(tokens=16, hc_mult=4, hidden=4096) | arguments
    with pytest.raises(Refused, match="^hc_post: ") as refused:
        plans.post(plans.CHIPS["A48"], **call)
    assert sentence in str(refused.value)


def test_a_chip_without_room_is_named():
    with pytest.raises(Refused, match="chip has 1024 B of UB"):
        plans.post(Chip(48, 1024, False), 16, 4, 4096)
