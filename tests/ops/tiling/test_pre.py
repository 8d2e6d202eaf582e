"""Plans of hc_pre: what holds for every shape and chip, and what the published plan (facts on mHC 3.5, 5.4) leaves undone."""

import tiling_plans as plans
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_invariants import assert_rows_are_covered_once, hidden, tokens
from tiling_plans import BFLOAT16, DECODE, FLOAT16, FLOAT32, GRID, STREAM, WIDEN, Chip, Refused

chips = st.sampled_from([*plans.CHIPS.values(), Chip(1, 196608, False), Chip(8, 253952, True, 4, l0c_bytes=262144)])
dtypes = st.sampled_from([BFLOAT16, FLOAT16, FLOAT32])


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def assert_shares_cover(shares, units: int):
    sizes = shares.sizes()
    assert sum(sizes) == units and min(sizes) >= 1 and max(sizes) - min(sizes) <= 1


@given(chip=chips, tokens=tokens, hc_mult=st.integers(1, 16), hidden=hidden, dtype=dtypes)
@example(chip=plans.CHIPS["A48"], tokens=0, hc_mult=4, hidden=4096, dtype=BFLOAT16)
@example(chip=plans.CHIPS["A48"], tokens=1, hc_mult=1, hidden=1, dtype=FLOAT32)
@example(chip=plans.CHIPS["A40"], tokens=64000, hc_mult=16, hidden=20000, dtype=FLOAT32)
def test_invariants(chip, tokens, hc_mult, hidden, dtype):
    plan = plans.pre(chip, tokens, hc_mult, hidden, dtype)
    data, rows, mix, k = plan.data, plan.data.rows, (2 + hc_mult) * hc_mult, hc_mult * hidden
    if tokens == 0:
        assert plan.blockDim == 1 and plan.workspaceBytes == 0
        return
    assert (data.mix, data.rowElements) == (mix, k)
    assert_shares_cover(data.slices, ceil_div(k, 16))
    assert data.slices.count <= chip.cores
    assert data.tileColumns % 16 == 0 and (data.tileColumns * 4 // 32 <= 255 or plan.key == WIDEN), "a row to a repeat"
    assert data.ubBytes <= chip.ub_bytes and rows.ubBytes <= chip.ub_bytes
    assert (rows.mixPitch, rows.mixParts) == (data.partialPitch, data.parts) and data.partialPitch % 8 == 0
    assert rows.mixBytes >= rows.batchRows * data.parts * data.partialPitch * 4, "the partial sums of a batch"
    if plan.key == DECODE:
        check_decode(plan, chip, tokens, hc_mult, hidden, dtype)
    else:
        check_cube(plan, chip, tokens, k, dtype)


def check_decode(plan, chip, tokens, hc_mult, hidden, dtype):
    data, rows = plan.data, plan.data.rows
    assert plan.blockDim == max(data.slices.count * data.blocks.count, rows.usedCores) <= chip.cores
    assert_shares_cover(data.blocks, ceil_div(tokens, 16))
    assert data.slices.count == 1 or data.blocks.count == 1
    assert data.parts == data.slices.count and data.squareColumn == data.mix < data.partialPitch
    assert plan.workspaceBytes == tokens * data.parts * data.partialPitch * 4
    assert_rows_are_covered_once(rows, rows.usedCores // rows.coresPerToken, tokens)
    element = 4 if dtype == FLOAT32 else 2
    assert 1 <= data.groupTokens <= tokens
    assert data.fnBytes >= data.mix * data.tileColumns * 4 and data.xBytes >= data.groupTokens * data.tileColumns * element
    assert data.outBytes == data.groupTokens * data.partialPitch * 4
    assert data.ubBytes >= data.tileBuffers * (data.fnBytes + data.xBytes) + data.wideBytes + data.sumBytes + data.outBytes
    if not chip.regbase:
        assert data.sumBytes >= data.groupTokens * (data.mix + 1) * 256
        assert element == 4 or data.wideBytes == data.groupTokens * data.tileColumns * 4


def check_cube(plan, chip, tokens, k, dtype):
    data, rows = plan.data, plan.data.rows
    element, terms = (4, 1) if dtype == FLOAT32 or plan.key == WIDEN else (2, 3)
    assert plan.blockDim == data.cubeCores == chip.cube_cores
    assert_shares_cover(data.blocks, ceil_div(tokens, 16))
    assert_shares_cover(data.kParts, ceil_div(k, 16))
    assert data.blockRows == 16 * max(data.blocks.sizes())
    assert data.squareColumn >= data.mix and data.squareColumn % 8 == 0 and data.partialPitch == data.squareColumn + 16
    assert data.parts == data.kParts.count and data.termColumns == (0 if terms == 1 and k <= 65535 else ceil_div(k, 16) * 16)
    assert data.scaled == (dtype == FLOAT16 and plan.key != WIDEN)
    operand = terms * data.mix * data.termColumns * element  # that vector cores make
    if plan.key == WIDEN:
        operand = check_widen(data, chip, tokens, k, dtype)
    scales = data.scaled * (data.slices.count + 1) * data.squareColumn * 4
    assert plan.workspaceBytes == ceil_div(operand, 512) * 512 + tokens * data.parts * data.partialPitch * 4 + scales
    # memories of the cube core
    n = ceil_div(data.mix, 16) * 16
    assert data.kL0 % 16 == 0 and data.kL1 % data.kL0 == 0 and data.tileRows % 16 == 0 and data.kL0 >= 16 and data.tileRows >= 16
    assert data.xL1 == data.kL1 if k <= 65535 else data.xL1 % data.kL1 == 0 and data.xL1 >= data.kL1
    assert 2 * (data.blockRows * data.xL1 + terms * n * data.kL1) * element <= plans.L1_BYTES
    assert 2 * (data.tileRows + 16 * chip.regbase) * data.kL0 * element <= plans.L0_BYTES
    assert 2 * (terms * n + 16) * data.kL0 * element <= plans.L0_BYTES
    assert data.kL0 * element // 32 * (n // 16) <= 255, "fractals of one load"
    assert data.blockRows * (n + 16) * 4 <= chip.l0c_bytes
    if plan.key != STREAM:
        assert data.blocks.count * data.kParts.count <= chip.cube_cores
        assert_rows_are_covered_once(rows, rows.usedCores // rows.coresPerToken, tokens)
    else:
        assert data.kParts.count == 1 and rows.coresPerToken == 1 and rows.columnsPerCore == rows.hidden
        assert rows.rowsPerFormer >= ceil_div(data.blockRows, 2)
        # two rounds of tokens fit into L2, unless one 16-row block per core does not
        assert data.blockRows == 16 or 2 * chip.cube_cores * data.blockRows * k * element <= chip.l2_bytes


def check_widen(data, chip, tokens, k, dtype):
    """Bytes of x as float32."""
    assert dtype != FLOAT32 and data.termColumns == 0 and data.blocks.count == 1
    assert data.xPitch == ceil_div(k, 16) * 16 <= 65535, "a copy into L1 steps from token to token"
    assert 1 <= data.groupTokens <= tokens and data.tileColumns % 16 == 0
    elements = data.groupTokens * data.tileColumns
    assert data.tileBuffers == 2 and (data.xBytes, data.wideBytes) == (2 * elements, 4 * elements)
    assert 2 * (data.xBytes + data.wideBytes) <= data.ubBytes <= chip.ub_bytes
    return tokens * data.xPitch * 4


#: T -> plan of 910_93 at n = 4, bfloat16; cube cores and vector cores that the projection keeps busy
D4096 = {1: DECODE, 16: WIDEN, 129: GRID, 1024: GRID, 3073: GRID, 4096: GRID, 16384: STREAM, 65536: STREAM}


@pytest.mark.parametrize("chip", plans.CHIPS)
@pytest.mark.parametrize("hidden", [4096, 7168])
@pytest.mark.parametrize("tokens", D4096)
def test_all_cores_project(chip, hidden, tokens):
    """F12: the published plan used 13 of 24 cube cores at T = 3073."""
    spec = plans.CHIPS[chip]
    plan = plans.pre(spec, tokens, 4, hidden)
    if plan.key == DECODE:
        assert plan.data.slices.count == spec.cores
    elif plan.key in (GRID, WIDEN):
        used = plan.data.blocks.count * plan.data.kParts.count
        assert used >= 0.8 * spec.cube_cores and (tokens != 3073 or used == spec.cube_cores)
    else:
        assert plan.data.blocks.count >= spec.cube_cores
    assert plan.blockDim == (spec.cores if plan.key == DECODE else spec.cube_cores)


@pytest.mark.parametrize("chip", ["A48", "A40"])
def test_few_tokens_of_many_mixes_go_to_the_cube(chip):
    """Vector cores take time for each token and mix, the cube as much for one token as for 16. Up to some number of tokens to make x
    float32 takes less than to make terms of hc_fn; of more columns than a copy can step over it cannot be done."""
    keys = [plans.pre(plans.CHIPS[chip], tokens, 16, 256).key for tokens in (1, 3, 15, 17, 129)]
    assert keys == [DECODE, WIDEN, WIDEN, WIDEN, GRID]
    assert plans.pre(plans.CHIPS[chip], 8, 4, 4096).key == DECODE
    assert [plans.pre(plans.CHIPS[chip], 8, 16, hidden).key for hidden in (4095, 4096)] == [WIDEN, GRID]


def test_workspace_is_what_the_plan_needs():
    """F6: the published plan asked for 208 MiB at any T."""
    assert plans.pre(plans.CHIPS["A48"], 1, 4, 4096).workspaceBytes == 48 * 32 * 4
    assert plans.pre(plans.CHIPS["A48"], 65536, 4, 4096, FLOAT32).workspaceBytes == 65536 * 40 * 4
    assert plans.pre(plans.CHIPS["A48"], 65536, 4, 20000, FLOAT32).workspaceBytes == 24 * 80000 * 4 + 65536 * 40 * 4
    for tokens in D4096:
        plan = plans.pre(plans.CHIPS["A48"], tokens, 4, 4096)
        assert plan.workspaceBytes <= 3 * 24 * 16384 * 2 + max(48, tokens) * 48 * 48 * 4


@pytest.mark.parametrize("hc_mult", [1, 2, 3, 5, 6, 8, 10, 16])
@pytest.mark.parametrize("hidden", [1, 7, 100, 4100, 7168])
def test_any_hc_mult_and_hidden(hc_mult, hidden):
    """F4, F5: K not a multiple of 32, hc_mult other than 4."""
    for tokens in (1, 16, 129, 4096):
        plan = plans.pre(plans.CHIPS["A48"], tokens, hc_mult, hidden)
        assert plan.data.mix == (2 + hc_mult) * hc_mult


@pytest.mark.parametrize("arguments, sentence", [
    (dict(hc_mult=0), "hc_mult is 0, supported are 1 to 16"),
    (dict(hc_mult=17), "hc_mult is 17, supported are 1 to 16"),
    (dict(hidden=0), "x has d = 0 (last dimension), supported are 1 to 536870911"),
    (dict(hc_mult=16, hidden=2**28), "x has hc_mult * d = 4294967296 columns, supported are up to 2147483647"),
    (dict(iters=0), "hc_sinkhorn_iters is 0, supported are 1 to 2147483647"),
    (dict(hc_eps=-1e-6), "hc_eps must be a finite number >= 0, got -1e-06"),
    (dict(norm_eps=float("nan")), "norm_eps must be a finite number >= 0, got nan"),
    (dict(tokens=2**31), "x has 2147483648 tokens, supported are up to 2147483647"),
], ids=str)
def test_refuses(arguments, sentence):
    call = dict(tokens=16, hc_mult=4, hidden=4096) | arguments
    with pytest.raises(Refused, match="^hc_pre: ") as refused:
        plans.pre(plans.CHIPS["A48"], **call)
    assert sentence in str(refused.value)


def test_a_chip_without_room_is_named():
    with pytest.raises(Refused, match="chip has 1024 B of UB"):
        plans.pre(Chip(48, 1024, False), 16, 4, 4096)
