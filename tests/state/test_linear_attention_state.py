"""custom_ops.LinearAttentionState: what a row holds, going back, sharing, rows. Each public defect of its kind is a test. Its files:
test_linear_attention_state_files.py."""

import copy
import doctest
import io
import pickle

import pytest
import torch
from linear_attention_state import VARIANTS, Layer, layer, part, rows_of, same  # noqa: F401

import custom_ops
from custom_ops import LinearAttentionState


def test_example_of_the_docstring():
    result = doctest.testmod(custom_ops.state)
    assert result.attempted > 4 and result.failed == 0


def test_what_it_holds():
    state = LinearAttentionState("kda", num_k_heads=2, num_v_heads=4, head_k_dim=8, head_v_dim=16, conv_kernel_size=4, batch=3,
                                 dtype=torch.bfloat16)
    assert state.conv_state.shape == (3, 96, 3) and state.conv_state.dtype == torch.bfloat16 and state.conv_state.is_contiguous()
    assert state.recurrent_state.shape == (3, 4, 8, 16) and state.recurrent_state.dtype == torch.float32
    assert state.lengths.tolist() == [0, 0, 0] and not state.conv_state.any() and not state.recurrent_state.any()
    assert repr(state) == "LinearAttentionState(kda, [3, 96, 3] and [3, 4, 8, 16], torch.bfloat16, lengths=[0, 0, 0])"
    assert LinearAttentionState("short_conv", head_k_dim=4, head_v_dim=4, conv_kernel_size=3).recurrent_state is None


@pytest.mark.parametrize("options, message", [
    ({"attn_type": "mamba"}, "attn_type 'mamba' is not known, use one of gated_delta_rule, .*short_conv"),
    ({"conv_kernel_size": 9}, "conv_kernel_size must be 1 to 8, got 9"), ({"batch": 0}, "batch must be 1 to 2147483647, got 0"),
    ({"batch": 2.5}, "batch must be an integer, 1 to 2147483647, got 2.5"), ({"batch": True}, "batch must be an integer, .*, got True"),
    ({"head_k_dim": 0}, "head_k_dim must be 1 to 512, got 0"), ({"head_v_dim": 513}, "head_v_dim must be 1 to 512, got 513"),
    ({"num_k_heads": 2, "num_v_heads": 3}, "num_v_heads must be a multiple of num_k_heads, got 3 and 2"),
    ({"attn_type": "short_conv", "head_k_dim": 8}, "attn_type short_conv takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim"),
    ({"dtype": torch.float64}, "dtype must be one of bfloat16, float16, float32, got torch.float64")])
def test_refused_dimensions(options, message):
    with pytest.raises(RuntimeError, match=f"^LinearAttentionState: {message}"):
        LinearAttentionState(**{"attn_type": "kda", "head_k_dim": 4, "head_v_dim": 4, "conv_kernel_size": 3, **options})


# --- calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("attn_type", VARIANTS)
def test_any_split_of_the_tokens_is_one_call(attn_type, taps, dtype, rng):
    layer = Layer(attn_type, rng, taps, dtype)
    inputs, whole = layer.inputs(2, 11), layer.state(2)
    want = layer.run(whole, inputs)
    for cuts in ((0, 5, 11), (0, 1, 2, 11), (0, 2, 3, 5, 10, 11), tuple(range(12))):  # parts shorter than K - 1 too
        state = layer.state(2)
        got = torch.cat([layer.run(state, part(inputs, first, last)) for first, last in zip(cuts, cuts[1:])], 1)
        assert torch.equal(got, want) and same(state, whole), cuts
    assert whole.lengths.tolist() == [11, 11]


def test_a_row_does_not_depend_on_its_neighbours(layer):  # noqa: F811
    inputs, together = layer.inputs(3, 6), layer.state(3)
    want = layer.run(together, inputs)
    for row in range(3):
        alone = layer.state(1)
        assert torch.equal(layer.run(alone, rows_of(inputs, row)), want[row : row + 1]) and same(alone, together.select([row]))


def test_a_one_token_prompt_sees_nothing_stale(layer):  # noqa: F811
    used = layer.state(2)
    layer.run(used, layer.inputs(2, 5))
    used.reset([1])
    prompt, fresh = layer.inputs(2, 1), layer.state(1)
    assert torch.equal(layer.run(used, prompt)[1:], layer.run(fresh, rows_of(prompt, 1)))
    assert same(used.select([1]), fresh) and used.lengths.tolist() == [6, 1]


def test_has_initial_state_starts_a_row_anew(layer):  # noqa: F811
    used, fresh, inputs = layer.state(2), layer.state(2), layer.inputs(2, 3)
    layer.run(used, layer.inputs(2, 5))
    used.conv_state[1].fill_(torch.nan)  # what the slot held before
    want = layer.run(fresh, inputs)
    got = layer.run(used, inputs, has_initial_state=torch.tensor([True, False]))
    assert torch.equal(got[1], want[1]) and same(used.select([1]), fresh.select([1])) and used.lengths.tolist() == [8, 3]


