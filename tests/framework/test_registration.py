"""The operators as PyTorch sees them: schemas, opcheck, fake tensors, torch.compile."""

import pytest
import torch
from inputs import DTYPES, post_inputs, pre_inputs, sinkhorn_inputs, x_of
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import custom_ops

SCHEMAS = {
    "npu_hc_post": "custom::npu_hc_post(Tensor x, Tensor residual, Tensor post, Tensor comb) -> Tensor",
    "npu_hc_pre": "custom::npu_hc_pre(Tensor x, Tensor hc_fn, Tensor hc_scale, Tensor hc_base, *, int hc_mult=4, int hc_sinkhorn_iters=20, "
                  "float norm_eps=9.9999999999999995e-07, float hc_eps=9.9999999999999995e-07) -> (Tensor y, Tensor post, Tensor comb_frag)",
    "npu_hc_pre_inv_rms": "custom::npu_hc_pre_inv_rms(Tensor x, *, float epsilon=9.9999999999999995e-21) -> Tensor",
    "npu_hc_pre_sinkhorn": "custom::npu_hc_pre_sinkhorn(Tensor mixes, Tensor rsqrt, Tensor hc_scale, Tensor hc_base, Tensor x, int hc_mult=4, "
                           "int hc_sinkhorn_iters=20, float hc_eps=1.0000000000000001e-05) -> (Tensor y, Tensor post, Tensor comb_frag)",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(name):
    assert str(getattr(torch.ops.custom, name).default._schema) == SCHEMAS[name]


CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [(5,), (2, 3)], ids=str)
def test_opcheck_inv_rms(tokens, dtype, gradient, rng):
    x = x_of("normal", rng, tokens, 4, 16, DTYPES[dtype]).requires_grad_(gradient)
    torch.library.opcheck(torch.ops.custom.npu_hc_pre_inv_rms.default, (x,), {"epsilon": 1e-6}, test_utils=CHECKS)


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens, keepdim", [((5,), True), ((2, 3), False)], ids=str)
def test_opcheck_sinkhorn(tokens, keepdim, dtype, gradient, rng):
    inputs = sinkhorn_inputs("uniform", rng, tokens, 4, 16, DTYPES[dtype], keepdim)
    arguments = tuple(tensor.requires_grad_(gradient) for tensor in inputs.values())
    torch.library.opcheck(torch.ops.custom.npu_hc_pre_sinkhorn.default, (*arguments, 4, 3, 1e-6), test_utils=CHECKS)


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [(5,), (2, 3)], ids=str)
def test_opcheck_pre(tokens, dtype, gradient, rng):
    arguments = tuple(tensor.requires_grad_(gradient) for tensor in pre_inputs("normal", rng, tokens, 4, 16, DTYPES[dtype]).values())
    torch.library.opcheck(torch.ops.custom.npu_hc_pre.default, arguments, {"hc_sinkhorn_iters": 3, "norm_eps": 1e-5}, test_utils=CHECKS)


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dtype, weights", [("bfloat16", "float32"), ("float16", "float16"), ("float32", "bfloat16")])
@pytest.mark.parametrize("tokens", [(5,), (2, 3)], ids=str)
def test_opcheck_post(tokens, dtype, weights, gradient, rng):
    inputs = post_inputs("uniform", rng, tokens, 4, 16, DTYPES[dtype], DTYPES[weights])
    arguments = tuple(tensor.requires_grad_(gradient) for tensor in inputs.values())
    torch.library.opcheck(torch.ops.custom.npu_hc_post.default, arguments, test_utils=CHECKS)


def model(mixes, hc_fn, hc_scale, hc_base, x):
    x = torch.ops.custom.npu_hc_post(*_block(x, *custom_ops.hc_pre(x, hc_fn, hc_scale, hc_base, hc_sinkhorn_iters=5)))
    rsqrt = custom_ops.hc_pre_inv_rms(x, epsilon=1e-6)
    y, post, comb = torch.ops.custom.npu_hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x, 4, 5, 1e-6)
    streams = torch.ops.custom.npu_hc_post(y, x, post, comb)
    return y.float() * 2 + 1, post, comb.transpose(-1, -2), streams


