"""What scripts and small models call around our operators: (name, function, inputs). Run on CPU and NPU tensors, results compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Input:
    """A tensor to be: float unless ints or bools; positive for logarithms."""

    shape: tuple[int, ...]
    kind: str = "float"
    low: float = -2.0
    high: float = 2.0

    def make(self, generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
        if self.kind == "bool":
            return torch.rand(self.shape, generator=generator) < 0.5
        if self.kind == "int":
            return torch.randint(int(self.low), int(self.high), self.shape, generator=generator)
        return (torch.rand(self.shape, generator=generator) * (self.high - self.low) + self.low).to(dtype)


def x(*shape: int, low: float = -2.0, high: float = 2.0) -> Input:
    return Input(shape, "float", low, high)


def pos(*shape: int) -> Input:
    return Input(shape, "float", 0.25, 3.0)


def unit(*shape: int) -> Input:
    return Input(shape, "float", -0.9, 0.9)


def i(*shape: int, low: int = -5, high: int = 9) -> Input:
    return Input(shape, "int", low, high)


def b(*shape: int) -> Input:
    return Input(shape, "bool")


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable
    inputs: tuple[Input, ...]
    half: bool = True   # also in float16 and bfloat16

    def __str__(self) -> str:
        return self.name


def _unary() -> list[Case]:
    cases = []
    anywhere = "abs neg sign round trunc ceil floor frac exp exp2 expm1 sin cos tan sinh cosh asinh atan erf erfc sigmoid tanh relu".split()
    anywhere += "square signbit isfinite isinf isnan isposinf isneginf logical_not".split()
    positive = "sqrt rsqrt log log2 log10 log1p reciprocal".split()
    within = "asin acos atanh erfinv".split()
    for names, make in ((anywhere, x), (positive, pos), (within, unit)):
        for name in names:
            cases.append(Case(name, getattr(torch, name), (make(3, 17),)))
            if hasattr(torch.Tensor, name + "_") and name not in ("isfinite", "square", "signbit", "logical_not", "isnan"):
                cases.append(Case(name + "_", lambda t, f=getattr(torch.Tensor, name + "_"): f(t.clone()), (make(3, 17),)))
    for name in "silu gelu mish softplus hardswish hardsigmoid hardtanh leaky_relu elu celu selu logsigmoid softsign relu6 softshrink hardshrink".split():
        cases.append(Case(name, getattr(F, name), (x(3, 17),)))
    return cases


def _binary() -> list[Case]:
    cases = []
    for name in "add sub mul maximum minimum atan2 eq ne gt ge lt le logical_and logical_or logical_xor".split():
        f = getattr(torch, name)
        cases.append(Case(name, f, (x(3, 17), x(3, 17))))
        cases.append(Case(name + " broadcast", f, (x(4, 1, 17), x(3, 1))))
        cases.append(Case(name + " 0-dim", f, (x(3, 5), x())))
    for name in "eq ne gt ge lt le".split():
        cases.append(Case(name + " scalar", lambda a, f=getattr(torch, name): f(a, 0.5), (x(3, 17),)))
        cases.append(Case(name + " ints", getattr(torch, name), (i(3, 17), i(17))))
    return cases


CASES = [
    *_unary(),
    *_binary(),
    # arithmetic
    Case("add alpha", lambda a, c: torch.add(a, c, alpha=3), (x(3, 4), x(4))),
    Case("add scalar", lambda a: a + 1.5, (x(3, 4),)),
    Case("add int", lambda a, c: a + c, (i(3, 4), i(4))),
    Case("add int float", lambda a, c: a + c, (i(3, 4), x(4))),
    Case("add_", lambda a, c: a.clone().add_(c, alpha=2), (x(3, 4), x(4))),
    Case("add_ scalar", lambda a: a.clone().add_(2), (x(3, 4),)),
    Case("sub scalar", lambda a: a - 1.5, (x(3, 4),)),
    Case("sub_", lambda a, c: a.clone().sub_(c), (x(3, 4), x(4))),
    Case("rsub", lambda a: 1.5 - a, (x(3, 4),)),
    Case("mul scalar", lambda a: a * 1.5, (x(3, 4),)),
    Case("mul_", lambda a, c: a.clone().mul_(c), (x(3, 4), x(4))),
    Case("mul_ scalar", lambda a: a.clone().mul_(3), (x(3, 4),)),
    Case("div", torch.div, (x(3, 4), pos(4))),
    Case("div scalar", lambda a: a / 1.5, (x(3, 4),)),
    Case("div ints", torch.div, (i(3, 4), i(4, low=1))),
    Case("div_", lambda a, c: a.clone().div_(c), (x(3, 4), pos(4))),
    Case("div floor", lambda a, c: torch.div(a, c, rounding_mode="floor"), (x(3, 40), pos(40)), half=False),
    Case("div trunc", lambda a, c: torch.div(a, c, rounding_mode="trunc"), (x(3, 40), pos(40)), half=False),
    Case("div trunc scalar", lambda a: torch.div(a, 3, rounding_mode="trunc"), (i(3, 40),)),
    Case("floor_divide", lambda a: a // 3, (i(3, 4),)),
    Case("remainder", lambda a: a % 3, (i(3, 4),)),
    Case("remainder tensor", torch.remainder, (x(3, 4), pos(4)), half=False),
    Case("fmod", torch.fmod, (x(3, 4), pos(4)), half=False),
    Case("pow", torch.pow, (pos(3, 4), x(4))),
    Case("pow scalar", lambda a: a**3, (x(3, 4),)),
    Case("pow half", lambda a: a**0.5, (pos(3, 4),)),
    Case("rpow", lambda a: 2.0**a, (x(3, 4),)),
    Case("pow_", lambda a: a.clone().pow_(2), (x(3, 4),)),
    Case("reciprocal_", lambda a: a.clone().reciprocal_(), (pos(3, 4),)),
    Case("clamp", lambda a: a.clamp(-0.5, 0.5), (x(3, 4),)),
    Case("clamp min", lambda a: a.clamp(min=0.1), (x(3, 4),)),
    Case("clamp max", lambda a: a.clamp(max=0.1), (x(3, 4),)),
    Case("clamp_", lambda a: a.clone().clamp_(-0.5, 0.5), (x(3, 4),)),
    Case("clamp_min_", lambda a: a.clone().clamp_min_(0.5), (x(3, 4),)),
    Case("clamp tensors", lambda a, low, high: torch.clamp(a, low, high), (x(3, 4), unit(4), pos(4))),
    Case("where", torch.where, (b(3, 4), x(3, 4), x(4))),
    Case("where scalar", lambda c, a: torch.where(c, a, 0.0), (b(3, 4), x(3, 4)), half=False),
    Case("masked_fill", lambda a, m: a.masked_fill(m, float("-inf")), (x(3, 4), b(3, 4))),
    Case("masked_fill_ tensor", lambda a, m: a.clone().masked_fill_(m, torch.tensor(2.0, device=a.device, dtype=a.dtype)), (x(3, 4), b(4))),
    Case("lerp", lambda a, c: torch.lerp(a, c, 0.3), (x(3, 4), x(3, 4))),
    Case("lerp tensor", torch.lerp, (x(3, 4), x(3, 4), pos(3, 4))),
    Case("addcmul", lambda a, c, d: torch.addcmul(a, c, d, value=0.5), (x(3, 4), x(3, 4), x(4))),
    Case("addcdiv", lambda a, c, d: torch.addcdiv(a, c, d, value=0.5), (x(3, 4), x(3, 4), pos(4))),
    Case("addcmul_", lambda a, c, d: a.clone().addcmul_(c, d, value=0.5), (x(3, 4), x(3, 4), x(4))),
    Case("bitwise", lambda a, c: (a & c) | (a ^ 3), (i(3, 4), i(4))),
    Case("bitwise bool", lambda a, c: (a & c) | ~a ^ c, (b(3, 4), b(4))),
    Case("shift", lambda a: (a << 2) + (a >> 1), (i(3, 4, low=0),)),
    Case("nan_to_num", lambda a: torch.nan_to_num(torch.log(a), nan=1.0, neginf=-3.0), (x(3, 4),)),
    Case("logaddexp", torch.logaddexp, (x(3, 4), x(4)), half=False),
    Case("xlogy", torch.xlogy, (x(3, 4), pos(4))),
    Case("isclose", lambda a: torch.isclose(a, a + 1e-3), (x(3, 4),)),
    Case("equal", lambda a: (torch.equal(a, a.clone()), torch.equal(a, a + 1)), (x(3, 4),)),
    Case("allclose", lambda a: (torch.allclose(a, a.clone()), torch.allclose(a, a + 1)), (x(3, 4),)),
    # copies and constants
    Case("to int", lambda a: a.to(torch.int32), (x(3, 4),)),
    Case("to bool", lambda a: a.round().bool(), (x(3, 4),)),
    Case("to half", lambda a: a.to(torch.float16), (x(3, 4),)),
    Case("to bfloat16", lambda a: a.to(torch.bfloat16), (x(3, 4),)),
    Case("int to float", lambda a: a.float(), (i(3, 4),)),
    Case("contiguous", lambda a: a.t().contiguous(), (x(3, 4),)),
    Case("copy_ broadcast", lambda a, c: a.clone().copy_(c), (x(3, 4), x(4))),
    Case("copy_ cast", lambda a, c: a.clone().copy_(c), (x(3, 4), i(3, 4))),
    Case("slice assignment", lambda a: a.clone().index_copy(0, torch.tensor([1], device=a.device), a[:1]), (x(3, 4),)),
    Case("setitem slice", lambda a, c: _assign(a, (slice(None), slice(1, None, 2)), c), (x(3, 6), x(3, 3))),
    Case("setitem scalar", lambda a: _assign(a, (0, slice(1, 3)), 7.0), (x(3, 6),)),
    Case("setitem mask", lambda a, m: _assign(a, m, 7.0), (x(3, 6), b(3, 6))),
    Case("setitem index", lambda a, k, c: _assign(a, k, c), (x(5, 6), i(3, low=0, high=5), x(6))),
    Case("fill_", lambda a: a.clone().fill_(3), (x(3, 4),)),
    Case("zero_", lambda a: a.clone().zero_(), (x(3, 4),)),
    Case("zeros", lambda a: torch.zeros(3, 4, device=a.device, dtype=a.dtype), (x(1),)),
    Case("ones_like", torch.ones_like, (x(3, 4),)),
    Case("full", lambda a: torch.full((3, 4), 2.5, device=a.device, dtype=a.dtype), (x(1),)),
    Case("full int", lambda a: torch.full((3,), 7, device=a.device), (x(1),)),
    Case("arange", lambda a: torch.arange(10, device=a.device), (x(1),)),
    Case("arange step", lambda a: torch.arange(1, 10, 3, device=a.device), (x(1),)),
    Case("arange float", lambda a: torch.arange(0, 1, 0.1, device=a.device, dtype=torch.float32), (x(1),)),
    Case("linspace", lambda a: torch.linspace(-1, 1, 7, device=a.device), (x(1),)),
    Case("eye", lambda a: torch.eye(3, 5, device=a.device, dtype=a.dtype), (x(1),)),
    Case("complex", lambda a: torch.view_as_real(torch.complex(a, a * 2)), (x(3, 4),), half=False),
    # matrices
    Case("matmul", torch.matmul, (x(5, 7), x(7, 3))),
    Case("matmul batch", torch.matmul, (x(2, 3, 5, 7), x(7, 3))),
    Case("matmul broadcast", torch.matmul, (x(2, 1, 5, 7), x(3, 7, 3))),
    Case("matmul transposed", lambda a, c: a @ c.t(), (x(5, 7), x(3, 7))),
    Case("mm", torch.mm, (x(5, 7), x(7, 3))),
    Case("bmm", torch.bmm, (x(2, 5, 7), x(2, 7, 3))),
    Case("mv", torch.mv, (x(5, 7), x(7))),
    Case("dot", torch.dot, (x(7), x(7))),
    Case("outer", torch.outer, (x(5), x(7))),
    Case("addmm", lambda a, c, d: torch.addmm(a, c, d, beta=0.5, alpha=2), (x(3), x(5, 7), x(7, 3))),
    Case("baddbmm", lambda a, c, d: torch.baddbmm(a, c, d, beta=0.5), (x(2, 5, 3), x(2, 5, 7), x(2, 7, 3))),
    Case("addmv", torch.addmv, (x(5), x(5, 7), x(7))),
    Case("linear", F.linear, (x(4, 5, 7), x(3, 7), x(3))),
    Case("linear without bias", F.linear, (x(4, 5, 7), x(3, 7))),
    Case("einsum", lambda a, c: torch.einsum("bhqd,bhkd->bhqk", a, c), (x(2, 3, 4, 5), x(2, 3, 6, 5))),
    Case("matmul empty", torch.matmul, (x(0, 7), x(7, 3))),
    # reductions
    Case("sum", torch.sum, (x(3, 4, 5),)),
    Case("sum dims", lambda a: a.sum((0, 2), keepdim=True), (x(3, 4, 5),)),
    Case("sum ints", torch.sum, (i(3, 4),)),
    Case("sum bool", torch.sum, (b(3, 4),)),
    Case("sum dtype", lambda a: a.sum(-1, dtype=torch.float32), (x(3, 4),)),
    Case("mean", torch.mean, (x(3, 4, 5),)),
    Case("mean dim", lambda a: a.mean(-1, keepdim=True), (x(3, 4, 5),)),
    Case("prod", torch.prod, (pos(3, 4),), half=False),
    Case("prod dim", lambda a: a.prod(1), (pos(3, 4),), half=False),
    Case("max", torch.max, (x(3, 4),)),
    Case("min", torch.min, (x(3, 4),)),
    Case("max dim", lambda a: tuple(a.max(-1)), (x(3, 40),)),
    Case("min dim", lambda a: tuple(a.min(0, keepdim=True)), (x(3, 40),)),
    Case("amax", lambda a: a.amax((0, 1)), (x(3, 4, 5),)),
    Case("amin", lambda a: a.amin(-1, keepdim=True), (x(3, 4, 5),)),
    Case("aminmax", lambda a: tuple(torch.aminmax(a)), (x(3, 4),)),
    Case("argmax", torch.argmax, (x(3, 40),), half=False),
    Case("argmax dim", lambda a: a.argmax(-1, keepdim=True), (x(3, 40),), half=False),
    Case("argmin dim", lambda a: a.argmin(0), (x(3, 40),), half=False),
    Case("all", lambda a: a.all(), (b(3, 4),)),
    Case("all dim", lambda a: a.all(-1), (b(3, 4),)),
    Case("any", lambda a: a.any(), (b(3, 4),)),
    Case("any dim", lambda a: a.any(0, keepdim=True), (b(3, 4),)),
    Case("var", torch.var, (x(3, 40),)),
    Case("var dim", lambda a: a.var(-1, unbiased=False, keepdim=True), (x(3, 40),)),
    Case("std", lambda a: a.std(-1), (x(3, 40),)),
    Case("var_mean", lambda a: torch.var_mean(a, -1), (x(3, 40),)),
    Case("std_mean", lambda a: torch.std_mean(a, 0), (x(3, 40),)),
    Case("norm", torch.norm, (x(3, 4),)),
    Case("norm dim", lambda a: torch.linalg.vector_norm(a, 2, -1, keepdim=True), (x(3, 4),)),
    Case("logsumexp", lambda a: a.logsumexp(-1), (x(3, 4),)),
    Case("cumsum", lambda a: a.cumsum(1), (x(3, 40),), half=False),
    Case("cumsum ints", lambda a: a.cumsum(0), (i(3, 4),)),
    Case("cumprod", lambda a: a.cumprod(1), (pos(3, 8),), half=False),
    Case("cummax", lambda a: tuple(a.cummax(1)), (x(3, 40),), half=False),
    Case("median", lambda a: tuple(a.median(-1)), (x(3, 9),), half=False),
    Case("kthvalue", lambda a: tuple(a.kthvalue(2, -1)), (x(3, 9),), half=False),
    Case("sort", lambda a: tuple(a.sort(dim=-1, descending=True, stable=True)), (x(3, 40),), half=False),
    Case("argsort", lambda a: a.argsort(-1), (x(3, 40),), half=False),
    Case("topk", lambda a: tuple(a.topk(5, -1)), (x(3, 40),), half=False),
    Case("topk smallest", lambda a: tuple(a.topk(5, 0, largest=False)), (x(40, 3),), half=False),
    Case("trace", torch.trace, (x(4, 4),), half=False),
    Case("bincount", torch.bincount, (i(30, low=0, high=7),)),
    # softmax, normalisations
    Case("softmax", lambda a: a.softmax(-1), (x(3, 4, 5),)),
    Case("softmax dim 0", lambda a: a.softmax(0), (x(3, 4, 5),)),
    Case("softmax dtype", lambda a: F.softmax(a, -1, dtype=torch.float32), (x(3, 4, 5),)),
    Case("log_softmax", lambda a: a.log_softmax(-1), (x(3, 4, 5),)),
    Case("layer_norm", lambda a, w, c: F.layer_norm(a, (16,), w, c), (x(3, 4, 16), pos(16), x(16))),
    Case("layer_norm plain", lambda a: F.layer_norm(a, (4, 16)), (x(3, 4, 16),)),
    Case("rms_norm", lambda a, w: F.rms_norm(a, (16,), w, 1e-6), (x(3, 4, 16), pos(16))),
    Case("group_norm", lambda a, w, c: F.group_norm(a, 2, w, c), (x(3, 4, 8), pos(4), x(4))),
    Case("batch_norm", lambda a, w, c: F.batch_norm(a, None, None, w, c, True), (x(5, 4, 8), pos(4), x(4))),
    Case("batch_norm eval", lambda a, m, v: F.batch_norm(a, m, v), (x(5, 4, 8), x(4), pos(4)), half=False),
    Case("normalize", lambda a: F.normalize(a, dim=-1), (x(3, 4),)),
    Case("glu", F.glu, (x(3, 8),)),
    Case("softplus beta", lambda a: F.softplus(a, 2.0, 10.0), (x(3, 17),)),
    Case("prelu", F.prelu, (x(3, 4), pos(1))),
    Case("threshold", lambda a: F.threshold(a, 0.1, 20.0), (x(3, 4),)),
    # indices
    Case("index", lambda a, k: a[k], (x(5, 6), i(3, low=0, high=5))),
    Case("index two", lambda a, k, m: a[k, :, m], (x(5, 6, 4), i(3, low=0, high=5), i(3, low=0, high=4))),
    Case("index mask", lambda a, m: a[m], (x(5, 6), b(5, 6))),
    Case("index row mask", lambda a, m: a[m], (x(5, 6), b(5))),
    Case("index none", lambda a: a[:, None, 1:3], (x(5, 6),)),
    Case("index_put accumulate", lambda a, k, v: a.clone().index_put_((k,), v, accumulate=True), (x(5, 6), i(3, low=0, high=5), x(3, 6)), half=False),
    Case("index_select", lambda a, k: a.index_select(1, k), (x(5, 6), i(3, low=0, high=6))),
    Case("index_add", lambda a, k, v: a.index_add(0, k, v, alpha=2), (x(5, 6), i(3, low=0, high=5), x(3, 6)), half=False),
    Case("index_fill", lambda a, k: a.index_fill(0, k, 3.0), (x(5, 6), i(2, low=0, high=5))),
    Case("gather", lambda a, k: a.gather(1, k), (x(5, 6), i(5, 3, low=0, high=6))),
    Case("scatter", lambda a, v: a.scatter(1, torch.tensor([[0, 2], [1, 3], [5, 4]], device=a.device), v), (x(3, 6), x(3, 2))),
    Case("scatter value", lambda a, k: a.scatter(1, k, 4.0), (x(3, 6), i(3, 2, low=0, high=6))),
    Case("scatter_", lambda a, k: torch.zeros_like(a).scatter_(1, k, 1.0), (x(3, 6), i(3, 2, low=0, high=6))),
    Case("scatter_add", lambda a, k, v: a.scatter_add(1, k, v), (x(3, 6), i(3, 2, low=0, high=6), x(3, 2)), half=False),
    Case("scatter_reduce", lambda a, k, v: a.scatter_reduce(1, k, v, "amax"), (x(3, 6), i(3, 4, low=0, high=6), x(3, 4)), half=False),
    Case("scatter_reduce sum", lambda a, k, v: a.scatter_reduce(1, k, v, "sum"), (x(3, 6), i(3, 4, low=0, high=6), x(3, 4)), half=False),
    Case("scatter_reduce prod", lambda a, k, v: a.scatter_reduce(1, k, v, "prod", include_self=False), (x(3, 6), i(3, 4, low=0, high=6), x(3, 4)), half=False),
    Case("masked_select", torch.masked_select, (x(5, 6), b(5, 6))),
    Case("masked_scatter", lambda a, m, v: a.masked_scatter(m, v), (x(3, 4), b(3, 4), x(3, 4))),
    Case("nonzero", torch.nonzero, (b(5, 6),)),
    Case("nonzero tuple", lambda a: torch.nonzero(a, as_tuple=True), (b(5, 6),)),
    Case("take", torch.take, (x(5, 6), i(4, low=0, high=30))),
    Case("take_along_dim", lambda a, k: torch.take_along_dim(a, k, 1), (x(5, 6), i(5, 2, low=0, high=6))),
    Case("embedding", lambda k, w: F.embedding(k, w), (i(3, 4, low=0, high=7), x(7, 8))),
    Case("one_hot", lambda k: F.one_hot(k, 7), (i(3, 4, low=0, high=7),)),
    Case("unique", torch.unique, (i(30),)),
    Case("unique inverse", lambda a: torch.unique(a, return_inverse=True, return_counts=True), (i(30),)),
    Case("unique_consecutive", lambda a: torch.unique_consecutive(a.sort()[0], return_counts=True), (i(30),)),
    Case("searchsorted", lambda a, v: torch.searchsorted(a.sort()[0], v), (x(9), x(4)), half=False),
    Case("bucketize", lambda v, a: torch.bucketize(v, a.sort()[0]), (x(4), x(9)), half=False),
    Case("isin", lambda a, t: torch.isin(a, t), (i(9), i(3))),
    # moving elements
    Case("cat", lambda a, c: torch.cat((a, c), 1), (x(3, 4), x(3, 2))),
    Case("cat mixed", lambda a, c: torch.cat((a, c)), (x(3, 4), i(3, 4))),
    Case("stack", lambda a, c: torch.stack((a, c), 1), (x(3, 4), x(3, 4))),
    Case("split", lambda a: a.split([1, 3], 1), (x(3, 4),)),
    Case("chunk", lambda a: [part.contiguous() for part in a.chunk(3, -1)], (x(3, 12),)),
    Case("repeat", lambda a: a.repeat(2, 3), (x(3, 4),)),
    Case("expand", lambda a: a.expand(5, 3, 4).contiguous(), (x(3, 4),)),
    Case("repeat_interleave", lambda a: a.repeat_interleave(3, 1), (x(3, 4),)),
    Case("repeat_interleave tensor", lambda a, n: a.repeat_interleave(n, 0), (x(3, 4), i(3, low=0, high=4))),
    Case("flip", lambda a: a.flip(0, 1), (x(3, 4),)),
    Case("roll", lambda a: a.roll((1, 2), (0, 1)), (x(3, 4),)),
    Case("tril", lambda a: a.tril(-1), (x(4, 5),)),
    Case("triu", lambda a: a.triu(1), (x(4, 5),)),
    Case("tril_ mask", lambda a: torch.ones(4, 4, dtype=torch.bool, device=a.device).tril(), (x(1),)),
    Case("pad", lambda a: F.pad(a, (1, 2)), (x(3, 4),)),
    Case("pad value", lambda a: F.pad(a, (1, 2, 0, 1), value=2.0), (x(3, 4),)),
    Case("pad left", lambda a: F.pad(a, (3, 0)), (x(2, 3, 4),)),
    Case("pad reflect", lambda a: F.pad(a, (1, 2), mode="reflect"), (x(2, 3, 4),)),
    Case("pad replicate", lambda a: F.pad(a, (1, 2), mode="replicate"), (x(2, 3, 4),)),
    Case("permute", lambda a: a.permute(2, 0, 1).reshape(5, 12), (x(3, 4, 5),)),
    Case("unfold", lambda a: a.unfold(1, 3, 1).contiguous(), (x(3, 8),)),
    Case("diag", torch.diag, (x(4),)),
    Case("diagonal", lambda a: a.diagonal().clone(), (x(4, 4),)),
    Case("meshgrid", lambda a, c: [grid.contiguous() for grid in torch.meshgrid(a, c, indexing="ij")], (x(3), x(4))),
    # convolutions and pooling
    Case("conv1d", lambda a, w, c: F.conv1d(a, w, c, padding=2), (x(2, 3, 9), x(4, 3, 3), x(4))),
    Case("conv1d depthwise", lambda a, w: F.conv1d(F.pad(a, (3, 0)), w, groups=4), (x(2, 4, 9), x(4, 1, 4))),
    Case("conv2d", lambda a, w, c: F.conv2d(a, w, c, stride=2, padding=1), (x(2, 3, 8, 8), x(4, 3, 3, 3), x(4))),
    Case("conv_transpose1d", lambda a, w: F.conv_transpose1d(a, w, stride=2), (x(2, 3, 5), x(3, 4, 3))),
    Case("avg_pool2d", lambda a: F.avg_pool2d(a, 2), (x(2, 3, 8, 8),)),
    Case("max_pool2d", lambda a: F.max_pool2d(a, 2), (x(2, 3, 8, 8),)),
    Case("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (2, 2)), (x(2, 3, 8, 8),)),
    Case("interpolate nearest", lambda a: F.interpolate(a, scale_factor=2), (x(2, 3, 4, 4),)),
    Case("interpolate bilinear", lambda a: F.interpolate(a, size=(6, 6), mode="bilinear"), (x(2, 3, 4, 4),)),
    # losses
    Case("mse_loss", F.mse_loss, (x(3, 4), x(3, 4))),
    Case("l1_loss", F.l1_loss, (x(3, 4), x(3, 4))),
    Case("smooth_l1_loss", F.smooth_l1_loss, (x(3, 4), x(3, 4))),
    Case("cross_entropy", F.cross_entropy, (x(5, 7), i(5, low=0, high=7))),
    Case("cross_entropy sum", lambda a, t: F.cross_entropy(a, t, reduction="sum"), (x(5, 7), i(5, low=0, high=7))),
    Case("nll_loss", lambda a, t: F.nll_loss(a.log_softmax(-1), t), (x(5, 7), i(5, low=0, high=7))),
    Case("kl_div", lambda a, t: F.kl_div(a.log_softmax(-1), t.softmax(-1), reduction="batchmean"), (x(5, 7), x(5, 7))),
    Case("binary_cross_entropy", lambda a, t: F.binary_cross_entropy(a.sigmoid(), t.sigmoid()), (x(5, 7), x(5, 7)), half=False),
    Case("bce_with_logits", lambda a, t: F.binary_cross_entropy_with_logits(a, t.sigmoid()), (x(5, 7), x(5, 7))),
    Case("cosine_similarity", lambda a, c: F.cosine_similarity(a, c), (x(5, 7), x(5, 7))),
    # lists of tensors
    Case("foreach add", lambda a, c: torch._foreach_add([a, c], [c, a], alpha=2), (x(3, 4), x(3, 4))),
    Case("foreach mul scalar", lambda a, c: torch._foreach_mul([a, c], 3.0), (x(3, 4), x(5))),
    Case("foreach sqrt", lambda a, c: torch._foreach_sqrt([a, c]), (pos(3, 4), pos(5))),
    Case("foreach addcdiv", lambda a, c: torch._foreach_addcdiv([a], [a], [c], value=0.5), (x(3, 4), pos(3, 4))),
    Case("foreach norm", lambda a, c: torch._foreach_norm([a, c]), (x(3, 4), x(5))),
    Case("foreach round", lambda a, c: torch._foreach_floor([a, c]) + torch._foreach_ceil([a, c]) + torch._foreach_trunc([a]) + torch._foreach_round([c]),
         (x(3, 4), x(5)), half=False),
]


def _assign(tensor, where, value):
    tensor = tensor.clone()
    tensor[where] = value
    return tensor


def _scaled(query, key, value, **keywords):
    return F.scaled_dot_product_attention(query, key, value, **keywords)


#: Gradients of float inputs of these are compared as well.
BACKWARD = [
    Case("mul", lambda a, c: a * c, (x(3, 4), x(4))),
    Case("div", lambda a, c: a / c, (x(3, 4), pos(4))),
    Case("pow", lambda a: a**3, (x(3, 4),)),
    Case("sqrt rsqrt", lambda a: a.sqrt() + a.rsqrt(), (pos(3, 4),)),
    Case("exp log", lambda a: a.exp() + a.log(), (pos(3, 4),)),
    Case("sigmoid tanh", lambda a: a.sigmoid() * a.tanh(), (x(3, 4),)),
    *[Case(f.__name__, f, (x(3, 8),)) for f in (F.relu, F.silu, F.gelu, F.elu, F.softplus, F.mish, F.hardswish, F.leaky_relu, F.logsigmoid, F.glu)],
    Case("matmul", torch.matmul, (x(2, 5, 7), x(7, 3))),
    Case("bmm", torch.bmm, (x(2, 5, 7), x(2, 7, 3))),
    Case("linear", F.linear, (x(4, 5, 7), x(3, 7), x(3))),
    Case("addmm", torch.addmm, (x(3), x(5, 7), x(7, 3))),
    Case("einsum", lambda a, c: torch.einsum("bhqd,bhkd->bhqk", a, c), (x(2, 3, 4, 5), x(2, 3, 6, 5))),
    Case("softmax", lambda a: a.softmax(-1), (x(3, 4, 5),)),
    Case("log_softmax", lambda a: a.log_softmax(-1), (x(3, 4, 5),)),
    Case("sum mean", lambda a: a.sum(0) * a.mean(-1, keepdim=True), (x(3, 4),)),
    Case("max", lambda a: a.max(-1)[0] + a.amax(-1), (x(3, 4),)),
    Case("var", lambda a: a.var(-1), (x(3, 8),)),
    Case("norm", lambda a: torch.linalg.vector_norm(a, dim=-1), (x(3, 8),)),
    Case("cumsum", lambda a: a.cumsum(1), (x(3, 4),)),
    Case("prod", lambda a: a.prod(1), (pos(3, 4),)),
    Case("layer_norm", lambda a, w, c: F.layer_norm(a, (16,), w, c), (x(3, 4, 16), pos(16), x(16))),
    Case("rms_norm", lambda a, w: F.rms_norm(a, (16,), w, 1e-6), (x(3, 4, 16), pos(16))),
    Case("group_norm", lambda a, w, c: F.group_norm(a, 2, w, c), (x(3, 4, 8), pos(4), x(4))),
    Case("batch_norm", lambda a, w, c: F.batch_norm(a, None, None, w, c, True), (x(5, 4, 8), pos(4), x(4))),
    Case("embedding", lambda w: F.embedding(torch.tensor([[1, 3], [1, 0]], device=w.device), w), (x(7, 8),)),
    Case("index", lambda a: a[torch.tensor([0, 2, 2], device=a.device)], (x(5, 6),)),
    Case("index_select", lambda a: a.index_select(1, torch.tensor([0, 2, 2], device=a.device)), (x(5, 6),)),
    Case("gather", lambda a: a.gather(1, torch.tensor([[0, 2], [1, 1]], device=a.device)), (x(2, 6),)),
    Case("where", lambda a, c: torch.where(a > 0, a, c), (x(3, 4), x(3, 4))),
    Case("masked_fill", lambda a: a.masked_fill(a > 0, 0.0), (x(3, 4),)),
    Case("clamp", lambda a: a.clamp(-0.5, 0.5), (x(3, 4),)),
    Case("cat", lambda a, c: torch.cat((a, c), 1), (x(3, 4), x(3, 2))),
    Case("stack split", lambda a, c: torch.stack((a, c), 1).split(1, 1)[0], (x(3, 4), x(3, 4))),
    Case("repeat_interleave", lambda a: a.repeat_interleave(3, 1), (x(3, 4),)),
    Case("slice permute", lambda a: a[:, 1:3].permute(1, 0).contiguous(), (x(3, 4),)),
    Case("pad", lambda a: F.pad(a, (3, 0)), (x(2, 3, 4),)),
    Case("tril", lambda a: a.tril(), (x(4, 4),)),
    Case("conv1d", lambda a, w, c: F.conv1d(a, w, c, padding=2), (x(2, 3, 9), x(4, 3, 3), x(4))),
    Case("conv1d depthwise", lambda a, w: F.conv1d(a, w, groups=4), (x(2, 4, 9), x(4, 1, 4))),
    Case("conv2d", lambda a, w: F.conv2d(a, w, padding=1), (x(2, 3, 8, 8), x(4, 3, 3, 3))),
    Case("avg_pool2d", lambda a: F.avg_pool2d(a, 2), (x(2, 3, 8, 8),)),
    Case("max_pool2d", lambda a: F.max_pool2d(a, 2), (x(2, 3, 8, 8),)),
    Case("mse_loss", F.mse_loss, (x(3, 4), x(3, 4))),
    Case("l1_loss", F.l1_loss, (x(3, 4), x(3, 4))),
    Case("smooth_l1_loss", F.smooth_l1_loss, (x(3, 4), x(3, 4))),
    Case("cross_entropy", lambda a: F.cross_entropy(a, torch.tensor([1, 0, 3], device=a.device)), (x(3, 7),)),
    Case("bce_with_logits", lambda a: F.binary_cross_entropy_with_logits(a, torch.ones_like(a)), (x(5, 7),)),
    Case("attention", _scaled, (x(2, 3, 4, 8), x(2, 3, 6, 8), x(2, 3, 6, 8))),
    Case("attention causal", lambda q, k, v: _scaled(q, k, v, is_causal=True), (x(2, 3, 5, 8), x(2, 3, 5, 8), x(2, 3, 5, 8))),
]
