"""An ONNX file of a checkpoint: the graph, checked, then the weights, parameter by parameter."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .. import Report
from ...errors import OnboardingError, nearest
from ...source import Source
from ..parameters import Parameters
from . import graph
from .function import add_function
from .node import DOMAIN, OP, LinearAttentionNode
from .package import load

#: Weights of more bytes than this stand in a file of their own beside the graph, which holds 2 GiB at most.
INLINE = 2**28
_ALIGNMENT = 4096  # of tensors in that file, so that runtimes can map them


def write(source: Source, path: Path, *, report: Report, exporter: str = "torchscript", fold_gates: bool = False, function: bool = True,
          inline: int = INLINE) -> None:
    """Writes the graph at `path`, with the weights in it or beside it.

    exporter:   torchscript or dynamo, of torch.
    fold_gates: the gates of gated_delta_rule are computed in the node (gate_fold) instead of before it.
    function:   with the node's meaning as a function of the model, so that onnxruntime runs it.
    inline:     bytes of weights up to which they stand in the graph's own file.
    Tensors are float32. Memory: the exporter's (its code, its graph and the largest tensor), then the largest tensor, and all where they
    stand in the graph's own file.
    """
    if exporter not in graph.EXPORTERS:
        raise OnboardingError(f"exporter {exporter!r} is not known; {nearest(str(exporter), graph.EXPORTERS)}")
    onnx = load("onnx")
    parameters = Parameters(source)
    proto, nodes, folded = graph.build(parameters.architecture, exporter, parameters.read if fold_gates else None)
    names = _initializers(onnx, proto, parameters, folded)
    check(onnx, proto, nodes)
    if function and nodes:
        add_function(proto, nodes, _taps(proto))
    report.left_out(parameters.ignored)
    if sum(_nbytes(tensor) for tensor in proto.graph.initializer[-len(names):]) <= inline:
        _write_inline(proto, names, parameters, report)
        path.write_bytes(proto.SerializeToString())
    else:
        _write_beside(proto, names, parameters, report, path)
    report.tensors = len(names)


def _initializers(onnx, proto, parameters: Parameters, folded: set[str]) -> list[str]:
    """Turns the graph's inputs that are parameters into initializers without data, at the end of the list; their names."""
    shapes, either = dict(parameters.shapes), set()
    if parameters.architecture.tied:
        either = {"embed.weight", "lm.weight"}  # one of them may stand for both
        shapes["lm.weight"] = shapes["embed.weight"]
    names = [value.name for value in proto.graph.input if value.name != graph.INPUT]
    lost = (shapes.keys() ^ {*names, *folded}) - either
    if not either.intersection(names):
        lost |= either
    if lost:
        raise OnboardingError(f"the exporter lost or added parameters: {', '.join(sorted(lost))}")
    del proto.graph.input[:]
    proto.graph.input.append(_tokens(onnx))
    for name in names:
        proto.graph.initializer.append(onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=shapes[name]))
    return names


def _tokens(onnx):
    return onnx.helper.make_tensor_value_info(graph.INPUT, onnx.TensorProto.INT64, ["batch", "length"])


def check(onnx, proto, nodes: list[LinearAttentionNode]) -> None:
    """Every linear layer is one node with the attributes it must have, and no weight became a constant."""
    found = [node for node in proto.graph.node if node.domain == DOMAIN]
    said = [{attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute} for node in found]
    if [node.op_type for node in found] != [OP] * len(nodes):
        raise OnboardingError(f"the exporter wrote {len(found)} nodes of {DOMAIN} for {len(nodes)} linear layers")
    for node, attributes in zip(nodes, said):
        if {key: _plain(value) for key, value in attributes.items()} != {key: _plain(value) for key, value in node.attributes().items()}:
            raise OnboardingError(f"the exporter changed the attributes of {node.name}: {attributes}")
    constants = [attribute.t for node in proto.graph.node for attribute in node.attribute if attribute.HasField("t")]
    constants += [tensor for tensor in proto.graph.initializer if tensor.HasField("raw_data")]
    for tensor in constants:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise OnboardingError("the exporter computed a constant from a parameter")


def _taps(proto) -> list[int]:
    shapes = {tensor.name: tensor.dims for tensor in proto.graph.initializer}
    return [shapes[node.input[3]][-1] for node in proto.graph.node if node.domain == DOMAIN]


def _plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return np.asarray(value, np.float32).tolist() if isinstance(value, (list, tuple)) else value


def _nbytes(tensor) -> int:
    return 4 * math.prod(tensor.dims)


def _values(parameters: Parameters, name: str) -> np.ndarray:
    tied = parameters.architecture.tied and name == "lm.weight"
    return parameters.floats("embed.weight" if tied else name)


def _write_inline(proto, names: list[str], parameters: Parameters, report: Report) -> None:
    for done, (name, tensor) in enumerate(zip(names, proto.graph.initializer[-len(names):]), 1):
        tensor.raw_data = _values(parameters, name).tobytes()
        parameters.forget(name)
        report.progress(done, len(names))


def _write_beside(proto, names: list[str], parameters: Parameters, report: Report, path: Path) -> None:
    location = report.output.name + ".data"
    with open(report.beside(".data"), "wb") as stream:
        for done, (name, tensor) in enumerate(zip(names, proto.graph.initializer[-len(names):]), 1):
            stream.write(bytes(-stream.tell() % _ALIGNMENT))
            _point(tensor, location, stream.tell())
            stream.write(_values(parameters, name).data)
            parameters.forget(name)
            report.progress(done, len(names))
        report.nbytes = stream.tell()
    path.write_bytes(proto.SerializeToString())
    report.notes.append(f"the weights are in {location}, which belongs beside the graph")


def _point(tensor, location: str, offset: int) -> None:
    tensor.data_location = tensor.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", _nbytes(tensor))):
        tensor.external_data.add(key=key, value=str(value))
