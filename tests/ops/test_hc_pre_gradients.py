"""Gradients of hc_pre and hc_head: central differences in float64, the operator against the formulas in NumPy."""

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from inputs import DTYPES, pre_inputs
from torch._dynamo.backends.common import aot_autograd

import custom_ops
from custom_ops import reference, reference_gradients
from custom_ops.ops import hc_pre

NAMES = ("x", "hc_fn", "hc_scale", "hc_base")


def formula(x, fn, scale, base, n, iters, norm_eps, hc_eps):
    """(y, post, comb), differentiable by autograd."""
    flat = x.flatten(-2)
    m = flat @ fn.t() * torch.rsqrt(flat.square().mean(-1, keepdim=True) + norm_eps)
    pre = torch.sigmoid(m[..., :n] * scale[0] + base[:n]) + hc_eps
    post = 2 * torch.sigmoid(m[..., n : 2 * n] * scale[1] + base[n : 2 * n])
    c = torch.softmax((m[..., 2 * n :] * scale[2] + base[2 * n :]).unflatten(-1, (n, n)), -1) + hc_eps
    c = c / (c.sum(-2, keepdim=True) + hc_eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + hc_eps)
        c = c / (c.sum(-2, keepdim=True) + hc_eps)
    return (pre.unsqueeze(-1) * x).sum(-2), post, c


class InDouble(torch.autograd.Function):
    """The formula forward, the operator's backward: what gradcheck compares. The operator itself has no float64."""

    @staticmethod
    def forward(ctx, x, fn, scale, base, *attributes):
        ctx.save_for_backward(x, fn, scale, base)
        ctx.attributes = attributes
        return formula(x, fn, scale, base, *attributes)

    @staticmethod
    def backward(ctx, *grads):
        return *hc_pre.backward(grads, *ctx.saved_tensors, *ctx.attributes), None, None, None, None


def doubles(rng, tokens, n, d):
    inputs = pre_inputs("normal", rng, tokens, n, d, torch.float64)
    return [inputs[name].double().requires_grad_() for name in NAMES]


@pytest.mark.parametrize("tokens, n, d, iters, norm_eps, hc_eps", [
    ((3,), 4, 16, 20, 1e-6, 1e-6), ((2, 2), 3, 5, 2, 1e-2, 1e-2), ((3,), 1, 4, 3, 0.0, 1e-6), ((2,), 2, 3, 1, 1e-6, 0.0)], ids=str)
def test_gradcheck(tokens, n, d, iters, norm_eps, hc_eps, rng):
    assert torch.autograd.gradcheck(InDouble.apply, (*doubles(rng, tokens, n, d), n, iters, norm_eps, hc_eps))


def test_second_derivative(rng):
    assert torch.autograd.gradgradcheck(InDouble.apply, (*doubles(rng, (2,), 2, 3), 2, 3, 1e-6, 1e-2), fast_mode=True)


