"""An MNN file of a checkpoint, and its weights beside it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .. import Report
from ...errors import OnboardingError
from ...source import Source
from ..parameters import Parameters
from . import convert, package
from .graph import Graph, build
from .rebuild import parameters as linear_parameters
from .rebuild import rebuild
from .runtime import WEIGHTS, mark
from .weights import Weights


def write(source: Source, path: Path, *, report: Report) -> None:
    """Writes the graph at `path` and the weights, float32, beside it. Peak memory: the largest parameter, and the graph."""
    package.require()
    parameters = Parameters(source)
    graph = build(parameters.architecture)
    weights = Weights(parameters.architecture, parameters.shapes, graph)
    lost = parameters.shapes.keys() ^ weights.names()
    if lost - ({"lm.weight"} if parameters.architecture.tied else set()):
        raise OnboardingError(f"the exporter lost or added parameters: {', '.join(sorted(lost))}")
    path.write_bytes(_graph_file(graph, weights, mark(parameters.architecture.vocab, len(graph.linear), weights.nbytes)))
    with open(report.beside(WEIGHTS), "wb") as stream:
        weights.write(stream, parameters, report)
    report.nbytes = weights.nbytes
    report.notes.append(f"the weights are in {report.output.name}{WEIGHTS}, which belongs beside the graph")
    report.left_out(parameters.ignored)


def _graph_file(graph: Graph, weights: Weights, flag: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="custom_ops_mnn_") as name:
        folder = Path(name)
        (folder / "graph.onnx").write_bytes(graph.proto.SerializeToString())
        made = rebuild(convert.to_json(folder / "graph.onnx"), graph, weights)
        check(convert.to_file({**made, "bizCode": flag}, folder / "graph.mnn"), graph)
        return (folder / "graph.mnn").read_bytes()


def check(written: dict, graph: Graph) -> None:
    """Every linear layer is one operator with the numbers it must have."""
    found = {op["name"]: op["main"] for op in written["oplists"] if op["type"] == "LinearAttention"}
    if found.keys() != graph.linear.keys():
        raise OnboardingError(f"MNN's converter wrote {len(found)} LinearAttention operators for {len(graph.linear)} linear layers")
    for name, said in found.items():
        wanted = linear_parameters(graph.linear[name])
        if {key: said.get(key) for key in wanted} != wanted:
            raise OnboardingError(f"MNN's converter changed the numbers of {name}: {said}")
