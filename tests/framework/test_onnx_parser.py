"""The parser plugin for ATC: nodes of exported models become our operator, and what it makes of them computes what the nodes mean."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx", reason="pip install 'custom_ops[onnx]'")
pytest.importorskip("transformers")

from onnx.reference import ReferenceEvaluator  # noqa: E402
from tiny_models import build_variant  # noqa: E402

import custom_ops.sim  # noqa: E402
from custom_ops import _paths  # noqa: E402
from custom_ops.onboarding.export import export  # noqa: E402
from custom_ops.onboarding.export.onnx.node import DOMAIN, OP, LinearAttentionNode  # noqa: E402
from custom_ops.onboarding.export.onnx.reference import evaluator, operator  # noqa: E402
from custom_ops.sim import onnx_plugin  # noqa: E402

if onnx_plugin.json_headers() is None:
    pytest.skip("pip install 'custom_ops[onnx-parser]'", allow_module_level=True)

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGIN = f"{DOMAIN}::1::{OP}"
TYPES = {0: np.float32, 9: np.int64}  # of Const
DELTA = LinearAttentionNode("/layers.0/self_attn/FusedLinearAttention", "gated_delta_rule", 2, 4, 16, 24)
SHORT = LinearAttentionNode("/layers.1/self_attn/FusedLinearAttention", "short_conv", 1, 1, 64, 64)
GATES = torch.tensor([-1.0, -0.1, -1 / 3, -2e-5]), torch.tensor([0.0, 1e30, -1.5, 3.0])


def attention(soc="ascend910b"):
    return custom_ops.sim.build(ROOT, soc, ops=["FusedLinearAttention"], progress=False)


@pytest.fixture(scope="module")
def plugin():
    """The loaded plugin; ATC_PARSE is where the stand-in asks it."""
    library = ctypes.CDLL(str(onnx_plugin.build(ROOT)))
    stand_in = ctypes.CDLL(str(_paths.LIBRARY_DIR / "cann" / "libregister.so"))
    stand_in.SimParseOnnxNode.restype = ctypes.c_char_p
    return library, stand_in.SimParseOnnxNode


@pytest.fixture
def parse(plugin, monkeypatch):
    """node of an ONNX graph -> the graph ATC would get, RuntimeError."""
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(attention().package))

    def parse(node, origin=ORIGIN, text=None):
        text = as_atc_gives_it(node) if text is None else text
        made = plugin[1](origin.encode(), node.name.encode(), text.encode(), len(node.input))
        if made is None:
            message = ctypes.CDLL(str(_paths.library("custom_ops_sim"))).aclGetRecentErrMsg
            message.restype = ctypes.c_char_p
            raise RuntimeError(message().decode())
        return json.loads(made)
    return parse


def as_atc_gives_it(node) -> str:
    """Types are numbers, single floats are text, and what proto3 does not store is not there: 0 and ""."""
    entries = []
    for one in node.attribute:
        value = onnx.helper.get_attribute_value(one)
        field = {onnx.AttributeProto.INT: "i", onnx.AttributeProto.STRING: "s", onnx.AttributeProto.FLOAT: "f",
                 onnx.AttributeProto.FLOATS: "floats", onnx.AttributeProto.INTS: "ints"}[one.type]
        value = value.decode() if field == "s" else f"{value:.10g}" if field == "f" else list(value) if field.endswith("s") else value
        entries.append({"name": one.name, "type": int(one.type), **({field: value} if value else {})})
    return json.dumps({"attribute": entries})


def node_of(node: LinearAttentionNode, inputs=4, **changes):
    attributes = {key: value for key, value in {**node.attributes(), **changes}.items() if value is not None}
    made = onnx.helper.make_node(OP, [f"x{index}" for index in range(inputs)], ["y"], domain=DOMAIN)
    made.attribute.extend(onnx.helper.make_attribute(key, value) for key, value in attributes.items())
    made.name = "node_7"
    return made


def operators(graph, kind):
    return [op for op in graph["operators"] if op["type"] == kind]


def plain(op):
    return {name: (value["type"], value["value"]) for name, value in op["attributes"].items()}


def constant(op):
    value = op["attributes"]["value"]["value"]
    return np.frombuffer(bytes.fromhex(value["bytes"]), TYPES[value["dtype"]]).reshape(value["shape"])


def run(graph, arrays, op):
    """What the graph computes, its FusedLinearAttention with `op`."""
    values = {(name, "y"): array for name, array in zip(graph["inputs"], arrays, strict=True)}
    for node in graph["operators"]:
        given = {name: values[tuple(source)] for name, source in node["inputs"].items()}
        if node["type"] == "Const":
            values[node["name"], "y"] = constant(node)
        elif node["type"] == "Transpose":
            values[node["name"], "y"] = np.ascontiguousarray(given["x"].transpose(given["perm"]))
        elif node["type"] == "FusedLinearAttention":
            values[node["name"], "attn_out"] = op(**given, **{name: value for name, (_, value) in plain(node).items()})[0]
    return [values[tuple(output)] for output in graph["outputs"]]


# --- what a node becomes

@pytest.mark.parametrize("node", [DELTA, SHORT], ids=["gated_delta_rule", "short_conv"])
def test_node(parse, node):
    graph = parse(node_of(node))
    attention_op, = operators(graph, "FusedLinearAttention")
    transpose, = operators(graph, "Transpose")
    assert plain(attention_op) == {
        "attn_type": ("String", node.attn_type), "num_k_heads": ("Int", node.num_k_heads), "num_v_heads": ("Int", node.num_v_heads),
        "head_k_dim": ("Int", node.head_k_dim), "head_v_dim": ("Int", node.head_v_dim), "use_qk_l2norm": ("Bool", True),
        "gate_fold": ("Bool", False)}
    assert graph["inputs"] == [f"node_7/{name}" for name in ("qkv", "gate", "beta", "conv_weight")]
    assert graph["outputs"] == [["node_7/attention", "attn_out"]]
    assert attention_op["inputs"] == {"qkv": ["node_7/qkv_by_token", "y"],
                                      **{name: [f"node_7/{name}", "y"] for name in ("gate", "beta", "conv_weight")}}
    assert transpose["inputs"] == {"x": ["node_7/qkv", "y"], "perm": ["node_7/perm", "y"]}
    assert sorted(plain(op)["index"] for op in operators(graph, "Data")) == [("Int", index) for index in range(4)]


def test_names_and_kinds_are_those_of_the_opdef(parse):
    """The stand-in refuses what the OpDef has not; here the OpDef's own list."""
    info = attention().info
    made, = operators(parse(node_of(DELTA)), "FusedLinearAttention")
    kinds = {"str": "String", "int": "Int", "bool": "Bool"}
    assert {name: kind for name, (kind, _) in plain(made).items()} == {attr.name: kinds[attr.type] for attr in info.attrs}
    assert set(made["inputs"]) == {param.name for param in info.inputs if not param.optional}