def test_packed_sequences_and_slots(layer):  # noqa: F811
    sizes, slots = (3, 0, 4, 1, 2), (4, 2, -1, 0, 3)  # the third is padding
    ends = torch.tensor([0, *sizes]).cumsum(0)
    state, inputs = layer.state(5), layer.inputs(1, 10)
    layer.run(state, layer.inputs(5, 2))
    before, expected = state.clone(), state.clone()
    out = layer.run(state, inputs, cu_seqlens=ends, state_indices=torch.tensor(slots),
                    has_initial_state=torch.tensor([True, True, True, True, False]))
    expected.reset([3])
    for first, last, slot in zip(ends, ends[1:], slots):
        if slot >= 0 and last > first:
            want = layer.run(expected.view(slot, 1), part(inputs, first, last))
            assert torch.equal(out[:, first:last], want)
    assert same(state, expected) and state.lengths.tolist() == [3, 2, 2, 2, 5]
    assert torch.equal(state.conv_state[1], before.conv_state[1])  # a slot of no sequence


def test_a_refused_call_changes_nothing(layer):  # noqa: F811
    state = layer.state(2)
    layer.run(state, layer.inputs(2, 3))
    before = state.clone()
    with pytest.raises(RuntimeError, match="npu_fused_linear_attention: conv_state must be"):
        layer.run(state, layer.inputs(3, 1))
    with pytest.raises(RuntimeError, match="npu_fused_linear_attention: .*state_indices"):
        layer.run(state, layer.inputs(2, 1), state_indices=torch.tensor([0, 2]))
    assert same(state, before)


def test_an_interleaved_session_is_two_sessions(layer):  # noqa: F811
    inputs = [layer.inputs(1, 6) for _ in range(2)]
    states, alone = [layer.state() for _ in range(2)], [layer.state() for _ in range(2)]
    got = [[], []]
    for t in range(0, 6, 2):
        for session in range(2):
            got[session].append(layer.run(states[session], part(inputs[session], t, t + 2)))
    for session in range(2):
        assert torch.equal(torch.cat(got[session], 1), layer.run(alone[session], inputs[session])) and same(states[session], alone[session])


# --- going back


def test_rollback_to_the_prefix_and_another_continuation(layer):  # noqa: F811
    prefix, one, other = (layer.inputs(2, length) for length in (4, 5, 3))
    state, straight = layer.state(2), layer.state(2)
    layer.run(state, prefix)
    state.snapshot()
    layer.run(state, one)
    state.erase(4)
    assert state.lengths.tolist() == [4, 4]
    layer.run(straight, prefix)
    assert torch.equal(layer.run(state, other), layer.run(straight, other)) and same(state, straight)
    state.erase(4, 7)  # the snapshot is still there
    layer.run(state, one)
    state.restore()
    assert state.lengths.tolist() == [4, 4] and state.snapshot_lengths() == [4, 4]


def test_erase_of_everything_starts_a_new_conversation(layer):  # noqa: F811
    state, fresh = layer.state(), layer.state()
    layer.run(state, layer.inputs(1, 4))
    state.snapshot()
    layer.run(state, layer.inputs(1, 2))
    state.erase(0)
    assert same(state, fresh) and state.snapshot_lengths() == [None]
    layer.run(state, layer.inputs(1, 6))
    with pytest.raises(RuntimeError, match="row 0 of 6 tokens cannot go back to 4, only to 0 tokens$"):  # the other conversation's prefix
        state.erase(4)


def test_what_cannot_be_erased_says_why(layer):  # noqa: F811
    state = layer.state(2)
    layer.run(state, layer.inputs(2, 4))
    state.snapshot([1])
    layer.run(state, layer.inputs(2, 3))
    before = state.clone()
    for arguments, message in (((2, 5), r"tokens 2 to 5 of 7 in row 0 cannot be erased from the middle: .* run tokens 5 to 7 again"),
                               ((0, 3), "from the middle"),
                               ((5,), "row 0 of 7 tokens cannot go back to 5, only to 0 tokens$"),
                               ((5, None, [1]), "row 1 of 7 tokens cannot go back to 5, only to 0 tokens or to its snapshot of 4"),
                               ((4,), "row 0 of 7 tokens cannot go back to 4"),  # row 1 could: neither is changed
                               ((8,), "tokens 8 to 7 cannot be erased, row 0 has 7"), ((0, 8), "row 0 has 7"), ((-1,), "row 0 has 7")):
        with pytest.raises(RuntimeError, match=f"LinearAttentionState: .*{message}"):
            state.erase(*arguments)
        assert same(state, before)
    with pytest.raises(RuntimeError, match="row 0 has no snapshot"):
        state.restore()
    assert same(state, before)
    state.erase(7)  # nothing
    state.erase(3, 3)
    assert same(state, before)
    state.erase(4, rows=[1])
    assert state.lengths.tolist() == [7, 4]