def _block(x, y, post, comb):
    return y, x, post, comb


def arguments(rng, tokens, d=32):
    inputs = sinkhorn_inputs("uniform", rng, tokens, 4, d, torch.bfloat16)
    inputs["hc_fn"] = pre_inputs("normal", rng, tokens, 4, d, torch.bfloat16)["hc_fn"]
    return tuple(inputs[name] for name in ("mixes", "hc_fn", "hc_scale", "hc_base", "x"))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend_name", ["aot_eager", "inductor"])
def test_compiles_without_graph_breaks(dynamic, backend_name, rng):
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=backend_name)
    for tokens in ((6,), (9,), (2, 3)):
        inputs = arguments(rng, tokens)
        for one, other in zip(compiled(*inputs), model(*inputs)):
            torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_dynamic_tokens_do_not_recompile(rng):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=counter)
    compiled(*arguments(rng, (6,), 32))
    first = counter.frame_count  # may be two: Dynamo starts again where it must fix a number
    for tokens, d in ((9, 32), (33, 48), (200, 7)):
        compiled(*arguments(rng, (tokens,), d))
    assert counter.frame_count == first


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_with_gradients(dynamic, rng):
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    grads = []
    for function in (model, compiled):
        inputs = [tensor.detach().clone().requires_grad_() for tensor in arguments(torch.Generator().manual_seed(3), (6,))]
        y, post, comb, streams = function(*inputs)
        (y.sum() + (post**2).sum() + (comb**3).sum() + streams.float().square().sum()).backward()
        grads.append([tensor.grad for tensor in inputs])
    for one, other in zip(*grads):
        torch.testing.assert_close(one, other, rtol=2**-7, atol=1e-5)


def test_symbolic_sizes_stay_symbolic():
    real = sinkhorn_inputs("uniform", torch.Generator(), (37,), 4, 48, torch.bfloat16)
    real["hc_fn"] = torch.zeros(24, 4 * 48)
    dynamic = {"mixes": (0,), "rsqrt": (0,), "x": (0, 2), "hc_fn": (1,)}
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        fakes = {}
        for name, tensor in real.items():
            kinds = [DimDynamic.DYNAMIC if dim in dynamic.get(name, ()) else DimDynamic.STATIC for dim in range(tensor.dim())]
            fakes[name] = mode.from_tensor(tensor, symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds))
        fused = custom_ops.hc_pre(fakes["x"], fakes.pop("hc_fn"), fakes["hc_scale"], fakes["hc_base"])
        y, post, comb = custom_ops.hc_pre_sinkhorn(**fakes)
        rsqrt = custom_ops.hc_pre_inv_rms(fakes["x"])
        streams = custom_ops.hc_post(y, fakes["x"], post, comb)
    assert all(isinstance(out.shape[0], torch.SymInt) for out in (y, post, comb, rsqrt, streams, *fused))
    assert isinstance(y.shape[1], torch.SymInt) and isinstance(streams.shape[2], torch.SymInt) and post.shape[1] == 4


def test_export(rng):
    class Module(torch.nn.Module):
        def forward(self, *inputs):
            return model(*inputs)

    inputs = arguments(rng, (6,))
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    program = torch.export.export(Module(), inputs, dynamic_shapes=(({0: tokens}, None, None, None, {0: tokens}),))
    bigger = arguments(rng, (11,))
    for one, other in zip(program.module()(*bigger), model(*bigger)):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_vmap_gives_the_stacked_results(rng):
    x = x_of("normal", rng, (2, 3), 4, 16, torch.bfloat16)
    assert torch.equal(torch.vmap(custom_ops.hc_pre_inv_rms)(x), custom_ops.hc_pre_inv_rms(x))
