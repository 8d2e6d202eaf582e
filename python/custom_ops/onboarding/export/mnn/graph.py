"""LlmModel as an ONNX graph for MNN's converter: with keys and values as inputs and outputs, and without a weight or a float number.

Matrices, norms and the embedding are nodes of their own, which name their parameters; rebuild.py puts MNN's operators in their place. The
other parameters are inputs of the graph under their names in LlmModel, and so are constants: the JSON form in which MNN's converter gives
its result has six decimals, in which a frequency of 1.03e-5 becomes 1e-5.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...architecture import Architecture, Span
from ..onnx.graph import rename
from ..onnx.node import DOMAIN, VERSION, LinearAttentionNode, emit_traced
from ..onnx.package import load
from ..onnx.traceable import GraphCall, Traceable, TraceableExperts, TraceableNorm, TraceableRmsNorm

TOKENS, FIRST, LOGITS = "tokens", "first", "logits"
LINEAR, NORM, EMBEDDING = "FakeLinear", "FakeNorm", "FakeEmbedding"
_OPSET = 17


def past(layer: int) -> tuple[str, str]:
    """Names of a layer's keys and values, [1, kv_heads, tokens so far, head_dim]."""
    return f"keys.{layer}", f"values.{layer}"


def present(layer: int) -> tuple[str, str]:
    """With those of the call's tokens behind them."""
    return f"keys.{layer}.next", f"values.{layer}.next"


@dataclass(frozen=True)
class Matrix:
    """What a node multiplies with: out = x weight^T + bias. weight, bias: parameters; expert: of a parameter [E, ...].

    rank: of x, 2 or 3.
    """

    name: str
    weight: str
    bias: str | None
    expert: int | None
    outputs: int
    inputs: int
    rank: int


@dataclass(frozen=True)
class Normed:
    """A norm over the last dimension. rms: without subtracting the mean."""

    name: str
    weight: str
    bias: str | None
    size: int
    eps: float
    rms: bool


@dataclass(frozen=True)
class Graph:
    """proto: an onnx ModelProto. parameters, constants: its inputs that are neither tokens nor keys and values."""

    proto: object
    parameters: tuple[str, ...]
    constants: dict[str, np.ndarray]
    matrices: dict[str, Matrix]  # by the name of their node
    norms: dict[str, Normed]
    embeddings: dict[str, str]  # the parameter of each node
    linear: dict[str, LinearAttentionNode]


def build(architecture: Architecture) -> Graph:
    """Raises OnboardingError where a graph cannot say what the model does, or onnx is missing."""
    model = _Stateful(architecture).eval()
    layers = model.attention
    caches = [torch.zeros(1, spec.kv_heads, 3, spec.head_dim) for spec in (architecture.layers[i].mixer for i in layers) for _ in range(2)]
    before, after = ([name for layer in layers for name in names(layer)] for names in (past, present))
    axes = {TOKENS: {1: "length"}, LOGITS: {1: "rows"}, **dict.fromkeys(before, {2: "past"}), **dict.fromkeys(after, {2: "total"})}
    stream = io.BytesIO()
    onnx = load("onnx")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of tracing and of deprecation; the result is checked
        torch.onnx.export(model, (torch.zeros(1, 5, dtype=torch.int32), torch.tensor([2], dtype=torch.int32), *caches), stream,
                          dynamo=False, export_params=False, do_constant_folding=False, opset_version=_OPSET,
                          input_names=[TOKENS, FIRST, *before], output_names=[LOGITS, *after], dynamic_axes=axes,
                          custom_opsets={DOMAIN: VERSION})
    proto = onnx.load_from_string(stream.getvalue())
    rename(proto)
    known = {TOKENS, FIRST, *before}
    parameters = tuple(value.name for value in proto.graph.input if value.name not in known)
    by_name = ({node.name: node for node in nodes} for nodes in (model.matrices, model.norms, model.nodes))
    matrices, norms, linear = by_name
    return Graph(proto, parameters, _constants(proto), matrices, norms, model.embeddings, linear)


def _constants(proto) -> dict[str, np.ndarray]:
    """Makes inputs of the graph's constants of floats. Infinity becomes the largest number, for the masks of softmax the same."""
    onnx, found, rest = load("onnx"), {}, []
    for node in proto.graph.node:
        values = onnx.numpy_helper.to_array(node.attribute[0].t) if node.op_type == "Constant" and node.attribute[0].HasField("t") else None
        if values is None or values.dtype.kind != "f":
            rest.append(node)
            continue
        found[node.output[0]] = np.nan_to_num(values.astype(np.float32))
        proto.graph.input.append(onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, values.shape))
    del proto.graph.node[:]
    proto.graph.node.extend(rest)
    return found


