"""torchair's reduce-overhead mode around models: capture, replay on fresh inputs, state, streams. Per operator: test_op_graph.py."""

import pytest
import torch
from op_table import assert_same_bits, to_cpu

import custom_ops

T, N, D = 17, 4, 64
MIX = (2 + N) * N


class Layer(torch.nn.Module):
    """A sub-layer between hc_pre and hc_post, as in a model with hyper-connections."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        parameter = lambda *shape: torch.nn.Parameter(torch.randn(shape, generator=generator) / shape[-1] ** 0.5, requires_grad=False)  # noqa: E731
        self.fn, self.scale, self.base = parameter(MIX, N * D), parameter(3), parameter(MIX)
        self.weight = parameter(D, D)

    def forward(self, x):
        mixes = x.flatten(1).float() @ self.fn.t()
        y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, custom_ops.hc_pre_inv_rms(x, epsilon=1e-6), self.scale, self.base, x, hc_eps=1e-6)
        return custom_ops.hc_post((y.float() @ self.weight).to(x.dtype), x, post, comb)


@pytest.fixture
def replays(monkeypatch):
    """Names of what happened to graphs, in order: "capture" and "replay"."""
    happened = []
    graph = torch.npu.NPUGraph
    for method in ("capture_begin", "replay"):
        original = getattr(graph, method)

        def noted(self, *args, _original=original, _name=method.removesuffix("_begin"), **kwargs):
            happened.append(_name)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(graph, method, noted)
    torch._dynamo.reset()
    yield happened
    torch._dynamo.reset()


def backend():
    import torchair

    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    return torchair.get_npu_backend(compiler_config=config)


def hidden(rng, tokens=T):
    return torch.randn(tokens, N, D, generator=rng).bfloat16().npu()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_layers(replays, rng, dynamic):
    model = torch.nn.Sequential(Layer(), Layer()).npu()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=backend())
    for tokens in (T, T, T, 9, T, 9):
        x = hidden(rng, tokens)
        assert_same_bits(to_cpu([compiled(x)]), to_cpu([model(x)]))
    assert replays.count("replay") == 6, replays      # every call ends in one
    assert replays[-2:] == ["replay", "replay"], replays  # a shape seen before is not captured again


def test_state_lives_on(replays, rng):
    """A buffer that the model updates is the same memory in every replay, and in the eager code beside it."""

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(T, 1))

        def forward(self, x):
            self.total.add_(custom_ops.hc_pre_inv_rms(x))
            return self.total * 2

    model = Counter().npu()
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend=backend())
    expected = torch.zeros(T, 1)
    for step in range(4):
        x = hidden(rng)
        expected = expected + custom_ops.hc_pre_inv_rms(x).cpu()
        if step == 2:
            model(x)
        else:
            compiled(x)
        assert torch.equal(model.total.cpu(), expected)
    assert "replay" in replays


def test_graphs_take_turns(replays, rng):
    """Two graphs share a pool: results of one survive the replay of the other."""
    models = [Layer().npu(), Layer().npu()]
    compiled = [torch.compile(model, fullgraph=True, dynamic=False, backend=backend()) for model in models]
    for _ in range(3):
        inputs = [hidden(rng), hidden(rng)]
        results = [run(x) for run, x in zip(compiled, inputs)]
        assert_same_bits(to_cpu(results), to_cpu([model(x) for model, x in zip(models, inputs)]))


def test_on_another_stream(replays, rng):
    model = Layer().npu()
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend=backend())
    stream = torch.npu.Stream()
    for _ in range(3):
        x = hidden(rng)
        stream.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(stream):
            result = compiled(x)
        torch.npu.current_stream().wait_stream(stream)
        assert_same_bits(to_cpu([result]), to_cpu([model(x)]))


def test_refused_call_leaves_no_capture_behind(replays, rng):
    compiled = torch.compile(lambda x, post, comb: custom_ops.hc_post(x[:, 0], x, post, comb), backend=backend(), dynamic=False)
    x, post, comb = hidden(rng), torch.rand(T, N).npu(), torch.rand(T, N, N).npu()
    with pytest.raises(Exception, match=r"npu_hc_post: comb must be"):
        compiled(x, post, comb[:, :, :3])
    assert_same_bits(to_cpu([compiled(x, post, comb)]), to_cpu([custom_ops.hc_post(x[:, 0], x, post, comb)]))


def test_gradients(replays, rng):
    """Forward and backward are a graph each."""

    def loss(x, weight):
        return (custom_ops.hc_pre_inv_rms(x) * weight).sum()

    compiled = torch.compile(loss, fullgraph=True, dynamic=False, backend=backend())
    for _ in range(3):
        values = torch.randn(T, N, D, generator=rng), torch.randn(T, 1, generator=rng)
        gradients = []
        for function in (compiled, loss):
            leaves = [value.npu().requires_grad_() for value in values]
            function(*leaves).backward()
            gradients.append([leaf.grad.cpu() for leaf in leaves])
        torch.testing.assert_close(*gradients)
    assert "replay" in replays


def test_compiled_code_kept_on_disk(replays, rng, tmp_path):
    """torchair.inference.cache_compile: a second model finds what the first one compiled."""
    import torchair

    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"

    class Model(Layer):
        def __init__(self):
            super().__init__()
            self.step = torchair.inference.cache_compile(self.run, config=config, cache_dir=str(tmp_path))

        def run(self, x):
            return super().forward(x)

        def forward(self, x):
            return self.step(x)

    for _ in range(2):
        model = Model().npu()
        for _ in range(2):
            x = hidden(rng)
            assert_same_bits(to_cpu([model(x)]), to_cpu([model.run(x)]))
    assert list(tmp_path.rglob("*")) and "replay" in replays


def test_npugraph_ex_backend(replays, rng):
    """The backend by name that torchair recommends instead of the mode."""
    model = Layer().npu()
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="npugraph_ex")
    for _ in range(3):
        x = hidden(rng)
        assert_same_bits(to_cpu([compiled(x)]), to_cpu([model(x)]))
    assert "replay" in replays
