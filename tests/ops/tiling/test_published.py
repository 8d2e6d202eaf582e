"""Our plans beside the published ones: never more UB than the chip has, never fewer cores, never more loops.

Where ours differ, and why:
* rows are split evenly (128 rows on 48 cores: 32 cores x 3 + 16 x 2, not 42 x 3 + 1 x 2), so more cores work;
* with at most half as many tokens as cores, several cores share a token's columns (not in inv_rms, whose sum would have to cross
  cores);
* tiles of a core are evened out (8 + 8 rows, not 9 + 7), so rowFactor may be below the published one at equal loops;
* sinkhorn on membase keeps no separate float32 y, so one row more fits at d <= 2560; its weights are computed for batchRows
  tokens, not for the rows of one tile, so that the vector unit is not idle when one row of x fills UB;
* inv_rms on membase squares a row piece by piece, so x tiles are larger; d = 7168 in float32 is two double-buffered halves of a row
  where the published kernel has one single buffer, filled once and cut in two.
"""

import tiling_plans as plans
import published_plans as published
import pytest

CASES = [(chip, d, i) for chip in plans.CHIPS for d in published.HIDDEN for i in range(len(published.TOKENS))]


def case_id(case) -> str:
    chip, d, i = case
    return f"{chip}-d{d}-T{published.TOKENS[i]}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_sinkhorn_plan_is_at_least_as_good(case):
    name, d, i = case
    chip, tokens = plans.CHIPS[name], published.TOKENS[i]
    d_loop, _, row_factor, row_loops, ub = published.SINKHORN[name, d]
    used, rows, _ = published.ROWS[name][i]
    plan = plans.sinkhorn(chip, tokens, 4, d)

    assert plan.ubBytes <= chip.ub_bytes
    assert plan.usedCores >= used
    assert plan.rowsPerFormer <= rows
    assert plan.dLoop <= d_loop
    ours = len(list(plans.tiles(plan, plan.rowsPerFormer, plan.columnsPerCore)))
    assert ours <= published.numbers(row_loops)[i] * d_loop
    # The same tile takes no more UB than theirs beyond the weights of the larger batch.
    if plan.rowFactor == published.numbers(row_factor)[i] and plan.columnsPerCore == d:
        weights = plan.mixBytes + plan.postBytes + plan.combBytes + plan.preBytes + plan.planeBytes
        assert plan.ubBytes - weights <= published.numbers(ub)[i]


@pytest.mark.parametrize("element_bytes", [2, 4], ids=["16bit", "float32"])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_inv_rms_plan_is_at_least_as_good(case, element_bytes):
    name, d, i = case
    chip, tokens = plans.CHIPS[name], published.TOKENS[i]
    factor = published.numbers(published.INV_RMS[name, d][element_bytes == 4])[i]
    used, rows, _ = published.ROWS[name][i]
    plan = plans.inv_rms(chip, tokens, 4 * d, element_bytes)

    assert plan.ubBytes <= chip.ub_bytes
    assert plan.usedCores >= used
    assert plan.rowsPerFormer <= rows
    ours = len(list(plans.inv_rms_tiles(plan, plan.rowsPerFormer)))
    pieces = 2 if d == 7168 and not chip.regbase else 1  # published key 1001 sums 16384 + 12288 elements of a row
    assert ours <= -(-rows // factor) * pieces
    assert plan.columnLoop == (2 if d == 7168 and element_bytes == 4 and not chip.regbase else 1)


@pytest.mark.parametrize("chip", plans.CHIPS)
@pytest.mark.parametrize("d", [6144, 8192])
@pytest.mark.parametrize("element_bytes", [2, 4], ids=["16bit", "float32"])
def test_inv_rms_plans_sizes_the_public_tiling_cannot(chip, d, element_bytes):
    plan = plans.inv_rms(plans.CHIPS[chip], 4096, 4 * d, element_bytes)
    assert plan.rowFactor >= 1 and plan.columnFactor >= 1


@pytest.mark.parametrize("chip", plans.CHIPS)
def test_128_rows_are_split_evenly(chip):
    spec = plans.CHIPS[chip]
    plan = plans.sinkhorn(spec, 128, 4, 4096)
    counts = [plans.rows_of_core(plan, core) for core in range(plan.usedCores)]
    assert plan.usedCores == spec.cores and sum(counts) == 128 and max(counts) - min(counts) <= 1


def test_few_tokens_share_columns():
    plan = plans.sinkhorn(plans.CHIPS["A48"], 1, 4, 4096)
    assert (plan.usedCores, plan.coresPerToken, plan.columnsPerCore) == (8, 8, 512)  # at least 1 KiB of each stream
    plan = plans.sinkhorn(plans.CHIPS["A48"], 16, 4, 4096)
    assert (plan.usedCores, plan.coresPerToken, plan.columnsPerCore) == (48, 3, 1536)
    plan = plans.sinkhorn(plans.CHIPS["A48"], 1, 4, 512)
    assert (plan.usedCores, plan.coresPerToken) == (1, 1)
