"""Kernels and op_host libraries refer to a symbol of the library they were compiled for."""

import shutil
from pathlib import Path

import pytest
from custom_ops import _paths, sim
from custom_ops.errors import BuildError
from custom_ops.sim import abi, compiler, runtime

OPS = Path(__file__).parent / "ops"


@pytest.fixture
def headers(tmp_path):
    for folder in abi._FOLDERS:
        shutil.copytree(_paths.SOURCE_ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.cpp"))
    return tmp_path


def test_symbol_follows_the_declarations(headers):
    before = abi.symbol(headers)
    assert before == abi.symbol(_paths.SOURCE_ROOT)
    launch = headers / "sim" / "core" / "launch.h"
    text = launch.read_text()
    launch.write_text("// A remark.\n" + text.replace("    ", "  "))
    assert abi.symbol(headers) == before
    launch.write_text(text.replace("bool checks = true;", "bool checks = true, more = false;"))
    assert abi.symbol(headers) != before


def test_headers_of_another_version_do_not_link(monkeypatch):
    monkeypatch.setattr(abi, "symbol", lambda root: abi.PREFIX + "0" * 16)
    with pytest.raises(BuildError, match="libcustom_ops_sim.so was built from other headers than those in .*sim: "):
        sim.build(OPS / "axpy")


def test_a_package_of_another_version_is_not_loaded(tmp_path, monkeypatch):
    """As one that `custom-ops sim build --output` made before the simulator was updated."""
    monkeypatch.setattr(abi, "symbol", lambda root: abi.PREFIX + "0" * 16)
    monkeypatch.setattr(compiler, "_sim_link", lambda: ["-Wl,-z,lazy,--unresolved-symbols=ignore-all"])
    unit = compiler.Unit("stale.so", tmp_path, text="int nothing;", kernel=True)
    library, _ = compiler.compile_unit(unit)
    with pytest.raises(RuntimeError, match="was built for another version of the simulator: build its op package again"):
        runtime.describe_host_library(library)
