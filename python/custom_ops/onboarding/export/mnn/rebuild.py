"""MNN's operators in the place of our nodes, in a graph of MNN's converter (its JSON form)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import OnboardingError
from ..onnx.node import OP, LinearAttentionNode
from .graph import EMBEDDING, LINEAR, NORM, Graph, Matrix, Normed
from .weights import Weights

_NODES = LINEAR, NORM, EMBEDDING, OP


def rebuild(made: dict, graph: Graph, weights: Weights) -> dict:
    """`made` with constants where inputs are parameters or constants, and operators of MNN where nodes are ours.

    Raises OnboardingError where the converter lost or added a node or a parameter.
    """
    return _Rebuild(made, graph, weights).result()


class _Rebuild:
    def __init__(self, made: dict, graph: Graph, weights: Weights):
        self.made, self.graph, self.weights = made, graph, weights
        self.tensors = list(made["tensorName"])
        self.seen: list[str] = []

    def result(self) -> dict:
        ops = [new for op in self.made["oplists"] for new in self._replace(op)]
        graph = self.graph
        wanted = [*graph.parameters, *graph.constants, *graph.matrices, *graph.norms, *graph.linear, *graph.embeddings]
        if sorted(self.seen) != sorted(wanted):
            raise OnboardingError(f"MNN's converter lost or added nodes: {', '.join(sorted({*self.seen} ^ {*wanted})) or 'repeated ones'}")
        return {**self.made, "oplists": ops, "tensorName": self.tensors, "tensorNumber": len(self.tensors)}

    def _replace(self, op: dict) -> list[dict]:
        name = op["name"]
        if op["type"] == "Input" and (name in self.graph.parameters or name in self.graph.constants):
            self.seen.append(name)
            return [_constant(op, self.graph.constants[name]) if name in self.graph.constants else
                    self._parameter(name, op["outputIndexes"][0])]
        if op["type"] != "Extra":
            _require_no_fraction(op, op.get("main"))
            return [op]
        said = {entry["key"]: entry for entry in op["main"].get("attr", [])}
        kind = op["main"]["type"]
        if kind not in _NODES:
            raise OnboardingError(f"MNN has no operator {kind!r}")
        name = said["name"]["s"]
        self.seen.append(name)
        if kind == EMBEDDING:
            return self._embedding(op, name)
        if kind == LINEAR:
            return self._product(op, self.graph.matrices[name])
        return [self._norm(op, self.graph.norms[name]) if kind == NORM else linear_attention(op, self.graph.linear[name])]

    def _parameter(self, name: str, index: int) -> dict:
        dims, where = list(self.weights.shapes[name]), self.weights.tensor(name)
        blob = {"dims": dims, "dataFormat": "NCHW", "dataType": "DT_FLOAT", "external": where}
        return _op("Const", name, [], [index], "Blob", blob)

    def _embedding(self, op: dict, name: str) -> list[dict]:
        weight, axis_name = self.graph.embeddings[name], f"{name}/axis"
        table, axis = self._tensor(weight), self._tensor(axis_name)
        zero = {"dims": [], "dataFormat": "NCHW", "dataType": "DT_INT32", "int32s": [0]}
        return [self._parameter(weight, table), _op("Const", axis_name, [], [axis], "Blob", zero),
                _op("GatherV2", name, [table, *op["inputIndexes"], axis], op["outputIndexes"])]

    def _norm(self, op: dict, norm: Normed) -> dict:
        numbers = {"axis": [-1], "epsilon": norm.eps, "group": 1, "useRMSNorm": norm.rms, "external": self.weights.of(norm)}
        return _op("LayerNorm", norm.name, op["inputIndexes"], op["outputIndexes"], "LayerNorm", numbers)

    def _product(self, op: dict, matrix: Matrix) -> list[dict]:
        """x W^T + b as a convolution of one pixel, whose batch is the tokens: what MNN packs its weights for."""
        name = matrix.name
        pixels, packed, multiplied, plain = (self._tensor(name + part) for part in ("/pixels", "/packed", "/product", "/plain"))
        shape = [-1, matrix.outputs] if matrix.rank == 2 else [1, -1, matrix.outputs]
        return [_op("Reshape", name + "/pixels", op["inputIndexes"], [pixels], "Reshape", _shape([-1, matrix.inputs, 1, 1])),
                _op("ConvertTensor", name + "/packed", [pixels], [packed], "TensorConvertInfo", {"source": "NCHW", "dest": "NC4HW4"}),
                _op("Convolution", name + "/product", [packed], [multiplied], "Convolution2D",
                    {"common": _one_pixel(matrix), "external": self.weights.of(matrix)}),
                _op("ConvertTensor", name + "/plain", [multiplied], [plain], "TensorConvertInfo", {"source": "NC4HW4", "dest": "NCHW"}),
                _op("Reshape", name, [plain], op["outputIndexes"], "Reshape", _shape(shape))]

    def _tensor(self, name: str) -> int:
        self.tensors.append(name)
        return len(self.tensors) - 1


def _require_no_fraction(op: dict, value) -> None:
    """See graph.py: numbers of the model do not come through the converter, which would cut them."""
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            _require_no_fraction(op, part)
    elif isinstance(value, float) and not value.is_integer():
        raise OnboardingError(f"MNN's converter computed {value} for {op['type']} {op['name']} and gives six decimals of it")


def _constant(op: dict, values: np.ndarray) -> dict:
    blob = {"dims": list(values.shape), "dataFormat": "NCHW", "dataType": "DT_FLOAT", "float32s": values.ravel().tolist()}
    return _op("Const", op["name"], [], op["outputIndexes"], "Blob", blob)


def linear_attention(op: dict, node: LinearAttentionNode) -> dict:
    return _op("LinearAttention", node.name, op["inputIndexes"], op["outputIndexes"], "LinearAttentionParam", parameters(node))


def parameters(node: LinearAttentionNode) -> dict[str, object]:
    """MNN's LinearAttentionParam."""
    said = {key: value for key, value in node.attributes().items() if key != "name"}
    return {**said, "use_qk_l2norm": node.use_qk_l2norm}


def _op(kind: str, name: str, inputs: list[int], outputs: list[int], main_type: str = "NONE", main: Mapping | None = None) -> dict:
    op = {"type": kind, "name": name, "inputIndexes": inputs, "outputIndexes": outputs, "main_type": main_type,
          "defaultDimentionFormat": "NCHW"}
    return op if main is None else {**op, "main": dict(main)}


def _shape(dims: list[int]) -> dict:
    return {"dims": dims, "dimType": "NCHW"}


def _one_pixel(matrix: Matrix) -> dict:
    ones = dict.fromkeys(("kernelX", "kernelY", "strideX", "strideY", "dilateX", "dilateY", "group"), 1)
    return {**ones, "padX": 0, "padY": 0, "padMode": "CAFFE", "inputCount": matrix.inputs, "outputCount": matrix.outputs}
