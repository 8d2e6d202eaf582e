"""Graphs that torchair makes of a function in its GE mode, read from its own dump."""

import pytest
import torch

GE_FLOAT, GE_INT32, GE_BF16 = 1, 3, 27  # ge.proto.DataType


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """converted(function, inputs) gives the GE graph that torchair made of it, a GraphDef."""
    import torchair
    from google.protobuf import text_format
    from torchair._ge_concrete_graph import ge_ir_pb2

    monkeypatch.chdir(tmp_path)

    def convert(function, inputs, dynamic=False):
        torch._dynamo.reset()
        config = torchair.CompilerConfig()
        config.debug.graph_dump.type = "txt"
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend=torchair.get_npu_backend(compiler_config=config))
        with pytest.raises(RuntimeError, match="graph engine"):
            compiled(*inputs)
        (dump,) = tmp_path.glob("dynamo_optimized_*.txt")
        return text_format.Parse(dump.read_text(), ge_ir_pb2.GraphDef())

    yield convert
    torch._dynamo.reset()


def node(graph, kind):
    (found,) = [op for op in graph.op if op.type == kind]
    return found


def attributes(op):
    values = {}
    for name, value in op.attr.items():
        if not name.startswith("_"):  # torchair's own
            values[name] = getattr(value, value.WhichOneof("value"))
    return values
