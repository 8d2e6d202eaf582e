"""MNN files: what an export writes, what stops one, and what is not read as one."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("MNN", reason="pip install 'custom_ops[mnn]'")
pytest.importorskip("onnx", reason="pip install 'custom_ops[mnn]'")
pytest.importorskip("transformers")

from click.testing import CliRunner  # noqa: E402
from tiny_models import build_variant  # noqa: E402

from custom_ops.onboarding import OnboardingError  # noqa: E402
from custom_ops.onboarding.export import export  # noqa: E402
from custom_ops.onboarding.export.command import command  # noqa: E402
from custom_ops.onboarding.export.mnn import convert, graph, rebuild  # noqa: E402
from custom_ops.onboarding.export.mnn import write as write_module  # noqa: E402
from custom_ops.onboarding.export.mnn.runtime import MnnModel  # noqa: E402
from custom_ops.onboarding.export.onnx.node import OP  # noqa: E402
from custom_ops.onboarding.source import open_source  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def test_files(mnn_files, folders):
    path = mnn_files("qwen3_tied")
    assert sorted(one.name for one in path.parent.iterdir()) == ["model.mnn", "model.mnn.weight"]
    parameters = sum(parameter.numel() for parameter in load(folders("qwen3_tied")).parameters())
    outputs = 96 + 4 * (4 * 32 + 2 * 32 * 2 + 64 + 80 * 2 + 64)  # a bias of each matrix, which MNN wants; the tied head is the embedding
    assert path.with_name("model.mnn.weight").stat().st_size == 4 * (parameters + outputs)


def test_files_that_are_there_stay(folders, tmp_path):
    path, beside = tmp_path / "model.mnn", tmp_path / "model.mnn.weight"
    for there in (path, beside):
        there.write_bytes(b"mine")
        with pytest.raises(OnboardingError, match=f"{there.name}: exists already"):
            export(folders("lfm2"), "mnn", path)
        assert [one.name for one in tmp_path.iterdir()] == [there.name] and there.read_bytes() == b"mine"
        there.unlink()


def test_damaged_files(mnn_files, tmp_path):
    data, weights = mnn_files("lfm2").read_bytes(), mnn_files("lfm2").with_name("model.mnn.weight").read_bytes()
    path, beside = tmp_path / "model.mnn", tmp_path / "model.mnn.weight"
    with pytest.raises(OnboardingError, match="model.mnn: no such file"):
        MnnModel(path)
    path.write_bytes(data)
    with pytest.raises(OnboardingError, match="model.mnn.weight: no such file"):
        MnnModel(path)
    beside.write_bytes(weights[:-4])
    with pytest.raises(OnboardingError, match=f"has {len(weights) - 4} bytes, model.mnn goes with {len(weights)}"):
        MnnModel(path)
    beside.write_bytes(weights)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(OnboardingError, match="was not written by"):
        MnnModel(path)
    path.write_bytes(b"\0" * 64 + json.dumps({"custom_ops": {"vocab": 1, "linear": 0, "weights": len(weights)}}).encode())
    with pytest.raises(OnboardingError, match="MNN cannot load it"):
        MnnModel(path)


def test_rotations_of_long_prompts_are_refused_before_anything_is_converted(tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "_run", lambda *arguments, **options: pytest.fail("converted"))
    build_variant("llama", rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, factor=2.0)).save_pretrained(tmp_path)
    with pytest.raises(OnboardingError, match="dynamic"):
        export(tmp_path, "mnn", tmp_path / "model.mnn")
    assert not [one for one in tmp_path.iterdir() if "mnn" in one.name]


@pytest.mark.parametrize("child, message", [("raise SystemExit(3)", "ended with 3 and without graph.converted"),
                                            ("print('no such operator')", "graph.converted.json:\n  no such operator")])
def test_a_converter_that_fails_leaves_nothing(child, message, folders, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "_CHILD", child)
    with pytest.raises(OnboardingError, match=message):
        export(folders("lfm2"), "mnn", tmp_path / "model.mnn")
    assert not [*tmp_path.iterdir()]


def test_weights_that_are_not_finite_leave_nothing(tmp_path):
    model = build_variant("llama")
    model.model.norm.weight[3] = float("nan")
    model.save_pretrained(tmp_path / "source")
    with pytest.raises(OnboardingError, match="norm.weight are NaN"):
        export(tmp_path / "source", "mnn", tmp_path / "model.mnn")
    assert [one.name for one in tmp_path.iterdir()] == ["source"]


def test_a_graph_that_the_converter_does_not_know(tmp_path):
    with pytest.raises(OnboardingError, match="does not know all of the operators NoSuchOperator"):
        convert.to_file({"oplists": [{"type": "NoSuchOperator"}]}, tmp_path / "graph.mnn")
    (tmp_path / "graph.mnn").unlink()
    with pytest.raises(OnboardingError, match="without graph.mnn:\n(.|\n)*Invalid json"):
        convert.to_file({"oplists": [{"type": float("inf")}]}, tmp_path / "graph.mnn")


@pytest.fixture
def converted(folders, tmp_path):
    """The parts of an export: the graph, what MNN's converter makes of it, and the weights."""
    parameters = write_module.Parameters(open_source(folders("lfm2")))
    built = graph.build(parameters.architecture)
    (tmp_path / "graph.onnx").write_bytes(built.proto.SerializeToString())
    return built, convert.to_json(tmp_path / "graph.onnx"), write_module.Weights(parameters.architecture, parameters.shapes, built)