def test_reference_is_the_gradient_of_the_formula(rng):
    inputs = doubles(rng, (2, 3), 4, 7)
    results = formula(*inputs, 4, 5, 1e-2, 1e-3)
    grads = [torch.randn(result.shape, generator=rng, dtype=torch.float64) for result in results]
    want = torch.autograd.grad(results, inputs, grads)
    got = reference_gradients.hc_pre(*grads, *(tensor.detach() for tensor in inputs), 4, 5, 1e-2, 1e-3)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_is_the_reference(dtype, used, rng):
    inputs = pre_inputs("normal", rng, (6,), 4, 24, DTYPES[dtype])
    leaves = [inputs[name].requires_grad_() for name in NAMES]
    results = custom_ops.hc_pre(*leaves, hc_sinkhorn_iters=7, norm_eps=1e-2, hc_eps=1e-3)
    grads = [torch.randn(result.shape, generator=rng).to(result.dtype) * (i in used) for i, result in enumerate(results)]
    torch.autograd.backward([results[i] for i in used], [grads[i] for i in used])
    want = reference_gradients.hc_pre(*grads, *(leaf.detach() for leaf in leaves), 4, 7, 1e-2, 1e-3)
    for name, leaf, expected in zip(NAMES, leaves, want):
        assert leaf.grad.dtype == leaf.dtype
        bound = 1e-3 if name != "x" else {"bfloat16": 2**-7, "float16": 2e-3, "float32": 1e-4}[dtype]
        np.testing.assert_allclose(reference.to_float64(leaf.grad), expected, rtol=bound, atol=bound * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize("needed", NAMES)
def test_gradient_of_one_input(needed, rng):
    inputs = pre_inputs("normal", rng, (2, 3), 4, 16, torch.bfloat16)
    inputs[needed].requires_grad_()
    y, post, comb = custom_ops.hc_pre(**inputs)
    (y.float().square().sum() + post.sum() + comb.square().sum()).backward()
    assert [name for name, tensor in inputs.items() if tensor.grad is not None] == [needed]


def test_no_tokens(rng):
    leaves = [tensor.requires_grad_() for tensor in pre_inputs("normal", rng, (0,), 4, 16, torch.float32).values()]
    sum(result.sum() for result in custom_ops.hc_pre(*leaves)).backward()
    assert leaves[0].grad.shape == (0, 4, 16) and all(not leaf.grad.any() for leaf in leaves[1:])


def test_second_derivative_of_the_operator(rng):
    inputs = pre_inputs("normal", rng, (3,), 4, 16, torch.float32)
    grads = []
    for function in (lambda *leaves: custom_ops.hc_pre(*leaves, hc_sinkhorn_iters=3), lambda *leaves: formula(*leaves, 4, 3, 1e-6, 1e-6)):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        loss = sum(result.square().sum() for result in function(*leaves))
        sum(first.square().sum() for first in torch.autograd.grad(loss, leaves, create_graph=True)).backward()
        grads.append([leaf.grad for leaf in leaves])
    for name, one, other in zip(NAMES, *grads):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()),
                                   msg=lambda text, name=name: f"{name}: {text}")


def test_the_compiled_backward_does_not_unroll_the_iterations(rng):
    torch._dynamo.reset()
    nodes = []

    def count(graph, _):
        nodes.append(len(graph.graph.nodes))
        return make_boxed_func(graph.forward)

    def loss(*inputs):
        return sum(result.square().sum() for result in custom_ops.hc_pre(*inputs, hc_sinkhorn_iters=1000))

    compiled = torch.compile(loss, fullgraph=True, backend=aot_autograd(fw_compiler=count, bw_compiler=count))
    inputs, grads = pre_inputs("normal", rng, (6,), 4, 32, torch.float32), []
    for function in (loss, compiled):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        grads.append(torch.autograd.grad(function(*leaves), leaves))
    assert len(nodes) == 2 and max(nodes) < 150, nodes
    for one, other in zip(*grads):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_head_gradient_is_the_reference(dtype, rng):
    inputs = pre_inputs("normal", rng, (2, 3), 4, 24, DTYPES[dtype])
    tensors = inputs["x"], inputs["hc_fn"][:4], inputs["hc_scale"][:1], inputs["hc_base"][:4]
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    dy = torch.randn(2, 3, 24, generator=rng).to(DTYPES[dtype])
    custom_ops.hc_head(*leaves, norm_eps=1e-2, hc_eps=1e-3).backward(dy)
    want = reference_gradients.hc_head(dy, *(leaf.detach() for leaf in leaves), 1e-2, 1e-3)
    for name, leaf, expected in zip(NAMES, leaves, want):
        bound = 1e-3 if name != "x" else {"bfloat16": 2**-6, "float16": 2e-3, "float32": 1e-4}[dtype]
        np.testing.assert_allclose(reference.to_float64(leaf.grad), expected, rtol=bound, atol=bound * np.abs(expected).max(), err_msg=name)


def test_head_reference_by_central_differences(rng):
    inputs = [tensor.double() for tensor in pre_inputs("normal", rng, (2,), 3, 4, torch.float64).values()]
    inputs = [inputs[0], inputs[1][:3], inputs[2][:1], inputs[3][:3]]
    dy = torch.randn(2, 4, generator=rng, dtype=torch.float64)

    def loss(arrays):
        return float((reference.hc_head(*arrays, 1e-2, 1e-3) * dy.numpy()).sum())

    for index, gradient in enumerate(reference_gradients.hc_head(dy, *inputs, 1e-2, 1e-3)):
        for place in np.ndindex(gradient.shape):
            losses = []
            for step in (1e-6, -1e-6):
                moved = [tensor.clone() for tensor in inputs]
                moved[index][place] += step
                losses.append(loss(moved))
            assert abs((losses[0] - losses[1]) / 2e-6 - gradient[place]) < 1e-7
