"""Plans of fused_linear_attention: what holds for every shape, what the shapes of models get, and what is refused."""

from dataclasses import replace

import pytest
import tiling_plans as plans
from hypothesis import example, given
from hypothesis import strategies as st
from tiling_plans import CHUNKED, RECURRENT, SHORT_CONV, Chip, Refused

chips = st.sampled_from([*plans.CHIPS.values(), Chip(1, 196608, False), Chip(8, 253952, True)])
lengths = st.one_of(st.integers(1, 40), st.sampled_from([64, 127, 1000, 65536]))
batches = st.sampled_from([1, 2, 3, 8, 41, 256])
taps = st.integers(1, 8)
dims = st.one_of(st.integers(1, 140), st.sampled_from([192, 256, 511, 512]))
element_bytes = st.sampled_from([2, 4])


def share_of(count: int, core: int, cores: int) -> range:
    return range(count * core // cores, count * (core + 1) // cores)


@given(chip=chips, attn_type=st.sampled_from(["gated_delta_rule", "kda"]), batch=batches, length=lengths,
       key_heads=st.sampled_from([1, 2, 3, 16]), ratio=st.sampled_from([1, 2, 3, 8]), key_dim=dims, taps=taps, value_dim=dims,
       element_bytes=element_bytes, packed=st.booleans(), conv_state=st.booleans(), fold=st.booleans())
@example(chip=plans.CHIPS["A48"], attn_type="kda", batch=1, length=65536, key_heads=1, ratio=1, key_dim=512, taps=8, value_dim=512,
         element_bytes=4, packed=False, conv_state=True, fold=True)
def test_recurrent(chip, attn_type, batch, length, key_heads, ratio, key_dim, taps, value_dim, element_bytes, packed, conv_state, fold):
    sequences = batch if packed else None
    chip = replace(chip, cube_cores=0)
    rows = (1, batch * length) if packed else (batch, length)
    plan = plans.linear_attention(chip, attn_type, *rows, (key_heads, key_heads * ratio), (key_dim, value_dim), taps, sequences,
                                  conv_state=conv_state, element_bytes=element_bytes, gate_bytes=element_bytes, fold=fold)
    data, buffers = plan.data, plan.data.buffers
    assert plan.kernel == RECURRENT and plan.blockDim == data.usedCores <= chip.cores
    assert data.tokens == batch * length and data.sequenceTokens == (0 if packed else length) and data.sequences == batch

    # tiles cover the columns once, pieces the value heads of a key head
    assert (data.valueTiles - 1) * data.valueTile < value_dim <= data.valueTiles * data.valueTile
    assert data.valueTiles == 1 or data.valueTile % 8 == 0
    assert data.pieces == ratio * data.valueTiles
    items = batch * key_heads
    units = items if data.wholeItems else items * data.pieces
    assert data.usedCores <= units and -(-units // data.usedCores) == -(-units // min(units, chip.cores)), "the busiest core has the least"
    assert data.sequenceWeight >= 1
    assert 1 <= buffers.chunkTokens <= 16

    # one step's input: parts follow each other, each on a block; with one buffer, the weights of a new head before everything else
    rows, history = taps - 1 + buffers.chunkTokens, taps - 1
    assert buffers.keyPitch * element_bytes % 32 == 0 and key_dim <= buffers.keyPitch < key_dim + 32
    window = [(0, rows * 2 * buffers.keyPitch), (buffers.inValues, rows * buffers.valuePitch),
              (buffers.inKeyStates, 2 * buffers.keyStateStride), (buffers.inValueStates, data.valueTile * history)]
    weights = [(buffers.inKeyWeights, 2 * buffers.keyWeightStride), (buffers.inValueWeights, data.valueTile * taps),
               (buffers.inKeyBias, 2 * buffers.keyPitch), (buffers.inValueBias, buffers.valuePitch)]
    gates, end = (buffers.inGate // element_bytes, 0), (buffers.inBytes // element_bytes, 0)
    for parts in ([window + weights + [gates]] if buffers.spare == 2 else [window + [gates], weights + [end]]):
        for (start, size), (following, _) in zip(parts, parts[1:]):
            assert start + size <= following and start * element_bytes % 32 == 0
    assert buffers.inGate < buffers.inBeta <= buffers.inGateBias <= buffers.inBytes
    assert buffers.stateBytes - (256 if chip.regbase and -(-data.valueTile // 8) % 8 else 0) == key_dim * (-(-data.valueTile // 8) * 8) * 4
    spared = buffers.inBytes + buffers.stateBytes + (buffers.convOutBytes if conv_state and history else 0)
    out = -(-buffers.outBytes // 32) * 32
    assert buffers.spare * spared + 2 * out + buffers.workBytes == buffers.ubBytes <= chip.ub_bytes
    assert 128 % buffers.sumRows == 0, "groups of rows start at row 0 of the sums"


@given(chip=st.sampled_from([*plans.CHIPS.values(), Chip(2, 196608, False, 1)]), batch=batches,
       length=st.one_of(st.integers(65, 700), st.sampled_from([8192, 65536, 1 << 20])), key_heads=st.sampled_from([1, 2, 3, 16]),
       ratio=st.sampled_from([1, 2, 3, 8]), key_dim=st.sampled_from([16, 64, 96, 128]), value_dim=st.sampled_from([16, 64, 96, 112, 128]),
       taps=taps, element_bytes=element_bytes, packed=st.booleans(), fold=st.booleans())
def test_chunked(chip, batch, length, key_heads, ratio, key_dim, value_dim, taps, element_bytes, packed, fold):
    heads = key_heads * ratio
    rows = (1, batch * length) if packed else (batch, length)
    plan = plans.linear_attention(chip, "gated_delta_rule", *rows, (key_heads, heads), (key_dim, value_dim), taps, batch if packed else None,
                                  element_bytes=element_bytes, gate_bytes=element_bytes, fold=fold)
    if plan.kernel == RECURRENT:
        return
    data, chunked = plan.data, plan.data.chunked
    assert plan.kernel == CHUNKED and plan.blockDim == chunked.cubeCores <= chip.cube_cores and data.usedCores == 2 * chunked.cubeCores
    assert data.valueTile % 16 == 0 and (data.valueTiles - 1) * data.valueTile < value_dim <= data.valueTiles * data.valueTile
    assert data.buffers.ubBytes <= chip.ub_bytes and 1 <= chunked.lanes <= 4
    tiles = chunked.lanes + 1 + 2 * chunked.spare  # states, a copy, what comes and goes
    assert tiles * key_dim // 2 * data.valueTile * 4 + 1024 <= chip.ub_bytes
    window, tile = chunked.windowChunks, key_dim * data.valueTile
    assert 1 <= window <= min(128, batch * (-(-length // 64) + packed))
    sizes = [key_heads * window * 64 * key_dim * element_bytes] * 2 + [
        heads * window * 64 * value_dim * element_bytes, heads * window * 32, key_heads * window * 2 * 64 * 64 * 4,
        heads * window * 3 * 64 * 64 * element_bytes, heads * window * 2 * 64 * key_dim * element_bytes, heads * window * 96,
        chunked.cubeCores * chunked.lanes * tile * element_bytes, chunked.cubeCores * chunked.lanes * tile * 4,
        2 * heads * key_dim * value_dim * 4]
    starts = [getattr(chunked, name) for name in ("queries", "keys", "values", "scales", "products", "squares", "scaled", "factors",
                                                  "operands", "updates", "carried", "bytes")]
    for start, size, following in zip(starts, sizes, starts[1:]):
        assert start % 512 == 0 and start + size <= following < start + size + 512
    assert plan.workspaceBytes == chunked.bytes
    assert window <= 4 or starts[8] <= 97 << 20, "what grows with the window is bounded"


@pytest.mark.parametrize("chip", plans.CHIPS)
@pytest.mark.parametrize("changes", [
    dict(attn_type="kda"), dict(length=64), dict(length=640, sequences=10), dict(dims=(127, 128)), dict(dims=(128, 144)), dict(norm=False),
], ids=str)
def test_what_is_not_for_chunks(changes, chip):
    assert plans.linear_attention(plans.CHIPS[chip], length=1024).kernel == CHUNKED
    assert plans.linear_attention(plans.CHIPS[chip], **dict(length=1024) | changes).kernel == RECURRENT


@given(chip=chips, batch=batches, length=lengths, taps=taps,
       hidden=st.one_of(st.integers(1, 300), st.sampled_from([1024, 2048, 2560, 7168, 100000])), element_bytes=element_bytes,
       packed=st.booleans(), conv_state=st.booleans())
def test_short_conv(chip, batch, length, hidden, taps, element_bytes, packed, conv_state):
    rows = (1, batch * length) if packed else (batch, length)
    plan = plans.linear_attention(chip, "short_conv", *rows, (1, 1), (hidden, hidden), taps, batch if packed else None,
                                  conv_state=conv_state, element_bytes=element_bytes)
    data, buffers = plan.data, plan.data.conv
    assert plan.kernel == SHORT_CONV and plan.blockDim == data.usedCores == buffers.parts * buffers.tileGroups <= chip.cores
    assert data.channels == 3 * hidden and data.convChannels == hidden
    assert (data.valueTiles - 1) * data.valueTile < hidden <= data.valueTiles * data.valueTile
    assert data.valueTiles == 1 or data.valueTile % 64 == 0
    assert 1 <= buffers.tileGroups <= data.valueTiles
    count = batch if data.wholeItems else batch * length
    assert buffers.parts <= count
    if count < 5000:
        assert [i for part in range(buffers.parts) for i in share_of(count, part, buffers.parts)] == list(range(count))
    assert buffers.ubBytes <= chip.ub_bytes and buffers.pitch * element_bytes % 32 == 0 and buffers.pitch >= data.valueTile
    assert buffers.outBytes == buffers.chunkTokens * buffers.pitch * element_bytes


@pytest.mark.parametrize("chip", plans.CHIPS)
@pytest.mark.parametrize("batch", [8, 16, 64])
@pytest.mark.parametrize("attn_type", ["gated_delta_rule", "kda"])
def test_decode_of_models_keeps_whole_states_in_ub(chip, batch, attn_type):
    """Hk = 16, Hv = 32, d = 128: a piece is a whole head, one contiguous 64 KiB DMA each way."""
    data = plans.linear_attention(plans.CHIPS[chip], attn_type, batch=batch, fold=True).data
    assert data.valueTile == 128 and data.buffers.chunkTokens == 1 and data.usedCores >= 0.8 * plans.CHIPS[chip].cores


def test_few_heads_are_split_over_cores():
    data = plans.linear_attention(plans.CHIPS["A40"], batch=1, length=1, heads=(1, 2)).data
    assert data.usedCores > 2 and not data.wholeItems


@pytest.mark.parametrize("arguments, sentence", [
    (dict(heads=(3, 4)), "num_v_heads = 4 must be a multiple of num_k_heads = 3"),
    (dict(heads=(0, 4)), "num_v_heads = 4 must be a multiple of num_k_heads = 0"),
    (dict(dims=(513, 128)), "head_k_dim = 513 and head_v_dim = 128, supported are 1 to 512"),
    (dict(dims=(128, 0)), "head_k_dim = 128 and head_v_dim = 0, supported are 1 to 512"),
    (dict(taps=9), "conv_weight has K = 9 taps, supported are 1 to 8"),
    (dict(taps=0), "conv_weight has K = 0 taps, supported are 1 to 8"),
    (dict(batch=2**20, length=2**20), "qkv has 1048576 x 1048576 tokens, supported are up to 2147483647"),
    (dict(slots=2**40), "1 sequences and 1099511627776 slots, supported are up to 2147483647"),
    (dict(heads=(2**20, 2**20), dims=(512, 512)), "qkv has D = 1610612736 channels, supported are up to 268435455"),
], ids=str)
def test_refuses(arguments, sentence):
    with pytest.raises(Refused, match="^fused_linear_attention: ") as refused:
        plans.linear_attention(plans.CHIPS["A48"], **arguments)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("attn_type", ["gated_delta_rule", "short_conv"])
def test_a_chip_without_room_is_named(attn_type):
    heads = (1, 1) if attn_type == "short_conv" else (16, 32)
    with pytest.raises(Refused, match="chip has 1024 B of UB, the smallest tile needs"):
        plans.linear_attention(Chip(48, 1024, False), attn_type, heads=heads)