def test_folded_gates_become_inputs(parse):
    graph = parse(node_of(LinearAttentionNode(**{**vars(DELTA), "gates": GATES})))
    made, = operators(graph, "FusedLinearAttention")
    assert plain(made)["gate_fold"] == ("Bool", True)
    constants = {op["name"]: constant(op) for op in operators(graph, "Const")}
    for name, values in zip(("gate_coef", "gate_bias"), GATES):
        np.testing.assert_array_equal(constants[made["inputs"][name][0]], values.numpy())


def test_zero_and_absent(parse):
    """0 is not in the text at all; use_qk_l2norm has a default."""
    made, = operators(parse(node_of(DELTA, use_qk_l2norm=0)), "FusedLinearAttention")
    assert plain(made)["use_qk_l2norm"] == ("Bool", False)
    made, = operators(parse(node_of(DELTA, use_qk_l2norm=None, name=None)), "FusedLinearAttention")
    assert plain(made)["use_qk_l2norm"] == ("Bool", True)


def test_numbers_as_text(parse):
    folded = LinearAttentionNode(**{**vars(DELTA), "gates": GATES})
    document = json.loads(as_atc_gives_it(node_of(folded)))
    for entry in document["attribute"]:
        entry.update({field: str(entry[field]) if field == "i" else [f"{value:.9g}" for value in entry[field]]
                      for field in ("i", "floats") if field in entry})
    assert parse(node_of(folded), text=json.dumps(document)) == parse(node_of(folded))
    assert parse(node_of(folded), text=json.dumps(document["attribute"])) == parse(node_of(folded))  # the list alone


