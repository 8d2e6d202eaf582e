"""The graph of a Traceable, by either exporter of torch: an onnx ModelProto whose parameters are inputs under their names in LlmModel."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...architecture import Architecture
from .node import DOMAIN, VERSION, Emit, emit_symbolic, emit_traced
from .package import load
from .traceable import Traceable

INPUT, OUTPUT = "tokens", "logits"
_PREFIX = "llm."  # of parameters of Traceable
_OPSETS = {"torchscript": 17, "dynamo": 20}


def build(architecture: Architecture, exporter: str, fold=None):
    """(ModelProto, the LinearAttentionNodes it must hold, the parameters that are in them). fold: see Traceable."""
    model = Traceable(architecture, _EMIT[exporter], fold).eval()
    tokens = torch.zeros(2, 5, dtype=torch.int64)  # sizes of 1 would be taken as fixed
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of tracing and of deprecation; the result is checked
        proto = _EXPORTERS[exporter](model, tokens)
    rename(proto)
    return proto, model.nodes, model.folded


def _trace(model: Traceable, tokens: torch.Tensor):
    stream = io.BytesIO()
    axes = {0: "batch", 1: "length"}
    parameters = dict(model.named_parameters())
    domains = {} if all(layer.is_attention for layer in model.llm.architecture.layers) else {DOMAIN: VERSION}  # one without use is a warning
    # Folding would compute with parameters, which have no values yet.
    torch.onnx.export(_WithInputs(model), (tokens, *parameters.values()), stream, dynamo=False, export_params=False,
                      do_constant_folding=False, opset_version=_OPSETS["torchscript"], input_names=[INPUT, *parameters],
                      output_names=[OUTPUT], dynamic_axes={INPUT: axes, OUTPUT: axes}, custom_opsets=domains)
    return load("onnx").load_from_string(stream.getvalue())


class _WithInputs(nn.Module):
    """The model with its parameters as inputs: those that a module holds are serialised for every inference of shapes. The model is not
    to be used after that."""

    def __init__(self, model: Traceable):
        super().__init__()
        self._model = (model,)  # in a tuple: no submodule, or the exporter would find the parameters
        numbers = {id(parameter): number for number, parameter in enumerate(model.parameters())}
        self._places = [(module, leaf, numbers[id(parameter)]) for module in model.modules()
                        for leaf, parameter in module._parameters.items() if parameter is not None]

    def forward(self, tokens: Tensor, *parameters: Tensor) -> Tensor:
        for module, leaf, number in self._places:
            module._parameters[leaf] = parameters[number]
        return self._model[0](tokens)


def _export(model: Traceable, tokens: torch.Tensor):
    load("onnxscript")
    quiet = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns that torchvision is missing
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        program = torch.onnx.export(model, (tokens,), dynamo=True, optimize=False, verbose=False, opset_version=_OPSETS["dynamo"],
                                    input_names=[INPUT], output_names=[OUTPUT], dynamic_shapes=({0: "batch", 1: "length"},))
    finally:
        quiet.setLevel(level)
    graph = program.model.graph
    for name in [name for name in graph.initializers if name.startswith(_PREFIX)]:
        value = graph.initializers.pop(name)
        value.const_value = None
        graph.inputs.append(value)
    return program.model_proto


def rename(proto) -> None:
    """Parameters get their names in LlmModel; what tells of the exporting machine is dropped."""
    graph = proto.graph
    for value in graph.input:
        value.name = value.name.removeprefix(_PREFIX)
    for node in graph.node:
        node.input[:] = [name.removeprefix(_PREFIX) for name in node.input]
        node.doc_string = ""
        del node.metadata_props[:]
    for value in (*graph.input, *graph.output, *graph.value_info):
        del value.metadata_props[:]
    del graph.metadata_props[:]
    graph.doc_string, graph.name = "", "model"


_EMIT: dict[str, Emit] = {"torchscript": emit_traced, "dynamo": emit_symbolic}
_EXPORTERS: dict[str, Callable] = {"torchscript": _trace, "dynamo": _export}
EXPORTERS = tuple(_EXPORTERS)
