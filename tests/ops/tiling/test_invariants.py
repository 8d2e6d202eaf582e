"""What holds for every plan, whatever the shape and the chip."""

import tiling_plans as plans
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tiling_plans import Chip, Refused

chips = st.sampled_from([*plans.CHIPS.values(), Chip(1, 196608, False), Chip(8, 253952, True)])
tokens = st.one_of(st.integers(0, 300), st.sampled_from([511, 512, 513, 3073, 4096, 4097, 8193, 64000, 65536, 2**31 - 1]))
hidden = st.one_of(st.integers(1, 300), st.integers(1, 20000), st.sampled_from([4864, 4865, 12608, 65536, 1 << 20]))
element_bytes = st.sampled_from([2, 4])


def some_cores(cores: int) -> list[int]:
    return sorted({0, 1, cores // 2, cores - 2, cores - 1} & set(range(cores)))


def assert_rows_are_covered_once(plan, groups: int, rows: int):
    assert plan.formerCores <= groups
    assert plan.rowsPerFormer - plan.rowsPerTail in (0, 1)
    assert plan.formerCores * plan.rowsPerFormer + (groups - plan.formerCores) * plan.rowsPerTail == rows


def assert_tiles_cover_once(tiles, rows: int, columns: int, most_rows: int, most_columns: int):
    area, at = 0, (0, 0)
    for row, count, column, width in tiles:
        assert (row, column) == at and 1 <= count <= most_rows and 1 <= width <= most_columns
        area += count * width
        at = (row, column + width) if column + width < columns else (row + count, 0)
    assert at == (rows, 0) and area == rows * columns


@given(chip=chips, tokens=tokens, hc_mult=st.integers(1, 16), hidden=hidden, element_bytes=element_bytes)
@example(chip=plans.CHIPS["A40"], tokens=0, hc_mult=4, hidden=4096, element_bytes=2)
@example(chip=plans.CHIPS["A40"], tokens=1, hc_mult=16, hidden=1, element_bytes=4)
def test_sinkhorn(chip, tokens, hc_mult, hidden, element_bytes):
    plan = plans.sinkhorn(chip, tokens, hc_mult, hidden, element_bytes)
    assert 1 <= plan.usedCores <= chip.cores
    if tokens == 0:
        assert plan.usedCores == 1 and plan.rowsPerFormer == plan.rowsPerTail == plan.formerCores == 0
        return
    groups = plan.usedCores // plan.coresPerToken
    assert groups * plan.coresPerToken == plan.usedCores
    assert_rows_are_covered_once(plan, groups, tokens)
    assert plan.rowsPerTail >= 1, "no core is idle"
    assert plan.usedCores >= min(tokens, chip.cores)

    # columns: every core of a token has some, every slice starts on 512 B of 16-bit x
    assert (plan.coresPerToken - 1) * plan.columnsPerCore < hidden <= plan.coresPerToken * plan.columnsPerCore
    assert plan.coresPerToken == 1 or (plan.columnsPerCore % 256 == 0 and plan.columnsPerCore >= 512)

    # the tile, the batch and the UB they take
    pitch = -(-plan.dFactor * element_bytes // 32) * 32
    assert plan.xBytes >= plan.rowFactor * hc_mult * pitch and plan.yBytes >= plan.rowFactor * pitch
    assert plan.dLoop == 1 or (plan.rowFactor == 1 and plan.dFactor % 64 == 0)
    assert plan.rowFactor * hc_mult <= 4095, "blocks of one DMA"
    assert 1 <= plan.batchRows <= min(256, plan.rowsPerFormer)
    if chip.regbase:
        assert plan.chunkTokens == 64
    else:
        assert plan.chunkTokens % 8 == 0 and plan.chunkTokens <= 64
        chunks = -(-plan.batchRows // plan.chunkTokens)
        assert chunks * hc_mult <= 255, "one repeat per matrix row"
        assert element_bytes == 4 or plan.workBytes >= plan.rowFactor * hc_mult * pitch * 2
    buffers = [getattr(plan, f"{name}Bytes") for name in ("mix", "post", "comb", "pre", "constant", "plane", "work", "x", "x", "y", "y")]
    assert all(size % 32 == 0 for size in buffers)
    assert sum(buffers) == plan.ubBytes <= chip.ub_bytes

    if plan.rowsPerFormer <= 5000:
        for part in some_cores(plan.coresPerToken):
            columns = min(plan.columnsPerCore, hidden - part * plan.columnsPerCore)
            for rows in {plan.rowsPerFormer, plan.rowsPerTail}:
                assert_tiles_cover_once(plans.tiles(plan, rows, columns), rows, columns, plan.rowFactor, plan.dFactor)


@given(chip=chips, tokens=tokens, hc_mult=st.integers(1, 32), hidden=hidden, element_bytes=element_bytes)
@example(chip=plans.CHIPS["A40"], tokens=0, hc_mult=4, hidden=4096, element_bytes=2)
def test_inv_rms(chip, tokens, hc_mult, hidden, element_bytes):
    row = hc_mult * hidden
    plan = plans.inv_rms(chip, tokens, row, element_bytes)
    assert 1 <= plan.usedCores <= chip.cores
    if tokens == 0:
        assert plan.usedCores == 1 and plan.rowsPerFormer == plan.rowsPerTail == plan.formerCores == 0
        return
    assert_rows_are_covered_once(plan, plan.usedCores, tokens)
    assert plan.rowsPerTail >= 1 and plan.usedCores == min(tokens, chip.cores)

    pitch = -(-plan.columnFactor * element_bytes // 32) * 32 // element_bytes
    assert plan.xBytes >= plan.rowFactor * pitch * element_bytes
    assert plan.columnLoop == 1 or (plan.rowFactor == 1 and plan.columnFactor % 64 == 0)
    assert plan.outRows % plan.rowFactor == 0 or plan.outRows == plan.rowsPerFormer
    if not chip.regbase:
        assert plan.workRows >= 1 and plan.workColumns >= 1
        assert plan.workRows == 1 or plan.workColumns == pitch, "several rows are squared as one run"
        assert plan.workColumns == pitch or (plan.workColumns % 64 == 0 and plan.workColumns < pitch + 64)
        assert plan.workBytes == plan.workRows * plan.workColumns * (8 if element_bytes == 2 else 4)
    buffers = [plan.xBytes, plan.xBytes, plan.workBytes, plan.sumBytes, plan.outBytes, plan.outBytes]
    assert all(size % 32 == 0 for size in buffers)
    assert sum(buffers) == plan.ubBytes <= chip.ub_bytes

    if plan.rowsPerFormer * plan.columnLoop <= 5000:
        for rows in {plan.rowsPerFormer, plan.rowsPerTail}:
            assert_tiles_cover_once(plans.inv_rms_tiles(plan, rows), rows, row, plan.rowFactor, plan.columnFactor)


@pytest.mark.parametrize("arguments, sentence", [
    (dict(hc_mult=0), "hc_mult is 0, supported are 1 to 16"),
    (dict(hc_mult=17), "hc_mult is 17, supported are 1 to 16"),
    (dict(hidden=0), "x has d = 0 (last dimension), supported are 1 to 536870911"),
    (dict(iters=0), "hc_sinkhorn_iters is 0, supported are 1 to 2147483647"),
    (dict(iters=-1), "hc_sinkhorn_iters is -1, supported are 1 to 2147483647"),
    (dict(eps=-1e-6), "hc_eps must be a finite number >= 0, got -1e-06"),
    (dict(eps=float("nan")), "hc_eps must be a finite number >= 0, got nan"),
    (dict(tokens=2**31), "x has 2147483648 tokens, supported are up to 2147483647"),
], ids=str)
def test_sinkhorn_refuses(arguments, sentence):
    call = dict(tokens=16, hc_mult=4, hidden=4096) | arguments
    with pytest.raises(Refused, match="^hc_pre_sinkhorn: ") as refused:
        plans.sinkhorn(plans.CHIPS["A48"], **call)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("arguments, sentence", [
    (dict(row_elements=0), "hold 0 elements"),
    (dict(epsilon=-1.0), "epsilon must be a finite number >= 0, got -1"),
    (dict(epsilon=float("inf")), "epsilon must be a finite number >= 0, got inf"),
    (dict(tokens=2**31), "x has 2147483648 tokens"),
], ids=str)
def test_inv_rms_refuses(arguments, sentence):
    call = dict(tokens=16, row_elements=16384, element_bytes=2) | arguments
    with pytest.raises(Refused, match="^hc_pre_inv_rms: ") as refused:
        plans.inv_rms(plans.CHIPS["A48"], **call)
    assert sentence in str(refused.value)


def test_epsilon_zero_is_accepted():
    assert plans.inv_rms(plans.CHIPS["A48"], 16, 16384, 2, epsilon=0.0).epsilon == 0


def test_a_chip_without_room_is_named():
    with pytest.raises(Refused, match="chip has 1024 B of UB"):
        plans.sinkhorn(Chip(48, 1024, False), 16, 4, 4096)