class _Stateful(Traceable):
    """tokens [1, L] int32, first [1] int32, keys and values of each attention layer -> logits of tokens first .. L - 1, and the keys and
    values with those of the tokens. What linear layers carry stays inside their operators."""

    def __init__(self, architecture: Architecture):
        super().__init__(architecture, emit_traced)
        self.attention = tuple(i for i, layer in enumerate(architecture.layers) if layer.keeps_keys)
        self.matrices: list[Matrix] = []
        self.norms: list[Normed] = []
        self.embeddings: dict[str, str] = {}
        for name, module in self.llm.named_modules():
            if type(module) in _NAMED and getattr(module, "weight", module) is not None:  # a norm without weights is operators
                module.__class__ = _NAMED[type(module)]
                kinds = {_Norm: self.norms, _RmsNorm: self.norms, _Embedding: self.embeddings}
                module.take(name, kinds.get(type(module), self.matrices))

    def forward(self, tokens: Tensor, first: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        call = _Continued(tokens, dict(zip(self.attention, zip(caches[::2], caches[1::2]))))
        hidden = self.hidden(tokens, call)
        return self.llm.head(hidden[:, first[0]:]), *(tensor for layer in self.attention for tensor in call.present[layer])


class _Continued(GraphCall):
    def __init__(self, tokens: Tensor, past: dict[int, tuple[Tensor, Tensor]]):
        super().__init__(tokens, next(iter(past.values()))[0].shape[2] if past else 0)
        self.past, self.present = past, {}

    def remember(self, layer: int, span: Span, k: Tensor, v: Tensor):
        k, v = self.present[layer] = tuple(torch.cat((old, new), 2) for old, new in zip(self.past[layer], (k, v)))
        return super().remember(layer, span, k, v)


class _Norm(TraceableNorm):
    def take(self, name: str, norms: list[Normed]) -> None:
        bias = None if self.bias is None else f"{name}.bias"
        self.node = Normed(f"/{name}", f"{name}.weight", bias, *self.size, self.spec.eps, self.spec.kind == "rms")
        norms.append(self.node)
        self.weight = self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        return _InPlaceOfNorm.apply(x, self.node)


class _RmsNorm(TraceableRmsNorm):
    def take(self, name: str, norms: list[Normed]) -> None:
        self.node = Normed(f"/{name}", f"{name}.weight", None, *self.normalized_shape, self.eps, True)
        norms.append(self.node)
        self.weight = None

    def forward(self, x: Tensor) -> Tensor:
        return _InPlaceOfNorm.apply(x, self.node)


class _Linear(nn.Linear):
    def take(self, name: str, matrices: list[Matrix]) -> None:
        self.emit = _emit(matrices, f"{name}.weight", None if self.bias is None else f"{name}.bias", self.out_features, self.in_features)
        self.weight = self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        return self.emit(x)


class _Experts(TraceableExperts):
    def take(self, name: str, matrices: list[Matrix]) -> None:
        self.emits = {}
        for part in ("gate", "up", "down"):
            weight, bias = f"{part}_proj", f"{part}_bias"
            _, outputs, inputs = getattr(self, weight).shape
            biased = getattr(self, bias) is not None
            self.emits[part] = [_emit(matrices, f"{name}.{weight}", f"{name}.{bias}" if biased else None, outputs, inputs, expert)
                                for expert in range(self.spec.experts)]
            setattr(self, weight, None)
            setattr(self, bias, None)

    def _expert(self, expert: int, x: Tensor) -> Tensor:
        gate, up, down = (self.emits[part][expert] for part in ("gate", "up", "down"))
        return down(self._combine(gate(x), up(x)))


class _Embedding(nn.Embedding):
    def take(self, name: str, embeddings: dict[str, str]) -> None:
        self.node = f"/{name}"
        embeddings[self.node] = f"{name}.weight"
        self.weight = None

    def forward(self, tokens: Tensor) -> Tensor:
        return _Rows.apply(tokens, self.embedding_dim, self.node)


def _emit(matrices: list[Matrix], weight: str, bias: str | None, outputs: int, inputs: int, expert: int | None = None):
    name = f"/{weight.removesuffix('.weight')}{'' if expert is None else f'/{expert}'}"

    def emit(x: Tensor) -> Tensor:
        matrix = Matrix(name, weight, bias, expert, outputs, inputs, x.dim())
        matrices.append(matrix)
        return _Product.apply(x, matrix)

    return emit


class _Product(torch.autograd.Function):
    """The shape when it runs, the node when the graph is written."""

    @staticmethod
    def forward(ctx, x: Tensor, matrix: Matrix) -> Tensor:
        return x.new_empty(*x.shape[:-1], matrix.outputs)

    @staticmethod
    def symbolic(graph, x, matrix: Matrix):
        out = graph.op(f"{DOMAIN}::{LINEAR}", x, name_s=matrix.name, in_features_i=matrix.inputs, out_features_i=matrix.outputs,
                       has_bias_i=int(matrix.bias is not None))
        return _like(out, x, matrix.rank - 1, matrix.outputs)


class _InPlaceOfNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, norm: Normed) -> Tensor:
        return torch.empty_like(x)

    @staticmethod
    def symbolic(graph, x, norm: Normed):
        return graph.op(f"{DOMAIN}::{NORM}", x, name_s=norm.name).setType(x.type())


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens: Tensor, size: int, name: str) -> Tensor:
        return torch.empty(*tokens.shape, size)

    @staticmethod
    def symbolic(graph, tokens, size: int, name: str):
        rows = torch._C.TensorType.get().with_dtype(torch.float32).with_sizes([1, None, size])
        return graph.op(f"{DOMAIN}::{EMBEDDING}", tokens, name_s=name).setType(rows)


def _like(out, x, leading: int, size: int):
    """Type of x with another last dimension; the exporter infers what follows from it."""
    sizes = x.type().sizes() or [None] * (leading + 1)
    return out.setType(x.type().with_sizes([*sizes[:leading], size]))


_NAMED = {nn.Linear: _Linear, nn.Embedding: _Embedding, TraceableExperts: _Experts, TraceableNorm: _Norm, TraceableRmsNorm: _RmsNorm}
