"""The node LlmExporter::FusedLinearAttention: its attributes, and how each exporter of torch puts it into a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

DOMAIN, OP, VERSION = "LlmExporter", "FusedLinearAttention", 1


@dataclass(frozen=True)
class LinearAttentionNode:
    """Inputs: qkv [B, D, L], gate [B, L, H], beta [B, L, H], conv_weight [C, 1, K], float32. Output [B, L, num_v_heads, head_v_dim].

    gates: (gate_coef, gate_bias), each [num_v_heads]: gate and beta are then the raw projections a and b.
    """

    name: str
    attn_type: str
    num_k_heads: int
    num_v_heads: int
    head_k_dim: int
    head_v_dim: int
    use_qk_l2norm: bool = True
    gates: tuple[Tensor, Tensor] | None = None

    def attributes(self) -> dict[str, object]:
        """By the names of the node: str, int and list of float."""
        attributes = {"name": self.name, "attn_type": self.attn_type, "num_k_heads": self.num_k_heads, "num_v_heads": self.num_v_heads,
                      "head_k_dim": self.head_k_dim, "head_v_dim": self.head_v_dim, "use_qk_l2norm": int(self.use_qk_l2norm)}
        if self.gates is not None:
            coef, bias = (values.tolist() for values in self.gates)
            attributes |= {"gate_fold": 1, "gate_coef": coef, "gate_bias": bias}
        return attributes


Emit = Callable[[LinearAttentionNode, Tensor, Tensor, Tensor, Tensor], Tensor]


class _Traced(torch.autograd.Function):
    """For torch.jit.trace: the shape when it runs, the node when the graph is written."""

    @staticmethod
    def forward(ctx, qkv: Tensor, gate: Tensor, beta: Tensor, weight: Tensor, node: LinearAttentionNode) -> Tensor:
        return qkv.new_empty(qkv.shape[0], qkv.shape[2], node.num_v_heads, node.head_v_dim)

    @staticmethod
    def symbolic(graph, qkv, gate, beta, weight, node: LinearAttentionNode):
        suffixes = {str: "s", int: "i", list: "f"}
        attributes = {f"{key}_{suffixes[type(value)]}": value for key, value in node.attributes().items()}
        out = graph.op(f"{DOMAIN}::{OP}", qkv, gate, beta, weight, **attributes)
        sizes = qkv.type().sizes()
        batch, length = (None, None) if sizes is None else (sizes[0], sizes[2])
        out.setType(qkv.type().with_sizes([batch, length, node.num_v_heads, node.head_v_dim]))
        return out


def emit_traced(node: LinearAttentionNode, qkv: Tensor, gate: Tensor, beta: Tensor, weight: Tensor) -> Tensor:
    return _Traced.apply(qkv, gate, beta, weight, node)


def emit_symbolic(node: LinearAttentionNode, qkv: Tensor, gate: Tensor, beta: Tensor, weight: Tensor) -> Tensor:
    """For torch.export."""
    return torch.onnx.ops.symbolic(f"{DOMAIN}::{OP}", (qkv, gate, beta, weight), node.attributes(), dtype=qkv.dtype,
                                   shape=(qkv.shape[0], qkv.shape[2], node.num_v_heads, node.head_v_dim), version=VERSION)
