"""What `custom-ops doctor` finds: each thing the NPU path needs, where it is, and what to do when it is missing.

Nothing here imports torch: importing may be just what does not work. Whether it does is tried in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import __version__, _backend, _paths
from . import environment, library, packages, session

OK, NOTE, MISSING = "ok", "note", "missing"

#: Imported by torch_npu or torchair and not among their declared requirements.
_UNDECLARED = {"google.protobuf": "protobuf", "yaml": "pyyaml", "decorator": "decorator", "attr": "attrs", "psutil": "psutil"}
#: Says what went wrong first: torch's own last words are that a backend could not be loaded.
_PROBE = """
import json
def answer():
    import torch, torch_npu, custom_ops
    n = torch.npu.device_count()
    x = torch.ones(2, 4, 16)
    ok = n and torch.equal(custom_ops.hc_pre_inv_rms(x.to("npu:0")).cpu(), custom_ops.hc_pre_inv_rms(x))
    return {"devices": n, "name": n and torch.npu.get_device_name(0),
            "memory": n and torch.npu.get_device_properties(0).total_memory, "op": bool(ok)}
try:
    found = answer()
except Exception as error:
    chain = [error]
    while chain[-1].__cause__ or chain[-1].__context__:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    found = {"error": [f"{type(link).__name__}: {link}".strip() for link in reversed(chain)]}
    import traceback
    traceback.print_exc()
