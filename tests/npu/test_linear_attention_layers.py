"""GatedDeltaNet, ShortConv and LinearAttentionState on an NPU: what the CPU gives, whose operator is held to the oracle; decode steps in
graphs that are replayed on a state; what the state does with rows and files."""

import copy

import pytest
import torch
from op_table import DEVICE

from custom_ops import LinearAttentionState
from custom_ops.nn import GatedDeltaNet, ShortConv

HIDDEN, BATCH = 32, 2
LAYERS = {"gated_delta_net": lambda: GatedDeltaNet(HIDDEN, 1, 2, 16, 16), "short_conv": lambda: ShortConv(HIDDEN, 3, bias=True)}
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(params=LAYERS)
def layers(request):
    """The layer on the CPU, and on the NPU."""
    torch.manual_seed(5)
    layer = LAYERS[request.param]().requires_grad_(False)
    return layer, copy.deepcopy(layer).to(DEVICE)


def tokens(rng, length, batch=BATCH):
    return torch.randn(batch, length, HIDDEN, generator=rng)


def assert_same_state(state, other):
    assert state.lengths.tolist() == other.lengths.tolist() and state.snapshot_lengths() == other.snapshot_lengths()
    torch.testing.assert_close(state.conv_state.cpu(), other.conv_state.cpu(), **TOLERANCE)
    assert (state.recurrent_state is None) == (other.recurrent_state is None)
    if state.recurrent_state is not None:
        torch.testing.assert_close(state.recurrent_state.cpu(), other.recurrent_state.cpu(), **TOLERANCE)


def run_both(layers, states, x, **options):
    outs = []
    for layer, state in zip(layers, states):
        device = state.device
        outs.append(layer(x.to(device), state, **{name: value.to(device) for name, value in options.items()}).cpu())
    torch.testing.assert_close(outs[1], outs[0], **TOLERANCE)
    assert_same_state(*states)


def test_prefill_and_decode(layers, rng):
    states = [layer.new_state(BATCH) for layer in layers]
    assert states[1].device == torch.device(DEVICE)
    for length in (5, 1, 1, 2):
        run_both(layers, states, tokens(rng, length))
    torch.testing.assert_close(layers[1](tokens(rng, 3).to(DEVICE)).shape, torch.Size([BATCH, 3, HIDDEN]))
    mask = torch.tensor([[0, 0, 1], [1, 1, 1]])
    run_both(layers, [layer.new_state(BATCH) for layer in layers], tokens(rng, 3), attention_mask=mask)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_packed_sequences_and_slots(layers, index, rng):
    states = [layer.new_state(5) for layer in layers]
    run_both(layers, states, tokens(rng, 2, 5))
    options = {"cu_seqlens": torch.tensor([0, 3, 3, 7, 8], dtype=index), "state_indices": torch.tensor([4, 2, -1, 0], dtype=index),
               "has_initial_state": torch.tensor([True, False, True, False])}
    run_both(layers, states, tokens(rng, 8, 1), **options)
    assert states[1].lengths.tolist() == [1, 2, 0, 2, 5]


def test_a_slot_that_does_not_exist_is_not_counted(layers, rng):
    """The CPU refuses it; the NPU gives NaN, and no memory beside the lengths is touched."""
    layer, state = layers[1], layers[1].new_state(3)
    out = layer(tokens(rng, 1, 2).to(DEVICE), state.view(0, 2), state_indices=torch.tensor([2**40, 1]).to(DEVICE))
    assert out[0].isnan().all() and out[1].isfinite().all() and state.lengths.tolist() == [0, 1, 0]


def test_replayed_decode_steps(layers, rng):
    """The graph reads and writes the state where it lies, its lengths too: methods between the replays are seen by them."""
    states = [layer.new_state(BATCH) for layer in layers]
    run_both(layers, states, tokens(rng, 4))
    token, graph = tokens(rng, 1).to(DEVICE), torch.npu.NPUGraph()
    with torch.npu.graph(graph):  # nothing runs
        out = layers[1](token, states[1])
    assert_same_state(*states)

    def step():
        x = tokens(rng, 1)
        token.copy_(x)
        graph.replay()
        torch.testing.assert_close(out.cpu(), layers[0](x, states[0]), **TOLERANCE)
        assert_same_state(*states)

    for method, *arguments in (("snapshot",), ("reorder", [1, 0]), ("restore", [0]), ("reset", [1]), ("erase", 0)):
        step()
        step()
        for state in states:
            getattr(state, method)(*arguments)
        assert_same_state(*states)
    step()


def test_rows_and_files(layers, rng, tmp_path):
    states = [layer.new_state(3) for layer in layers]
    run_both(layers, states, tokens(rng, 3, 3))
    for state in states:
        state.snapshot([0, 2])
    run_both(layers, states, tokens(rng, 1, 3))
    assert_same_state(*(state.select([2, 0, 2]) for state in states))
    assert_same_state(*(state.view(1, 2) for state in states))
    assert_same_state(*(copy.deepcopy(state) for state in states))
    for state in states:
        state.reorder(torch.tensor([2, 2, 1], device=state.device))
        state.erase(3, rows=[0])
    assert_same_state(*states)

    states[1].save(tmp_path / "prefix", "layer")
    for device in (None, DEVICE):
        read = LinearAttentionState.from_file(tmp_path / "prefix", "layer", device)
        assert read.device == torch.device(device or "cpu")
        assert_same_state(read, states[1])
    for layer in layers:
        fresh = layer.new_state(3)
        fresh.load(tmp_path / "prefix", "layer")
        assert_same_state(fresh, states[1])

    across = layers[1].new_state(2)
    across.copy_from(states[0], source=[1, 0])
    twin = layers[0].new_state(2)
    twin.copy_from(states[1], source=[1, 0])
    assert_same_state(across, twin)
    conv, recurrent = across.export_hf()
    twin.import_hf(conv, recurrent, tokens=[7, 4])
    across.import_hf(conv.cpu(), recurrent if recurrent is None else recurrent.cpu(), tokens=torch.tensor([7, 4]))
    assert_same_state(across, twin)


@pytest.mark.parametrize("with_state", [True, False])
def test_torchair_captures_a_layer(layers, with_state, rng):
    """Mode reduce-overhead: also with no state, where torchair meets the operators that lack one."""
    import torchair

    torch._dynamo.reset()
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    states = [layer.new_state(BATCH) for layer in layers]
    compiled = torch.compile(layers[1], fullgraph=True, dynamic=False, backend=torchair.get_npu_backend(compiler_config=config))
    for length in (4, 1, 1, 1):
        x = tokens(rng, length)
        want, got = layers[0](x, states[0] if with_state else None), compiled(x.to(DEVICE), states[1] if with_state else None)
        torch.testing.assert_close(got.cpu(), want, **TOLERANCE)
        assert_same_state(*states)
    torch._dynamo.reset()
