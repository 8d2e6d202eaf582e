"""Every operator inside a graph: torch.compile, torch.npu.NPUGraph, and torchair's reduce-overhead mode, replayed on fresh inputs."""

import pytest
import torch
from op_table import DEVICE, assert_same_bits, on, to_cpu
from torch._dynamo.testing import CompileCounterWithBackend

import custom_ops


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def module(op):
    """The operator between two operations of PyTorch's own: a graph of more than one node."""

    def forward(inputs):
        hidden = inputs[op.hidden]
        results = getattr(custom_ops, op.name)(**{**inputs, op.hidden: hidden * 2}, **op.attributes)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(result + 1 for result in results)

    return forward


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("backend_name", ["eager", "aot_eager"])
def test_compiles(op, backend_name, dynamic, rng):
    forward = module(op)
    counter = CompileCounterWithBackend(backend_name)
    compiled = torch.compile(forward, fullgraph=True, dynamic=dynamic, backend=counter)
    graphs = []
    for tokens, d in (((6,), 32), ((9,), 32), ((33,), 48)):
        inputs = on(DEVICE, op.inputs(rng, tokens, d, torch.bfloat16))
        assert_same_bits(to_cpu(compiled(inputs)), to_cpu(forward(inputs)))
        graphs.append(counter.frame_count)
    assert (graphs[2] == graphs[0]) == dynamic  # the first one may count two: Dynamo starts again where it must fix a number


def test_compiles_with_gradients(op, rng):
    forward = module(op)
    inputs = op.inputs(rng, (6,), 24, torch.float32)
    grads = []
    for function in (forward, torch.compile(forward, fullgraph=True, backend="aot_eager")):
        leaves = {name: tensor.to(DEVICE).requires_grad_() for name, tensor in inputs.items()}
        sum((result**2).sum() for result in function(leaves)).backward()
        grads.append([leaf.grad.cpu() for leaf in leaves.values()])
    for got, want in zip(*grads):
        torch.testing.assert_close(got, want)


def replays(op, tokens, d, rng, capture):
    """capture(forward, static inputs) gives a function that runs the graph; every replay must follow the inputs' new values."""
    forward = module(op)
    static = on(DEVICE, op.inputs(rng, tokens, d, torch.bfloat16))
    run = capture(forward, static)
    for _ in range(3):
        fresh = on(DEVICE, op.inputs(rng, tokens, d, torch.bfloat16))
        for name, tensor in static.items():
            tensor.copy_(fresh[name])
        assert_same_bits(to_cpu(run()), to_cpu(forward(fresh)))


@pytest.mark.parametrize("tokens", [(17,), (2, 3)], ids=str)
def test_npu_graph(op, tokens, rng):
    def capture(forward, static):
        forward(static)  # look-ups and allocations that only the first call makes
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            results = forward(static)

        def run():
            graph.replay()
            return results

        return run

    replays(op, tokens, 128, rng, capture)


def test_first_call_inside_a_graph(op, run_script):
    """Nothing that only a first call does may break a capture."""
    run_script(f"""
        import torch, torch_npu, custom_ops
        from op_table import OPS, on, to_cpu, assert_same_bits
        op, rng = OPS["{op.name}"], torch.Generator().manual_seed(1)
        inputs = on("npu:0", op.inputs(rng, (5,), 64, torch.bfloat16))
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            results = op(**inputs, **op.attributes)
        graph.replay()
        assert_same_bits(to_cpu(results), to_cpu(op(**inputs, **op.attributes)))
    """)


def test_strided_input_inside_a_graph(op, rng):
    """The contiguous copy belongs to the graph's memory and is made again by each replay."""

    def capture(forward, static):
        wide = {name: torch.stack([tensor, tensor], -1) for name, tensor in static.items()}
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            results = forward({name: tensor[..., 0] for name, tensor in wide.items()})

        def run():
            for name, tensor in wide.items():
                tensor.copy_(torch.stack([static[name], torch.zeros_like(static[name])], -1))
            graph.replay()
            return results

        return run

    replays(op, (7,), 48, rng, capture)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_torchair_reduce_overhead(op, dynamic, rng):
    import torchair

    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    forward = module(op)
    compiled = torch.compile(forward, fullgraph=True, dynamic=dynamic, backend=torchair.get_npu_backend(compiler_config=config))
    for tokens, d in (((17,), 128), ((17,), 128), ((9,), 128), ((17,), 128)):
        inputs = on(DEVICE, op.inputs(rng, tokens, d, torch.bfloat16))
        assert_same_bits(to_cpu(compiled(inputs)), to_cpu(forward(inputs)))