def test_lost_nodes_and_numbers_are_noticed(converted, tmp_path):
    built, made, weights = converted
    whole = rebuild.rebuild(made, built, weights)
    assert not [op for op in whole["oplists"] if op["type"] == "Extra"]
    lost = {**made, "oplists": [op for op in made["oplists"] if not (op["type"] == "Extra" and op["main"]["type"] == OP)]}
    with pytest.raises(OnboardingError, match="lost or added nodes: /layers.0/self_attn/FusedLinearAttention, /layers.2"):
        rebuild.rebuild(lost, built, weights)
    cut = {**made, "oplists": [*made["oplists"], {"type": "Const", "name": "x", "main": {"float32s": [1.0, 0.333333]}}]}
    with pytest.raises(OnboardingError, match="computed 0.333333 for Const x"):
        rebuild.rebuild(cut, built, weights)
    written = convert.to_file(whole, tmp_path / "graph.mnn")
    write_module.check(written, built)
    assert not any(op["main"].get("gate_fold") for op in written["oplists"] if op["type"] == "LinearAttention")  # 3.6.1 ignores it
    name = next(iter(built.linear))
    with pytest.raises(OnboardingError, match="changed the numbers of /layers.0"):
        write_module.check(written, replace(built, linear={**built.linear, name: replace(built.linear[name], head_v_dim=32)}))
    with pytest.raises(OnboardingError, match="wrote 3 LinearAttention operators for 2"):
        write_module.check(written, replace(built, linear=dict([*built.linear.items()][:2])))


def test_the_converter_calls_nobody(converted, tmp_path, monkeypatch):
    """The wheel's own command would report to its maker and install a package: nothing of it is imported, connected to or started."""
    built, made, weights = converted
    watch = ("import sys\nseen = []\nsys.addaudithook(lambda event, arguments: seen.append(event) if event.startswith(('socket.', "
             "'subprocess.', 'os.system', 'urllib.')) else None)\n")
    end = "print([name for name in sys.modules if name.startswith('MNN.tools')], seen, file=open('seen', 'w'))\n"
    monkeypatch.setattr(convert, "_CHILD", watch + convert._CHILD + end)
    convert.to_file(rebuild.rebuild(made, built, weights), tmp_path / "graph.mnn")
    assert (tmp_path / "seen").read_text() == "[] []\n"


def test_command(folders, tmp_path):
    path = tmp_path / "model.mnn"
    arguments = [str(folders("lfm2")), "--format", "mnn", "-o", str(path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0 and f"{path}: " in done.output and "model.mnn.weight, which belongs beside" in done.output
    assert MnnModel(path).linear == 3
    wrong = CliRunner().invoke(command, [*arguments, "--fold-gates"])
    assert wrong.exit_code == 2 and "--fold-gates is for --format onnx, not for mnn" in wrong.output
    again = CliRunner().invoke(command, [*arguments, "--force"])
    assert again.exit_code == 0


def test_greeting_is_no_output():
    """MNN prints when it is imported; a command's result stands on standard output alone."""
    code = "from custom_ops.onboarding.export.mnn.package import load; load('MNN.nn'); print('result')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "result\n", done.stderr


def test_missing_package(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OnboardingError, match=r"custom_ops\[mnn\]"):
        export(folders("llama"), "mnn", tmp_path / "model.mnn")
    assert not [*tmp_path.iterdir()]
