"""Gradients of the operators: the formulas by central differences in float64, the operators against autograd of the formula."""

import pytest
import torch
from inputs import DTYPES, post_inputs, sinkhorn_inputs, uniform, x_of
from torch.autograd import forward_ad

import custom_ops
from custom_ops.ops import hc_post, hc_pre_inv_rms, hc_pre_sinkhorn

NAMES = ("mixes", "rsqrt", "hc_scale", "hc_base", "x")


def inv_rms_formula(x, epsilon):
    return torch.rsqrt((x * x).mean((-2, -1)).unsqueeze(-1) + epsilon)


def sinkhorn_formula(mixes, rsqrt, hc_scale, hc_base, x, n, iters, eps):
    """(y, post, comb) in the dtype of mixes, differentiable by autograd."""
    m = mixes * rsqrt.reshape(*mixes.shape[:-1], 1)
    pre = torch.sigmoid(m[..., :n] * hc_scale[0] + hc_base[:n]) + eps
    post = 2 * torch.sigmoid(m[..., n : 2 * n] * hc_scale[1] + hc_base[n : 2 * n])
    c = torch.softmax((m[..., 2 * n :] * hc_scale[2] + hc_base[2 * n :]).unflatten(-1, (n, n)), -1) + eps
    c = c / (c.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + eps)
        c = c / (c.sum(-2, keepdim=True) + eps)
    return (pre.unsqueeze(-1) * x.to(mixes.dtype)).sum(-2), post, c


def post_formula(x, residual, post, comb):
    return post.unsqueeze(-1) * x.unsqueeze(-2) + (comb.unsqueeze(-1) * residual.unsqueeze(-2)).sum(-3)


class InvRmsInDouble(torch.autograd.Function):
    """The formula forward, the operator's backward: what gradcheck compares. The operator itself has no float64."""

    @staticmethod
    def forward(ctx, x, epsilon):
        y = inv_rms_formula(x, epsilon)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return hc_pre_inv_rms.backward(dy, *ctx.saved_tensors), None


class SinkhornInDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mixes, rsqrt, hc_scale, hc_base, x, n, iters, eps):
        ctx.save_for_backward(mixes, rsqrt, hc_scale, hc_base, x)
        ctx.attributes = n, iters, eps
        return sinkhorn_formula(mixes, rsqrt, hc_scale, hc_base, x, n, iters, eps)

    @staticmethod
    def backward(ctx, *grads):
        return *hc_pre_sinkhorn.backward(grads, *ctx.saved_tensors, *ctx.attributes), None, None, None


class PostInDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return post_formula(*inputs)

    @staticmethod
    def backward(ctx, dy):
        return hc_post.backward(dy, *ctx.saved_tensors)


@pytest.mark.parametrize("tokens, n", [((3,), 4), ((2, 2), 3), ((2,), 1)], ids=str)
def test_post_gradcheck(tokens, n, rng):
    inputs = post_inputs("normal", rng, tokens, n, 5, torch.float64, torch.float64)
    tensors = [tensor.requires_grad_() for tensor in inputs.values()]
    assert torch.autograd.gradcheck(PostInDouble.apply, tensors)
    assert torch.autograd.gradgradcheck(PostInDouble.apply, tensors, fast_mode=True)


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_post_gradient(dtype, weights, backend, rng):
    inputs = post_inputs("uniform", rng, (6,), 4, 24, DTYPES[dtype], DTYPES[weights])
    narrow = [tensor.requires_grad_() for tensor in inputs.values()]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    dy = torch.randn(6, 4, 24, generator=rng).to(DTYPES[dtype])
    with backend:
        custom_ops.hc_post(*narrow).backward(dy)
    post_formula(*wide).backward(dy.double())
    for name, one, other in zip(inputs, narrow, wide):
        assert one.grad.dtype == one.dtype
        bound = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 1e-5}[str(one.dtype).removeprefix("torch.")]
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=bound, atol=1e-5 * float(other.grad.abs().max()),
                                   msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("needed", ["x", "residual", "post", "comb"])
