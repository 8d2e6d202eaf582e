"""The project that build.sh stages for the CANN toolkit: our sources unchanged, found through one-line files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from custom_ops import _paths
from custom_ops.sim import onnx_plugin

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


# --- the parser plugin

CMAKE = shutil.which("cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
PROJECT = """cmake_minimum_required(VERSION 3.16)
project(opp LANGUAGES CXX)
set(CMAKE_INSTALL_PREFIX ${CMAKE_SOURCE_DIR}/build_out)
"""


def test_plugin_is_staged_with_its_operator_only(cann, tmp_path):
    template = cann / "tools" / "op_project_templates" / "ascendc" / "customize"
    (template / "framework" / "tf_plugin").mkdir(parents=True)
    (template / "CMakeLists.txt").write_text("if(EXISTS framework)\n  add_subdirectory( framework )\nendif()\n")
    assert stage(tmp_path / "project", cann).returncode == 0
    staged = tmp_path / "project" / "framework"
    assert [place.name for place in staged.iterdir() if place.is_dir()] == ["onnx_plugin"]
    assert (staged / "CMakeLists.txt").read_text() == "add_subdirectory(onnx_plugin)\n"
    for source in onnx_plugin.sources(ROOT):
        assert (staged / "onnx_plugin" / source.name).read_bytes() == source.read_bytes()
    assert (tmp_path / "project" / "CMakeLists.txt").read_text() == (template / "CMakeLists.txt").read_text()
    assert stage(tmp_path / "other", cann, "--ops", "hc_post").returncode == 0
    assert not (tmp_path / "other" / "framework" / "onnx_plugin").exists()


@pytest.mark.skipif(CMAKE is None or onnx_plugin.json_headers() is None, reason="needs cmake and pip install 'custom_ops[onnx-parser]'")
def test_staged_plugin_is_built_into_the_package(cann, tmp_path):
    """By CMake, against headers and libraries of the stand-in where a toolkit has its own."""
    (cann / "tools" / "op_project_templates" / "ascendc" / "customize" / "CMakeLists.txt").write_text(PROJECT)
    for headers in ("sim/host/include", "sim/ge/include"):
        shutil.copytree(ROOT / headers, cann / "include", dirs_exist_ok=True)
    shutil.copytree(_paths.LIBRARY_DIR / "cann", cann / "lib64")
    done = stage(tmp_path / "project", cann, "--json", str(onnx_plugin.json_headers()))
    assert done.returncode == 0, done.stderr
    project = tmp_path / "project"
    below = f"-L{_paths.LIBRARY_DIR} -lcustom_ops_sim"  # a toolkit's AscendString is in libgraph
    options = ["-Dvendor_name=custom_ops", f"-DASCEND_CANN_PACKAGE_PATH={cann}", f"-DCMAKE_CXX_STANDARD_LIBRARIES={below}",
               "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs"]
    for arguments in (["-S", ".", "-B", "build_out", *options], ["--build", "build_out", "--target", "install"]):
        done = subprocess.run([CMAKE, *arguments], cwd=project, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "build_out/packages/vendors/custom_ops/framework/onnx/libcust_onnx_parsers.so").is_file()
