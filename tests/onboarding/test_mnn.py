"""MNN files in MNN's own runtime: prompts and decode against LlmModel and transformers, and the operator of the linear layers alone."""

import pytest
import torch

pytest.importorskip("MNN", reason="pip install 'custom_ops[mnn]'")
onnx = pytest.importorskip("onnx", reason="pip install 'custom_ops[mnn]'")
pytest.importorskip("transformers")

from mnn_models import TOKENS, in_pieces, require_equal  # noqa: E402
from tiny_models import LARGER, VARIANTS, build_variant  # noqa: E402

from custom_ops import fused_linear_attention  # noqa: E402
from custom_ops.onboarding.export import export  # noqa: E402
from custom_ops.onboarding.export.mnn import convert, graph, rebuild  # noqa: E402
from custom_ops.onboarding.export.mnn.package import load as load_mnn  # noqa: E402
from custom_ops.onboarding.export.mnn.runtime import MnnModel  # noqa: E402
from custom_ops.onboarding.export.onnx.node import DOMAIN, OP, LinearAttentionNode  # noqa: E402
from custom_ops.onboarding.model.attention import Attention  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

HYBRID = {"lfm2": 3, "lfm2_biased": 3, "lfm2_moe": 3, "qwen3_next": 3, "qwen3_5_text": 3, "qwen3_5_moe_text": 3}  # linear layers of 4

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", VARIANTS)
def test_prompts_and_decode(name, mnn_files, saved, record_property):
    """A prompt; one followed by single tokens and then by several at once; with linear layers also single tokens from the start."""
    reference, folder = saved(name)
    ours, theirs = load(folder)(TOKENS), reference(TOKENS).logits
    model = MnnModel(mnn_files(name))
    assert model.linear == HYBRID.get(name, 0) and model.vocab == LARGER["vocab_size"]
    for sizes in ((48,), (30, *[1] * 10, 8), *[[1] * 48] * (name in HYBRID)):
        got = in_pieces(model, *sizes)
        record_property(str(sizes[0]), f"{(got - ours).abs().max():.1e}")
        require_equal(name, got, ours)
        require_equal(name, got, theirs)
    require_equal(name, model(TOKENS, last_only=True), ours[:, -1:])


def test_exponentials():
    """MNN's softmax is within 2e-6 of the value and its sigmoid within 5e-7: its exp is a polynomial. Measured 1e-6 and 4e-7."""
    expr = load_mnn("MNN.expr")
    x = torch.randn(64, 48, generator=torch.Generator().manual_seed(0)) * 3
    variable, x = expr.const(x.numpy(), list(x.shape), expr.NCHW), x.double()
    for got, want, bound in ((expr.softmax(variable, 1), x.softmax(1), 2e-6), (expr.sigmoid(variable), x.sigmoid(), 5e-7)):
        assert (torch.tensor(got.read()) / want - 1).abs().max() <= bound


def test_logits_with_errors_of_mnns_size(folders, monkeypatch):
    """In LlmModel they move logits by up to 3e-5."""
    rng = torch.Generator().manual_seed(0)

    def noisy(values, size):
        return values * (1 + size * (2 * torch.rand(values.shape, generator=rng) - 1))

    model, softmax = load(folders("llama")), torch.Tensor.softmax
    monkeypatch.setattr(Attention, "_attend", Attention._explicit)
    want = model(TOKENS)
    monkeypatch.setattr(torch.Tensor, "softmax", lambda self, *arguments, **options: noisy(softmax(self, *arguments, **options), 2e-6))
    for block in model.blocks:
        block.mlp.act = lambda x: noisy(torch.nn.functional.silu(x), 5e-7)
    assert 3e-6 < (model(TOKENS) - want).abs().max() < 1e-4


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu2"])
def test_activations(act, tmp_path):
    build_variant("phi", hidden_act=act).save_pretrained(tmp_path)
    export(tmp_path, "mnn", tmp_path / "model.mnn")
    require_equal("phi", MnnModel(tmp_path / "model.mnn")(TOKENS), load(tmp_path)(TOKENS))


@pytest.mark.parametrize("name, changes, kind", [
    ("llama", dict(hidden_size=36, head_dim=6, intermediate_size=50, vocab_size=97), "kv"),
    ("qwen3_next", dict(hidden_size=42, linear_value_head_dim=10, linear_key_head_dim=6, head_dim=8, num_experts=3), "hybrid"),
    ("lfm2", dict(layer_types=["conv"] * 4), "recurrent"), ("qwen3_5_text", dict(layer_types=["linear_attention"] * 4), "recurrent")])