print("probe:", json.dumps(found))
"""
_PROBE_SECONDS = 300


@dataclass(frozen=True)
class Check:
    name: str
    state: str             # "ok" | "note" | "missing"
    found: str
    advice: str = ""       # what to do
    details: dict = field(default_factory=dict)


def examine(probe: bool = True) -> list[Check]:
    cann = environment.find_cann()
    checks = [Check("custom_ops", OK, f"{__version__} in {_paths.LIBRARY_DIR}"),
              Check("python", OK, f"{platform.python_version()} {sys.executable}")]
    checks += [*_torch(), *(_cann(cann) if cann else _stand_ins()), *_chip(cann), _compiler()]
    if probe and ready(checks):
        checks += _first_builds(cann)
    checks += _op_packages(cann)
    if importlib.util.find_spec("torch_npu"):
        checks.append(_npu_library())
    if probe and ready(checks):
        checks.append(_probe(cann))
    return checks


def ready(checks: list[Check]) -> bool:
    """Whether code for an NPU runs here."""
    return all(check.state != MISSING for check in checks)


def to_json(checks: list[Check]) -> str:
    return json.dumps({"ready": ready(checks), "checks": [asdict(check) for check in checks]}, indent=1)


def _torch() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None:
        yield Check("torch", MISSING, "not installed", "pip install torch==2.13.0")
        return
    folder = Path(importlib.util.find_spec("torch").origin).parent
    yield Check("torch", OK, f"{library.version('torch')} in {folder}")
    spec = importlib.util.find_spec("torch_npu")
    if spec is None:
        yield Check("torch_npu", MISSING, "not installed; the CPU operators and custom_ops.simulate() do without", session.INSTALL)
        return
    torch, torch_npu = library.versions()
    found = f"{torch_npu} in {Path(spec.origin).parent}"
    if torch.split("+")[0].split(".")[:3] == torch_npu.split(".")[:3]:
        yield Check("torch_npu", OK, found)
    else:
        wanted = ".".join(torch_npu.split(".")[:3])
        yield Check("torch_npu", MISSING, f"{found}, for torch {wanted}", f"pip install torch=={wanted}")
    lacking = [package for module, package in _UNDECLARED.items() if not _importable(module)]
    if lacking:
        yield Check("torch_npu imports", MISSING, f"not installed: {', '.join(lacking)}", f"pip install {' '.join(lacking)}")
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        yield Check("autoload", NOTE, "TORCH_DEVICE_BACKEND_AUTOLOAD is off: `import torch` leaves torch_npu out",
                    "unset it, or import torch_npu in the script")


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent
        return False


def _cann(cann: environment.Cann) -> Iterator[Check]:
    found = f"{cann.folder} (by {cann.source}): the real one is used, no simulator"
    if not cann.loads:
        yield Check("CANN", MISSING, f"{cann.folder} (by {cann.source}), which the dynamic loader does not search", cann.set_env())
        return
    yield Check("CANN", OK, found)
    yield _libraries({name: environment.loaded_from(name) for name in _backend.LINKED}, cann.set_env())


def _stand_ins() -> Iterator[Check]:
    yield Check("CANN", NOTE, "none found (LD_LIBRARY_PATH, ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME): the simulator stands in for it")
    folder = environment.STAND_INS
    yield _libraries({name: folder if (folder / name).is_file() else None for name in _backend.LINKED},
                     _paths.REBUILD,
                     [path.name for path in sorted(folder.glob("*.so")) if path.name not in _backend.LINKED])


def _libraries(where: dict[str, Path | None], advice: str, more: list[str] = []) -> Check:
    details = {name: str(folder / name) if folder else None for name, folder in where.items()}
    lacking = [name for name, folder in where.items() if folder is None]
    if lacking:
        return Check("libraries", MISSING, f"not found: {', '.join(lacking)}", advice, details)
    folders = ", ".join(dict.fromkeys(str(folder) for folder in where.values()))
    return Check("libraries", OK, f"{', '.join([*where, *more])} in {folders}", details=details)


def _chip(cann: environment.Cann | None) -> Iterator[Check]:
    if cann:
        return
    from ..sim import runtime

    name, given = environment.soc_name(), os.environ.get("CUSTOM_OPS_NPU_SOC")
    origin = "by CUSTOM_OPS_NPU_SOC" if given else "the default; custom-ops run --soc NAME"
    try:
        soc = runtime.find_soc(name)
        size = environment.memory_bytes(given_size) if (given_size := os.environ.get("CUSTOM_OPS_NPU_MEMORY")) else soc["hbmBytes"]
    except (ValueError, OSError) as error:
        yield Check("SoC", MISSING, str(error), "custom-ops sim socs lists the chips; CUSTOM_OPS_NPU_MEMORY is a size like 8GB")
        return
    devices = os.environ.get("CUSTOM_OPS_NPU_DEVICES") or "1"
    yield Check("SoC", OK, f"{devices} simulated {soc['name']} ({soc['vectorCores']} vector cores), {origin}",
                details={"name": soc["name"], "family": soc["family"], "devices": int(devices)})
    yield Check("device memory", OK, f"{size / 2**30:g} GiB each, taken from the host's as it is touched", details={"bytes": size})


def _compiler() -> Check:
    from ..errors import BuildError
    from ..sim import compiler

    try:
        tool = compiler.find()
    except BuildError as error:
        return Check("compiler", MISSING, "none for kernels", str(error))
    kind, version = tool.identity.replace('"', '').split()[:2]
    return Check("compiler", OK, f"{' '.join(tool.command)}, {kind} {version}, for kernels")


def _first_builds(cann: environment.Cann | None) -> Iterator[Check]:
    """Builds what the first use would build, here, where its progress is seen."""
    try:
        if cann is None:
            packages.own(environment.soc_name())
        library.find() or library.build()
    except (RuntimeError, OSError) as error:  # BuildError is a RuntimeError
        yield Check("first build", MISSING, str(error), "custom-ops sim cache shows where it is kept; CXX names another compiler")


def _op_packages(cann: environment.Cann | None) -> Iterator[Check]:
    for path in filter(None, os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":")):
        api = Path(path) / "op_api" / "lib" / "libcust_opapi.so"
        if not api.is_file():
            yield Check("op package", NOTE, f"{path} (by ASCEND_CUSTOM_OPP_PATH) has no op_api/lib/libcust_opapi.so",
                        "name the folder of a vendor, such as .../opp/vendors/customize, or take it out")
            continue
        with api.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                yield Check("op package", NOTE, f"{path} (by ASCEND_CUSTOM_OPP_PATH): {api.name} is no library",
                            "build it again, or take it out")
                continue
        description = Path(path) / "op_info.json"
        ops = [op["type"] for op in json.loads(description.read_text())] if description.is_file() else []
        yield Check("op package", OK, f"{path}: {', '.join(ops) or 'operators of a CANN package'}")
    if cann:
        if not os.environ.get("ASCEND_CUSTOM_OPP_PATH"):
            yield Check("op package", NOTE,
                        "ASCEND_CUSTOM_OPP_PATH is empty: an operator is found if its package lies in CANN's opp/vendors",
                        "in a checkout of this project: ./build.sh build; "
                        "export ASCEND_CUSTOM_OPP_PATH=$PWD/build/opp/vendors/custom_ops")
        return
    try:
        built = packages.find(environment.soc_name())
    except (ValueError, OSError):
        return  # said by _chip
    yield Check("own op package", OK, str(built) if built else "built at first use, in half a minute")


def _npu_library() -> Check:
    found = library.find()
    if found:
        return Check("NPU operators", OK, str(found))
    if not list((library.SOURCES / "npu").glob("*.cpp")):
        return Check("NPU operators", MISSING, f"neither libcustom_ops_torch_npu for this torch_npu nor its sources in {library.SOURCES}",
                     "pip install . again")
    return Check("NPU operators", OK, "compiled for this torch_npu at first use, in half a minute")


def _probe(cann: environment.Cann | None) -> Check:
    from ..sim.progress import Progress

    command = [sys.executable, *([] if cann else ["-m", "custom_ops.npu"]), "-c", _PROBE]
    try:
        with Progress("running an operator on the NPU"):
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return Check("run", MISSING, f"no answer from the NPU after {_PROBE_SECONDS} s", " ".join(command[:-1] + ["..."]))
    answer = next((line for line in done.stdout.splitlines() if line.startswith("probe:")), None)
    details = json.loads(answer.removeprefix("probe:")) if answer else {}
    if done.returncode or not details or "error" in details:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or [f"exit code {done.returncode}"]
        first = details.get("error", last)[0]
        return Check("run", MISSING, f"torch, torch_npu and custom_ops do not run: {first}", details={"stderr": done.stderr[-4000:]},
                     advice="the whole text is in `custom-ops doctor --json`")
    if not details["devices"]:
        return Check("run", MISSING, "torch_npu sees no device", "npu-smi info; ASCEND_RT_VISIBLE_DEVICES", details)
    found = f"npu:0 is {details['name']}, {details['memory'] / 2**30:.1f} GiB; {details['devices']} device(s)"
    if not details["op"]:
        return Check("run", MISSING, f"{found}, but npu_hc_pre_inv_rms on it differs from the CPU's", details=details)
    return Check("run", OK, f"{found}; npu_hc_pre_inv_rms on it agrees with the CPU", details=details)
