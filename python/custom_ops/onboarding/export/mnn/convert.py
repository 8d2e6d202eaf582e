"""MNN's converter, in a process of its own: it writes to standard output, and an assertion in it ends the process.

The command `mnnconvert` of the wheel reports each use to its maker and installs what it needs for that; the function below it does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ...errors import OnboardingError

_TIMEOUT = 600.0  # seconds; a graph without weights takes a few
_CHILD = "import json, sys, _tools\nfor arguments in json.load(sys.stdin):\n    _tools.mnnconvert(['mnnconvert', *arguments])\n"


def to_json(onnx: Path) -> dict:
    """An ONNX file as MNN's graph; nodes of other domains are operators of type Extra. Writes beside the file."""
    model = onnx.with_suffix(".converted")
    convert = ["-f", "ONNX", "--modelFile", onnx.name, "--MNNModel", model.name, "--allowCustomOp", "--bizCode", "MNN"]
    return _dumped(onnx.parent, convert, model)


def to_file(graph: dict, model: Path) -> dict:
    """Writes MNN's graph as its file; the graph that was read back from it. What the converter does not know it reads as something else, so
    the operators are compared."""
    source = model.with_name("source.json")
    source.write_text(json.dumps(graph))
    written = _dumped(model.parent, ["-f", "JSON", "--modelFile", source.name, "--MNNModel", model.name, "--bizCode", "MNN"], model)
    kinds, found = ([op.get("type") for op in one["oplists"]] for one in (graph, written))
    if kinds != found:
        raise OnboardingError(f"MNN's converter does not know all of the operators {', '.join(sorted(set(kinds)))}")
    return written


def _dumped(folder: Path, convert: list[str], model: Path) -> dict:
    dump = model.with_name(model.name + ".json")
    _run(folder, [convert, ["-f", "MNN", "--modelFile", model.name, "--JsonFile", dump.name]], makes=[model, dump])
    return json.loads(dump.read_bytes())


def _run(folder: Path, calls: list[list[str]], makes: list[Path]) -> None:
    try:
        done = subprocess.run([sys.executable, "-c", _CHILD], input=json.dumps(calls).encode(), capture_output=True, cwd=folder,
                              timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise OnboardingError(f"MNN's converter did not finish in {_TIMEOUT:g} s") from None
    missing = [path.name for path in makes if not path.is_file()]
    if done.returncode or missing:
        words = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()[-6:]
        raise OnboardingError("\n  ".join([f"MNN's converter ended with {done.returncode} and without {', '.join(missing)}:", *words]))
