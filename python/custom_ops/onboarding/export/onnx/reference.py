"""LlmExporter::FusedLinearAttention in onnx's ReferenceEvaluator, computed by the operator itself."""

from __future__ import annotations

from pathlib import Path

import torch

from ....functional import fused_linear_attention
from .node import DOMAIN, OP
from .package import load


def operator() -> type:
    """A subclass of onnx.reference.op_run.OpRun for `new_ops`."""

    def run(self, qkv, gate, beta, conv_weight, name=None, gate_coef=None, gate_bias=None, use_qk_l2norm=1, gate_fold=0, **attributes):
        tensors = [torch.tensor(array) for array in (qkv, gate, beta, conv_weight)]
        gates = {key: torch.tensor(values) for key, values in (("gate_coef", gate_coef), ("gate_bias", gate_bias)) if gate_fold}
        out = fused_linear_attention(*tensors, use_qk_l2norm=bool(use_qk_l2norm), gate_fold=bool(gate_fold), **gates, **attributes)
        return (out.numpy(),)

    return type(OP, (load("onnx.reference.op_run").OpRun,), {"op_domain": DOMAIN, "_run": run})


def evaluator(path: str | Path):
    """ReferenceEvaluator of a file that `export` wrote; `.run(None, {"tokens": ...})` gives [logits]."""
    return load("onnx.reference").ReferenceEvaluator(load("onnx").load(str(path)), new_ops=[operator()])
