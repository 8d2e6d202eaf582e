"""The backward of hc_pre_sinkhorn in a compiled graph: one node, where a node per round would take minutes to compile."""

import pytest
import torch
from functorch.compile import make_boxed_func
from inputs import sinkhorn_inputs
from torch._dynamo.backends.common import aot_autograd

import custom_ops

CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")


def test_the_compiled_backward_does_not_unroll_the_iterations(rng):
    torch._dynamo.reset()
    nodes = []

    def count(graph, _):
        nodes.append(len(graph.graph.nodes))
        return make_boxed_func(graph.forward)

    def loss(*inputs):
        return custom_ops.hc_pre_sinkhorn(*inputs, hc_sinkhorn_iters=1000)[2].square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend=aot_autograd(fw_compiler=count, bw_compiler=count))
    inputs = sinkhorn_inputs("uniform", rng, (6,), 4, 32, torch.float32)
    grads = []
    for function in (loss, compiled):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        grads.append(torch.autograd.grad(function(*leaves), leaves[:4]))
    assert len(nodes) == 2 and max(nodes) < 100, nodes
    for one, other in zip(*grads):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("tokens", [(0,), (5,), (2, 3)], ids=str)
def test_opcheck_comb_backward(tokens, rng):
    dcomb = torch.randn(*tokens, 4, 4, generator=rng).transpose(-1, -2)
    softmax = torch.softmax(torch.randn(*tokens, 4, 4, generator=rng), -1)
    torch.library.opcheck(torch.ops.custom._npu_hc_pre_sinkhorn_comb_backward.default, (dcomb, softmax, 3, 1e-6), test_utils=CHECKS)