def test_reset_drops_the_snapshot_of_its_rows_only(layer):  # noqa: F811
    state = layer.state(3)
    layer.run(state, layer.inputs(3, 2))
    state.snapshot()
    state.reset(torch.tensor([0, 2]))
    assert state.snapshot_lengths() == [None, 2, None] and state.lengths.tolist() == [0, 2, 0]
    assert not state.conv_state[[0, 2]].any() and state.conv_state[1].any()


def test_a_draft_is_verified_and_rejected(layer):  # noqa: F811
    """Speculation: the state after the accepted tokens alone."""
    state, straight, draft = layer.state(), layer.state(), layer.inputs(1, 5)
    layer.run(state, draft)
    layer.run(straight, draft)
    state.snapshot()
    candidates = layer.inputs(1, 4)
    layer.run(state, candidates)
    state.restore()
    layer.run(state, part(candidates, 0, 2))
    layer.run(straight, part(candidates, 0, 2))
    assert same(state, straight) and state.lengths.tolist() == [7]


# --- rows


def test_views_share_everything(layer):  # noqa: F811
    state = layer.state(3)
    prefill, decode = state.view(), state.view(1, 2).view(1)  # row 2
    assert prefill.conv_state.data_ptr() == state.conv_state.data_ptr()
    layer.run(prefill, layer.inputs(3, 4))
    assert decode.lengths.tolist() == [4]
    decode.snapshot()
    layer.run(decode, layer.inputs(1, 1))
    assert state.lengths.tolist() == [4, 4, 5] and state.snapshot_lengths() == [None, None, 4]
    state.erase(4, rows=[2])
    assert decode.lengths.tolist() == [4] and same(decode, state.select([2]))
    state.reset()
    assert decode.snapshot_lengths() == [None]
    for arguments in ((0, 4), (3, 1), (-1, 1), (1, 0)):
        with pytest.raises(RuntimeError, match="view of rows"):
            state.view(*arguments)


def test_select_copies(layer):  # noqa: F811
    state = layer.state(3)
    layer.run(state, layer.inputs(3, 4))
    state.snapshot([0])
    layer.run(state, layer.inputs(3, 1))
    beams = state.select([2, 0, 0, 1])
    assert beams.batch == 4 and beams.snapshot_lengths() == [None, 4, 4, None]
    assert torch.equal(beams.conv_state, state.conv_state[[2, 0, 0, 1]])
    before = state.clone()
    layer.run(beams, layer.inputs(4, 1))
    beams.restore([1])
    assert same(state, before) and beams.lengths.tolist() == [6, 4, 6, 6]


def test_reorder_is_in_place_and_takes_the_snapshots_along(layer):  # noqa: F811
    state = layer.state(3)
    layer.run(state, layer.inputs(3, 4))
    state.snapshot([1])
    want, address = state.select([1, 1, 0]), state.conv_state.data_ptr()
    state.reorder(torch.tensor([1, 1, 0]))
    assert same(state, want) and state.conv_state.data_ptr() == address and state.snapshot_lengths() == [4, 4, None]
    with pytest.raises(RuntimeError, match="reorder takes 3 rows, got 2"):
        state.reorder([0, 1])
    with pytest.raises(RuntimeError, match=r"rows must be 0 to 2, got \[0, 1, 3\]"):
        state.reorder([0, 1, 3])


def test_a_cached_prefix_goes_into_the_row_of_a_request(layer):  # noqa: F811
    cached, batch, rest = layer.state(), layer.state(3), layer.inputs(1, 2)
    layer.run(cached, layer.inputs(1, 5))
    layer.run(batch, layer.inputs(3, 2))
    batch.snapshot()
    batch.copy_from(cached, target=[1])
    assert batch.lengths.tolist() == [2, 5, 2] and batch.snapshot_lengths() == [2, None, 2]
    assert torch.equal(layer.run(batch.view(1, 1), rest), layer.run(cached.clone(), rest)) and cached.lengths.tolist() == [5]
    with pytest.raises(RuntimeError, match="1 rows do not go into 2"):
        batch.copy_from(cached, target=[0, 1])
    with pytest.raises(RuntimeError, match="copy_from takes a state like .*conv_kernel_size=4"):
        batch.copy_from(Layer(layer.attn_type, layer.rng, taps=3).state())
    with pytest.raises(RuntimeError, match=r"rows must differ, got \[1, 1\]"):
        batch.reset([1, 1])