@pytest.mark.parametrize("changes, says", [
    (dict(attn_type=None), "attribute attn_type is missing"),
    (dict(attn_type="mamba"), "attn_type 'mamba' is not known; there are gated_delta_rule, kda, short_conv"),
    (dict(attn_type=3), "attribute attn_type must be a string"),
    (dict(num_k_heads=None), "attribute num_k_heads is missing"),
    (dict(num_v_heads="4"), "attribute num_v_heads must be an integer"),
    (dict(num_v_heads=3), "num_v_heads 3 must be a multiple of num_k_heads 2"),
    (dict(head_k_dim=0), "attribute head_k_dim must be 1 to 2^31 - 1, got 0"),
    (dict(head_v_dim=2**40), "attribute head_v_dim must be 1 to 2^31 - 1"),
    (dict(use_qk_l2norm=2), "attribute use_qk_l2norm must be 0 or 1, got 2"),
    (dict(gate_fold=1), "attribute gate_coef is missing"),
    (dict(gate_fold=1, gate_coef=[1.0] * 3, gate_bias=[1.0] * 4), "attribute gate_coef must have 4 values, got 3"),
    (dict(gate_fold=1, gate_coef=[1.0] * 4, gate_bias=1.0), "attribute gate_bias must be a list of floats"),
    (dict(gate_coef=[1.0] * 4), "attribute gate_coef goes with gate_fold 1"),
    (dict(gate_fold=1, attn_type="kda"), "gate_fold goes with a gate per head, which kda has not"),
    (dict(block=7), "attribute block is not known; there are name, attn_type"),
])
def test_refused_attributes(parse, capfd, changes, says):
    with pytest.raises(RuntimeError, match=f"the parser of {ORIGIN} failed on node_7"):
        parse(node_of(DELTA, **changes))
    assert f"LlmExporter::FusedLinearAttention node_7: {says}" in capfd.readouterr().err


@pytest.mark.parametrize("text, says", [
    ("", "not the JSON text"), ("{", "not the JSON text"), ("7", "not the JSON text"), ('{"attribute": 7}', "not the JSON text"),
    ("{}", "attn_type is missing"), ("[7]", "no name or no type: 7"), ('[{"name": "attn_type", "s": "kda"}]', "no name or no type"),
    ('[{"name": "name", "type": 3}, {"name": "name", "type": 3}]', "attribute name is there twice"),
    ('[{"name": "attn_type", "type": 3, "s": ["kda"]}]', "attn_type must be a string"),
])
def test_refused_text(parse, capfd, text, says):
    with pytest.raises(RuntimeError, match="failed on node_7"):
        parse(node_of(DELTA), text=text)
    assert says in capfd.readouterr().err


@pytest.mark.parametrize("value", ["nan", "inf", "1.0x", "", None, [1.0]])
def test_refused_floats(parse, capfd, value):
    document = json.loads(as_atc_gives_it(node_of(LinearAttentionNode(**{**vars(DELTA), "gates": GATES}))))
    next(entry for entry in document["attribute"] if entry["name"] == "gate_bias")["floats"][2] = value
    with pytest.raises(RuntimeError, match="failed on node_7"):
        parse(node_of(DELTA), text=json.dumps(document))
    assert "gate_bias must be a list of finite floats" in capfd.readouterr().err


