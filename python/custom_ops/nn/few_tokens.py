"""Layers of few tokens on the CPU, where reading the weights is what a decode step takes: operators of the CPU alone, without gradients.
Where they do not apply, the modules and functions here are PyTorch's."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._fake import FLOATS

#: Up to so many tokens cpu_linear is the faster one. Measured with AVX-512 and matrices of 5 MB: beyond 6 PyTorch's bfloat16 product, which
#: has matrix instructions, takes over; in float32 and float16 they are level.
MOST_TOKENS = 4

linear = torch.ops.custom.cpu_linear.default
mlp = torch.ops.custom.cpu_mlp.default
attention_step = torch.ops.custom.cpu_attention_step.default
_rms_norm = torch.ops.custom.cpu_rms_norm.default


@torch.library.register_fake("custom::cpu_linear")
def _(x, weights, biases, *, norm_weight=None, epsilon=0.0, residual=None):
    return [x.new_empty(*x.shape[:-1], weight.shape[0]) for weight in weights]


@torch.library.register_fake("custom::cpu_mlp")
def _(x, gate, up, down, biases, activation, norm_weight, epsilon):
    return x.new_empty(x.shape)


@torch.library.register_fake("custom::cpu_attention_step")
def _(q, k, v, q_norm, k_norm, epsilon, cosines, sines, interleaved, keys, values, first, slot, scale, output_gate):
    return q.new_empty(*q.shape[:2], q.shape[2] // 2 if output_gate else q.shape[2])


@torch.library.register_fake("custom::cpu_rms_norm")
def _(x, weight, epsilon):
    return x.new_empty(x.shape)


class Linear(nn.Linear):
    """nn.Linear, with few tokens on the CPU as fast as the memory gives its weight."""

    def forward(self, x: Tensor) -> Tensor:
        if _few(x) and x.dtype == self.weight.dtype and applies(x, self.weight):
            return linear(x, [self.weight], [self.bias])[0]
        return F.linear(x, self.weight, self.bias)


def project(x: Tensor, *layers: nn.Module) -> list[Tensor]:
    """[layer(x) for layer in layers]; of few tokens in one call where nobody looks at a single layer."""
    if are_plain(Linear, layers) and _few(x) and all(x.dtype == layer.weight.dtype and applies(x, layer.weight) for layer in layers):
        return linear(x, [layer.weight for layer in layers], [layer.bias for layer in layers])
    return [layer(x) for layer in layers]


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x / sqrt(mean of x^2 over the last dimension + epsilon) * weight, float32 inside, rounded once to the dtype of x. weight float32."""
    if weight.dtype == torch.float32 and x.dim() <= 4 and applies(x, weight):
        return _rms_norm(x, weight, epsilon)
    return F.rms_norm(x.float(), weight.shape, weight.float(), epsilon).to(x.dtype)


def applies(x: Tensor, *weights: Tensor) -> bool:
    """Whether an operator of the CPU alone may take these: no gradient, no autocast, no tracer that would have to know it."""
    return (x.is_cpu and x.dtype in FLOATS and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *weights)))
            and torch._C._get_tracing_state() is None and not torch.is_autocast_enabled("cpu"))


def are_plain(kind: type, modules: Iterable[nn.Module]) -> bool:
    """All are of this very class and nobody watches a call of them: what they do may be done without calling them."""
    for module in modules:  # a generator would take as long as what it tests
        if type(module) is not kind or module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__:
            return False
    return True


def is_watched(module: nn.Module) -> bool:
    """By a hook, or with a forward of its own."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__)


def _few(x: Tensor) -> bool:
    return 0 < x.numel() <= MOST_TOKENS * x.shape[-1] and x.dim() <= 4
