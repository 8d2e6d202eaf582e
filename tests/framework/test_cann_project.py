"""The project that build.sh stages for the CANN toolkit: our sources unchanged, found through one-line files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "cann_project.py"
OPERATORS = ("fused_linear_attention", "hc_post", "hc_pre", "hc_pre_inv_rms", "hc_pre_sinkhorn")


def stage(target: Path, cann: Path | None, *arguments: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    if cann:
        environment["ASCEND_HOME_PATH"] = str(cann)
    return subprocess.run([sys.executable, SCRIPT, *arguments, target], capture_output=True, text=True, env=environment)


@pytest.fixture
def cann(tmp_path) -> Path:
    """A toolkit that has the project template and nothing else."""
    template = tmp_path / "cann" / "tools" / "op_project_templates" / "ascendc" / "customize"
    (template / "op_host").mkdir(parents=True)
    (template / "op_host" / "sample.cpp").write_text("// of the template\n")
    (template / "build.sh").write_text("exit 0\n")
    return tmp_path / "cann"


def test_staged_host_sources_compile(cann, tmp_path):
    done = stage(tmp_path / "project", cann, "--soc", "ascend910b,ascend950")
    assert done.returncode == 0, done.stderr
    project = tmp_path / "project"
    shims = sorted((project / "op_host").glob("*.cpp"))
    assert "sample.cpp" not in [s.name for s in shims] and (project / "build.sh").is_file()
    assert {s.stem for s in (project / "op_kernel").glob("*.cpp")} == set(OPERATORS)
    for shim in shims:
        compiled = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                                   "-I", ROOT / "sim" / "host" / "include", "-I", ROOT, shim], capture_output=True, text=True)  # fmt: skip
        assert compiled.returncode == 0, compiled.stderr
    presets = json.loads((project / "CMakePresets.json").read_text())["configurePresets"][0]["cacheVariables"]
    assert presets["ASCEND_COMPUTE_UNIT"]["value"] == "ascend910b;ascend950"


def test_operators_can_be_chosen(cann, tmp_path):
    assert stage(tmp_path / "project", cann, "--ops", "hc_pre_inv_rms").returncode == 0
    assert {p.name for p in (tmp_path / "project" / "op_kernel").iterdir() if p.is_dir()} == {"common", "hc_pre_inv_rms"}


@pytest.mark.parametrize(("arguments", "toolkit", "says"), [
    ((), "", "ASCEND_HOME_PATH is unset"),
    ((), "nowhere", "must name an installed CANN toolkit"),
    (("--ops", "hc_post_typo"), "cann", "no operator hc_post_typo; there are: " + ", ".join(OPERATORS)),
    (("--soc", "ascend310"), "cann", "configured for ascend910b, ascend910_93, ascend950"),
])  # fmt: skip
def test_refusals(cann, tmp_path, arguments, toolkit, says):
    done = stage(tmp_path / "project", tmp_path / toolkit if toolkit else None, *arguments)
    assert done.returncode == 1 and says in done.stderr