def test_refused_inputs_and_names(parse, capfd):
    with pytest.raises(RuntimeError, match="failed on node_7"):
        parse(node_of(DELTA, inputs=5))
    assert "it has 5 inputs, expected are qkv, gate, beta and conv_weight" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match=f"no ONNX parser for LlmExporter::2::.*; there are: .*{ORIGIN}"):
        parse(node_of(DELTA), origin=f"{DOMAIN}::2::{OP}")


def test_operator_package_is_not_installed(parse, capfd, monkeypatch):
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "")
    with pytest.raises(RuntimeError, match="made no graph of node_7"):
        parse(node_of(DELTA))
    assert "operator FusedLinearAttention is not installed" in capfd.readouterr().err


# --- what it computes

@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("fold", [False, True], ids=["gates", "folded"])
def test_parsed_node_computes_the_node(parse, rng, soc, fold):
    node = LinearAttentionNode(**{**vars(DELTA), "gates": (-GATES[0].abs(), torch.randn(4, generator=rng))}) if fold else DELTA
    tensors = [torch.randn(2, 2 * 2 * 16 + 4 * 24, 9, generator=rng) * 0.5, -torch.rand(2, 9, 4, generator=rng),
               torch.rand(2, 9, 4, generator=rng), torch.randn(160, 1, 4, generator=rng) * 0.5]
    arrays = [tensor.numpy() for tensor in tensors]
    made = node_of(node)
    value, names = onnx.helper.make_tensor_value_info, list(made.input)
    graph = onnx.helper.make_graph([made], "g", [value(name, 1, None) for name in names], [value("y", 1, None)])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(DOMAIN, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    want, = ReferenceEvaluator(model, new_ops=[operator()]).run(None, dict(zip(names, arrays)))
    got, = run(parse(made), arrays, attention(soc))
    assert got.shape == want.shape == (2, 9, 4, 24)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * abs(want).max())


@pytest.mark.parametrize("name, options", [("lfm2", {}), ("qwen3_5_text", {}), ("qwen3_5_text", {"fold_gates": True})],
                         ids=["lfm2", "qwen3_5_text", "folded"])
def test_exported_model(parse, tmp_path, rng, name, options):
    """Logits with every linear layer parsed and run on the simulated chip, against onnx's own evaluator."""
    build_variant(name).save_pretrained(tmp_path / name)
    export(tmp_path / name, "onnx", tmp_path / "model.onnx", **options)
    op, parsed = attention(), []

    def run_parsed(self, *inputs, **attributes):
        parsed.append(self.onnx_node.name)
        return tuple(run(parse(self.onnx_node), inputs, op))

    on_chip = type(OP, (onnx.reference.op_run.OpRun,), {"op_domain": DOMAIN, "_run": run_parsed})
    tokens = torch.randint(3, 90, (2, 7), generator=rng).numpy()
    want, = evaluator(tmp_path / "model.onnx").run(None, {"tokens": tokens})
    got, = ReferenceEvaluator(onnx.load(str(tmp_path / "model.onnx")), new_ops=[on_chip]).run(None, {"tokens": tokens})
    assert len(parsed) == 3
    error = got.astype(np.float64) - want
    assert abs(error).max() <= (1e-4 if name == "lfm2" else 1e-3) and (error**2).sum() <= 1e-9 * (want.astype(np.float64) ** 2).sum()


# --- building it

def test_compiles_without_warnings():
    headers = ["sim/ge/include", "sim/host/include", "op_host"]
    for source in onnx_plugin.sources(ROOT):
        done = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                               *(f"-I{ROOT / place}" for place in headers), "-isystem", onnx_plugin.json_headers(), source],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_op_package_holds_it(tmp_path):
    built = onnx_plugin.export(ROOT, tmp_path)
    assert built == tmp_path / "framework" / "onnx" / "libcust_onnx_parsers.so"
    done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(built)!r})"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
