"""Runs a script, a module or a piece of code as `python` itself does: __main__, sys.argv, sys.path[0], exit codes, tracebacks."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Sequence
from types import CodeType


class CannotRun(Exception):
    """There is nothing to run; `code` is the exit code that python gives."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


def run(kind: str, target: str, arguments: Sequence[str]) -> None:
    """`kind` is "script" (a file, a folder or archive with __main__.py, or - for stdin), "module" or "code"."""
    find = {"script": _script, "module": _module, "code": _code}[kind]
    sys.argv = [{"script": target, "module": "-m", "code": "-c"}[kind], *arguments]
    main = types.ModuleType("__main__")
    main.__builtins__, main.__loader__ = sys.modules["builtins"], importlib.machinery.BuiltinImporter
    code = None
    try:
        code = find(main, target)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except (SystemExit, CannotRun):
        raise
    except BaseException:
        _hide_frames_above(code)
        raise


def _script(main: types.ModuleType, target: str) -> CodeType:
    if target == "-":
        _first_on_path("")
        main.__file__, main.__cached__ = "<stdin>", None
        return compile(sys.stdin.read(), "<stdin>", "exec")
    path = os.path.abspath(target)
    if (importer := pkgutil.get_importer(path)) is not None:  # a folder or an archive
        sys.path.insert(0, path) if sys.flags.safe_path else _first_on_path(path)
        spec = importer.find_spec("__main__")
        if spec is None:
            raise CannotRun(f"can't find '__main__' module in {path!r}", 1)
        return _become(main, spec)
    _first_on_path(os.path.dirname(os.path.realpath(target)))
    main.__file__, main.__cached__ = path, None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    try:
        with open(path, "rb") as file:
            code = pkgutil.read_code(file)  # of a .pyc
            if code is None:
                file.seek(0)
                code = compile(file.read(), path, "exec")
    except OSError as error:
        raise CannotRun(f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    return code


def _module(main: types.ModuleType, target: str) -> CodeType:
    name = target
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError) as error:
        raise CannotRun(f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})", 1) from None
    if spec is None or spec.loader is None:
        package = f"; {target!r} is a package and cannot be directly executed" if name != target else ""
        raise CannotRun(f"No module named {name}{package}", 1)
    sys.argv[0] = spec.origin
    return _become(main, spec)


def _code(main: types.ModuleType, target: str) -> CodeType:
    _first_on_path("")
    return compile(target, "<string>", "exec")


def _become(main: types.ModuleType, spec: importlib.machinery.ModuleSpec) -> CodeType:
    code = spec.loader.get_code(spec.name)
    if code is None:
        raise CannotRun(f"No code object available for {spec.name}", 1)
    main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
    main.__file__, main.__cached__ = spec.origin, spec.cached
    return code


def _first_on_path(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _hide_frames_above(code: CodeType | None) -> None:
    """What reports the error that is on its way shows it from the user's first frame on, as if nothing had been above."""
    shown = sys.excepthook

    def excepthook(kind, error, trace):
        below = trace
        while below is not None and below.tb_frame.f_code is not code:
            below = below.tb_next
        shown(kind, error.with_traceback(below), below)

    sys.excepthook = excepthook
