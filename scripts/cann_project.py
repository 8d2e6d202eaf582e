#!/usr/bin/env python3
"""Stage a custom-op project for the CANN toolkit from op_host/ and op_kernel/.

The toolkit's project template (CMake rules, packaging scripts) comes from the toolkit itself; it expects all sources
flat in op_host/ and op_kernel/. Our operators lie one folder deeper, so each flat file is a one-line include of ours and
the sources themselves are copied unchanged. Parser plugins for ATC go where the template has them, in framework/onnx_plugin/.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = Path("tools/op_project_templates/ascendc/customize")
VENDOR = "custom_ops"
FAMILIES = ("ascend910b", "ascend910_93", "ascend950")


def operators(selection: str | None) -> list[str]:
    """Operator folders to stage; ValueError names the known ones."""
    known = sorted(p.name for p in (ROOT / "op_host").iterdir() if list(p.glob("*_def.cpp")))
    wanted = selection.split(",") if selection else known
    unknown = [op for op in wanted if op not in known]
    if unknown:
        raise ValueError(f"--ops: no operator {', '.join(unknown)}; there are: {', '.join(known)}")
    return wanted


def compute_units(names: str) -> list[str]:
    """SoC families; ValueError names the known ones."""
    unknown = [name for name in names.split(",") if name not in FAMILIES]
    if unknown:
        raise ValueError(f"--soc: no {', '.join(unknown)}; the operators are configured for {', '.join(FAMILIES)}")
    return names.split(",")


def stage_plugins(target: Path, headers: Path | None) -> None:
    """framework/onnx as the template's framework/onnx_plugin, and the lines that lead CMake there where the template has none.

    headers: folder that holds nlohmann/json.hpp; None: the system's is used.
    """
    framework = target / "framework"
    shutil.rmtree(framework, ignore_errors=True)
    shutil.copytree(ROOT / "framework" / "onnx", framework / "onnx_plugin")
    if headers is not None:
        shutil.copytree(headers / "nlohmann", framework / "onnx_plugin" / "include" / "nlohmann")
    (framework / "CMakeLists.txt").write_text("add_subdirectory(onnx_plugin)\n")
    top = target / "CMakeLists.txt"
    text = top.read_text() if top.is_file() else ""
    if not re.search(r"add_subdirectory\(\s*(\$\{CMAKE_CURRENT_SOURCE_DIR\}/)?framework\b", text):
        top.write_text(text.rstrip("\n") + "\nadd_subdirectory(framework)\n")


def stage(cann: Path, target: Path, socs: list[str], ops: list[str], headers: Path | None) -> None:
    """Write the project to `target`, replacing what an earlier call left there. headers: see stage_plugins."""
    template = cann / TEMPLATE
    if not template.is_dir():
        raise FileNotFoundError(
            f"{template} is missing: ASCEND_HOME_PATH must name an installed CANN toolkit with its operator development "
            "package; unset it to build for the simulator"
        )
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(template, target)
    for side in ("op_host", "op_kernel"):
        folder = target / side
        folder.mkdir(exist_ok=True)
        for stale in list(folder.glob("*.cpp")) + list(folder.glob("*.h")):
            stale.unlink()
        for name in ["common", *ops]:
            source = ROOT / side / name
            if not source.is_dir():
                continue
            shutil.copytree(source, folder / name)
            for cpp in sorted(source.glob("*.cpp")):
                (folder / cpp.name).write_text(f'#include "{name}/{cpp.name}"\n')
    if "fused_linear_attention" in ops:  # the operator that the plugins make
        stage_plugins(target, headers)
    presets = {
        "version": 1,
        "cmakeMinimumRequired": {"major": 3, "minor": 19, "patch": 0},
        "configurePresets": [
            {
                "name": "default",
                "generator": "Unix Makefiles",
                "binaryDir": "${sourceDir}/build_out",
                "cacheVariables": {
                    "CMAKE_BUILD_TYPE": {"type": "STRING", "value": "Release"},
                    "ENABLE_SOURCE_PACKAGE": {"type": "BOOL", "value": "True"},
                    "ENABLE_BINARY_PACKAGE": {"type": "BOOL", "value": "True"},
                    "ASCEND_COMPUTE_UNIT": {"type": "STRING", "value": ";".join(socs)},
                    "ENABLE_TEST": {"type": "BOOL", "value": "False"},
                    "vendor_name": {"type": "STRING", "value": VENDOR},
                    "ASCEND_CANN_PACKAGE_PATH": {"type": "PATH", "value": str(cann)},
                    "ASCEND_PYTHON_EXECUTABLE": {"type": "STRING", "value": "python3"},
                    "CMAKE_INSTALL_PREFIX": {"type": "PATH", "value": "${sourceDir}/build_out"},
                    "ENABLE_CROSS_COMPILE": {"type": "BOOL", "value": "False"},
                },
            }
        ],
    }
    (target / "CMakePresets.json").write_text(json.dumps(presets, indent=4) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="folder to write the project to; its content is replaced")
    parser.add_argument("--soc", default="ascend910b", help="compute units, joined by commas")
    parser.add_argument("--ops", help="operator folders, joined by commas; default: all")
    parser.add_argument("--json", type=Path, help="folder that holds nlohmann/json.hpp, for the parser plugins; default: the system's")
    options = parser.parse_args()
    home = os.environ.get("ASCEND_HOME_PATH")
    try:
        if not home:
            raise FileNotFoundError("ASCEND_HOME_PATH is unset: it must name the installed CANN toolkit")
        stage(Path(home), options.target, compute_units(options.soc), operators(options.ops), options.json)
    except (FileNotFoundError, ValueError) as error:
        print(f"cann_project: {error}", file=sys.stderr)
        return 1
    print(f"staged {options.target} for {options.soc}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