def test_post_gradient_of_one_input(needed, rng):
    inputs = post_inputs("uniform", rng, (2, 3), 4, 16, torch.bfloat16)
    inputs[needed].requires_grad_()
    custom_ops.hc_post(**inputs).float().pow(2).sum().backward()
    assert [name for name, tensor in inputs.items() if tensor.grad is not None] == [needed]


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("tokens", [(3,), (2, 2)], ids=str)
def test_inv_rms_gradcheck(tokens, epsilon, rng):
    x = x_of("normal", rng, tokens, 4, 16, torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(InvRmsInDouble.apply, (x, epsilon))


@pytest.mark.parametrize("tokens, keepdim, n, iters, eps", [
    ((2,), True, 4, 20, 1e-6), ((3,), False, 4, 1, 1e-2), ((2, 2), False, 2, 2, 1e-2), ((2, 2), True, 1, 3, 1e-6), ((3,), True, 3, 5, 0.0)])
def test_sinkhorn_gradcheck(tokens, keepdim, n, iters, eps, rng):
    inputs = sinkhorn_inputs("uniform", rng, tokens, n, 3, torch.float64, keepdim)
    tensors = [inputs[name].double().requires_grad_() for name in NAMES]
    assert torch.autograd.gradcheck(SinkhornInDouble.apply, (*tensors, n, iters, eps))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inv_rms_gradient(dtype, backend, rng):
    x = x_of("normal", rng, (5,), 4, 24, DTYPES[dtype]).requires_grad_()
    weight = uniform(rng, 5, 1, low=-1, high=1)
    with backend:
        custom_ops.hc_pre_inv_rms(x, epsilon=1e-6).backward(weight)
    wide = x.detach().double().requires_grad_()
    inv_rms_formula(wide, 1e-6).backward(weight.double())
    assert x.grad.dtype == x.dtype
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=2**-7 if dtype == "bfloat16" else 2e-3, atol=1e-6)


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sinkhorn_gradient(dtype, used, backend, rng):
    inputs = sinkhorn_inputs("uniform", rng, (6,), 4, 24, DTYPES[dtype])
    narrow = [inputs[name].requires_grad_() for name in NAMES]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    with backend:
        got = custom_ops.hc_pre_sinkhorn(*narrow, hc_eps=1e-6)
    want = sinkhorn_formula(*wide, 4, 20, 1e-6)
    weights = [torch.randn(out.shape, generator=rng) for out in got]
    sum((got[i].float() * weights[i]).sum() for i in used).backward()
    # The cotangent of y reaches the operator in the dtype of y.
    weights[0] = weights[0].to(DTYPES[dtype])
    sum((want[i] * weights[i].double()).sum() for i in used).backward()
    for name, one, other in zip(NAMES, narrow, wide):
        if other.grad is None or not other.grad.any():
            assert one.grad is None or not one.grad.any(), name
            continue
        bound = 1e-3 if name != "x" else {"bfloat16": 2**-7, "float16": 2e-3, "float32": 1e-5}[dtype]
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=bound, atol=bound * float(other.grad.abs().max()),
                                   msg=lambda text, name=name: f"{name}: {text}")


def test_only_what_is_needed_gets_a_gradient(rng):
    inputs = sinkhorn_inputs("uniform", rng, (3,), 4, 16, torch.float32)
    inputs["hc_base"].requires_grad_()
    y, _, _ = custom_ops.hc_pre_sinkhorn(**inputs)
    y.sum().backward()
    assert inputs["hc_base"].grad is not None and inputs["mixes"].grad is None


def test_no_gradient_recorded_without_need(rng):
    inputs = sinkhorn_inputs("uniform", rng, (3,), 4, 16, torch.float32)
    assert not custom_ops.hc_pre_sinkhorn(**inputs)[0].requires_grad
    inputs["x"].requires_grad_()
    assert custom_ops.hc_pre_sinkhorn(**inputs)[0].requires_grad
    with torch.no_grad():
        assert not custom_ops.hc_pre_sinkhorn(**inputs)[0].requires_grad


def test_second_derivatives(rng):
    x = x_of("normal", rng, (2,), 2, 3, torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(InvRmsInDouble.apply, (x, 1e-6), fast_mode=True)
    inputs = sinkhorn_inputs("uniform", rng, (2,), 2, 3, torch.float64)
    tensors = [inputs[name].double().requires_grad_() for name in NAMES]
    assert torch.autograd.gradgradcheck(SinkhornInDouble.apply, (*tensors, 2, 3, 1e-2), fast_mode=True)


def test_second_derivative_of_the_operator(rng):
    grads = []
    x = x_of("normal", rng, (3,), 4, 16, torch.float32)
    for function in (lambda value: custom_ops.hc_pre_inv_rms(value, epsilon=1e-6), lambda value: inv_rms_formula(value, 1e-6)):
        leaf = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
        (first**2).sum().backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-6)


def test_functorch_gradient_is_refused_by_name(rng):
    x = x_of("normal", rng, (3,), 4, 16, torch.float32)
    with pytest.raises(RuntimeError, match="npu_hc_pre_inv_rms: gradients by torch.func .* use torch.autograd"):
        torch.func.grad(lambda value: custom_ops.hc_pre_inv_rms(value).sum())(x)


def test_forward_mode_is_refused_and_not_zero():
    x = torch.randn(2, 4, 8)
    with pytest.raises(RuntimeError, match="npu_hc_pre_inv_rms: .*(torch.func|forward-mode)"):
        torch.func.jvp(custom_ops.hc_pre_inv_rms, (x,), (torch.ones_like(x),))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="npu_hc_pre_inv_rms: forward-mode gradients"):
        custom_ops.hc_pre_inv_rms(forward_ad.make_dual(x, torch.ones_like(x)))