def test_rows_are_numbers(layer):  # noqa: F811
    state = layer.state(2)
    layer.run(state, layer.inputs(2, 1))
    for rows in ([True, False], torch.tensor([False, True]), [0.0], torch.tensor([[0, 1]]), ["0"], 0, torch.tensor(0), slice(0, 1)):
        with pytest.raises(RuntimeError, match="rows must be a sequence of numbers of rows, got"):
            state.reset(rows)
    for begin, end in ((0.0, None), ("0", None), (0, 1.0), (True, None)):
        with pytest.raises(RuntimeError, match="erase takes numbers of tokens, got"):
            state.erase(begin, end)
    for first, rows in ((0.0, None), (0, 1.5), ("0", 1), (0, True)):
        with pytest.raises(RuntimeError, match="view takes a row and a number of rows, got"):
            state.view(first, rows)
    with pytest.raises(RuntimeError, match="select takes at least one row"):
        state.select([])
    assert state.lengths.tolist() == [1, 1]


@pytest.mark.parametrize("make", [lambda state: state, lambda state: state.select(), lambda state: state.view(), copy.deepcopy],
                         ids=["new", "select", "view", "deepcopy"])
def test_made_in_inference_mode_and_used_outside(make, layer):  # noqa: F811
    with torch.inference_mode():
        first = layer.state(2)
        first.snapshot()
        state = make(first)
    tokens = layer.inputs(2, 3)
    layer.run(state, tokens)
    assert state.lengths.tolist() == [3, 3]
    state.snapshot([1])
    state.restore([0])
    with torch.inference_mode():
        layer.run(state, tokens)
    assert state.lengths.tolist() == [3, 6] and state.snapshot_lengths() == [0, 3]


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state)), "file"],
                         ids=["deepcopy", "pickle", "torch.save"])
def test_a_copy_is_whole(layer, twin_of, rng):  # noqa: F811
    """Its tensors, its storage and its snapshot are its own, and still one thing."""
    def through_a_file(state):
        torch.save(state, file := io.BytesIO())
        file.seek(0)
        return torch.load(file, weights_only=False)

    state = layer.state(3)
    layer.run(state, layer.inputs(3, 2))
    state.snapshot()
    part = state.view(1, 2)
    twin = (through_a_file if twin_of == "file" else twin_of)(part)
    inputs, before = layer.inputs(2, 3), state.clone()
    assert same(twin, part) and twin.snapshot_lengths() == [2, 2]
    out = layer.run(twin, inputs)
    assert same(state, before) and twin.view(1, 1).lengths.tolist() == [5]
    assert torch.equal(layer.run(part, inputs), out) and same(twin, part)
    twin.restore([0])
    assert twin.lengths.tolist() == [2, 5] and part.lengths.tolist() == [5, 5]


# --- Hugging Face's form; with transformers itself: tests/nn/test_linear_attention_hf.py


def test_cache_of_k_entries(layer):  # noqa: F811
    state, other, rest = layer.state(2), layer.state(2), layer.inputs(2, 2)
    layer.run(state, layer.inputs(2, 2))  # fewer than K - 1
    conv, recurrent = state.export_hf()
    assert conv.shape == (2, layer.conv_channels, layer.taps) and torch.equal(conv[..., 1:], state.conv_state) and not conv[..., 0].any()
    conv[..., 0] = torch.nan  # never read
    other.import_hf(conv, recurrent, tokens=[2, 2])
    assert same(other, state) and torch.equal(layer.run(other, rest), layer.run(state, rest))


def test_token_counts_are_whole_numbers(layer):  # noqa: F811
    state = layer.state(2)
    for tokens in ([1.5, 2], True, [3], [1, -1], torch.tensor([1.0, 2.0])):
        with pytest.raises(RuntimeError, match="tokens must be 2 whole numbers >= 0, got"):
            state.import_hf(*state.export_hf(), tokens=tokens)
    state.import_hf(*state.export_hf(), tokens=torch.tensor([4, 0]))
    assert state.lengths.tolist() == [4, 0]


def test_cache_of_another_dtype_is_converted(layer):  # noqa: F811
    state = layer.state(2)
    layer.run(state, layer.inputs(2, 5))
    conv, recurrent = state.export_hf()
    narrow = Layer(layer.attn_type, layer.rng, dtype=torch.bfloat16).state(2)
    narrow.import_hf(conv, recurrent if recurrent is None else recurrent.half(), tokens=5)
    assert torch.equal(narrow.conv_state, state.conv_state.bfloat16()) and narrow.lengths.tolist() == [5, 5]
    if recurrent is not None:
        assert narrow.recurrent_state.dtype == torch.float32 and torch.equal(narrow.recurrent_state, recurrent.half().float())
