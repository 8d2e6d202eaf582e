"""What the simulator's library and all that is compiled against its headers have in common: one symbol, named by a hash of the headers.

The library defines it, and every compiled kernel and op_host library refers to it. So a kernel that was built for other headers
does not link, and one that was built earlier is not loaded, where the two would disagree about the layout of an object.

    python abi.py definition|reference SOURCE_ROOT OUT.cpp        (the build of the library; nothing here needs the package)
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

PREFIX = "custom_ops_sim_abi_"
_FOLDERS = ("sim/core", "sim/host/include", "sim/opapi/include")  # what kernels and op_host code see
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)


def symbol(root: Path) -> str:
    """Comments and indentation do not count."""
    digest = hashlib.sha256()
    headers = {path.relative_to(root).as_posix(): path for folder in _FOLDERS for path in (root / folder).rglob("*.h")}
    for name, path in sorted(headers.items()):
        for data in (name.encode(), b" ".join(_COMMENT.sub(b" ", path.read_bytes()).split())):
            digest.update(len(data).to_bytes(8, "little") + data)
    return PREFIX + digest.hexdigest()[:16]


def definition(name: str) -> str:
    return f'extern "C" const char {name};\nconst char {name} = 1;\n'


def reference(name: str) -> str:
    """A pointer that the loader has to fill in before it hands out the library."""
    return f'extern "C" const char {name};\n__attribute__((used)) static const char* const builtFor = &{name};\n'


if __name__ == "__main__":
    what, root, output = sys.argv[1:]
    Path(output).write_text({"definition": definition, "reference": reference}[what](symbol(Path(root))))