def test_sizes_and_layers(name, changes, kind, tmp_path):
    """Sizes that MNN's blocks of 4 channels do not divide; models without attention, which have no keys and values."""
    build_variant(name, **changes).save_pretrained(tmp_path)
    export(tmp_path, "mnn", tmp_path / "model.mnn")
    model = MnnModel(tmp_path / "model.mnn")
    require_equal(name, in_pieces(model, 30, *[1] * 10, 8), load(tmp_path)(TOKENS))
    assert model.new_memory().kind == kind


def test_constants_keep_their_bits(folders, mnn_files, tmp_path, monkeypatch):
    """The JSON form of MNN's converter has six decimals: rotary frequencies of 5e-5 would be 6 % off, and far tokens elsewhere."""
    tokens = TOKENS.repeat(1, 10)
    want = load(folders("llama"))(tokens)
    require_equal("llama", MnnModel(mnn_files("llama"))(tokens), want)
    exact = graph._constants
    monkeypatch.setattr(graph, "_constants", lambda proto: {
        name: values.round(6) if abs(values).max() < 2 else values for name, values in exact(proto).items()})
    export(folders("llama"), "mnn", tmp_path / "model.mnn")
    assert (MnnModel(tmp_path / "model.mnn")(tokens) - want).abs().max() > 1e-3


# --- the operator alone

OPERATORS = [  # node, taps
    (LinearAttentionNode("a", "short_conv", 1, 1, 12, 12), 3), (LinearAttentionNode("b", "short_conv", 1, 1, 5, 5), 1),
    (LinearAttentionNode("c", "gated_delta_rule", 2, 4, 8, 12), 4), (LinearAttentionNode("d", "gated_delta_rule", 2, 6, 24, 33), 3),
    (LinearAttentionNode("e", "gated_delta_rule", 1, 2, 128, 128), 4),
    (LinearAttentionNode("f", "gated_delta_rule", 2, 2, 8, 8, use_qk_l2norm=False), 2)]


def alone(node, folder):
    """MNN's module of one LinearAttention."""
    value, names = onnx.helper.make_tensor_value_info, ("qkv", "gate", "beta", "weight")
    made = onnx.helper.make_node(OP, names, ["out"], domain=DOMAIN, **node.attributes())
    of = onnx.TensorProto.FLOAT
    body = onnx.helper.make_graph([made], "g", [value(name, of, ["b", "l", "h"]) for name in names], [value("out", of, [None] * 4)])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(DOMAIN, 1)]
    onnx.save(onnx.helper.make_model(body, opset_imports=opsets, ir_version=8), folder / "graph.onnx")
    graph_of_mnn = convert.to_json(folder / "graph.onnx")
    graph_of_mnn["oplists"] = [rebuild.linear_attention(op, node) if op["type"] == "Extra" else op for op in graph_of_mnn["oplists"]]
    convert.to_file(graph_of_mnn, folder / "graph.mnn")
    return load_mnn("MNN.nn").load_module_from_file(str(folder / "graph.mnn"), list(names), ["out"])


@pytest.mark.parametrize("node, taps", OPERATORS, ids=lambda value: getattr(value, "name", str(value)))
def test_operator(node, taps, rng, tmp_path):
    """Any head size, any number of taps: a prompt of 19 tokens, then three single ones on the state that the operator keeps."""
    short = node.attn_type == "short_conv"
    channels = node.head_v_dim if short else 2 * node.num_k_heads * node.head_k_dim + node.num_v_heads * node.head_v_dim
    qkv = torch.randn(1, 3 * channels if short else channels, 22, generator=rng) * (1 if node.use_qk_l2norm else 0.3)
    gate = -torch.randn(1, 22, node.num_v_heads, generator=rng).abs() * 0.5
    beta = torch.rand(1, 22, node.num_v_heads, generator=rng)
    weight = torch.randn(channels, 1, taps, generator=rng) * 0.5
    said = {key: value for key, value in node.attributes().items() if key != "name"} | {"use_qk_l2norm": node.use_qk_l2norm}
    want = fused_linear_attention(qkv, gate, beta, weight, **said)
    module, expr = alone(node, tmp_path), load_mnn("MNN.expr")
    got = []
    for begin, end in ((0, 19), (19, 20), (20, 21), (21, 22)):
        feeds = [tensor.contiguous() for tensor in (qkv[:, :, begin:end], gate[:, begin:end], beta[:, begin:end], weight)]
        [out] = module.forward([expr.const(tensor.numpy(), list(tensor.shape), expr.NCHW) for tensor in feeds])
        got.append(torch.tensor(out.read().copy()))
    assert (torch.cat(got, 1) - want).abs().max() <= 1e-6 * max(1, want.abs().max())
