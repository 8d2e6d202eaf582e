"""pytest -p custom_ops.npu: the tests run with an NPU, as under `python -m custom_ops.npu`; with xdist its workers do too.

The workers inherit the environment, and with it the stand-ins, before they import anything.
"""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace

import pytest

_KEY = pytest.StashKey()
_OPTIONS = ("soc", "devices", "memory", "no_checks", "report", "trace", "simulate")


def pytest_addoption(parser):
    from .__main__ import add_options

    add_options(parser.getgroup("npu", "the NPU of custom_ops (simulated where there is no CANN)").addoption, "--npu-")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Before any conftest.py can import torch."""
    _start(early_config, early_config.known_args_namespace)


def pytest_configure(config):
    if hasattr(config, "workerinput"):  # of xdist: the plugin comes after the conftests there
        _start(config, config.option)


def _start(config, given) -> None:
    from . import session

    options = SimpleNamespace(**{name: getattr(given, f"npu_{name}") for name in _OPTIONS})
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():  # the first build shows its progress
            config.stash[_KEY] = session.start(options, report_at_exit=False)
    except (RuntimeError, ValueError, OSError) as error:
        raise pytest.UsageError(f"custom_ops.npu: {error}") from None
    session.forget_imports()


def pytest_report_header(config):
    from . import environment

    if environment.simulated():
        return f"npu: simulated {environment.soc_name()}"
    cann = environment.find_cann()
    return f"npu: CANN in {cann.folder}" if cann else None


def pytest_sessionfinish(session):
    collector = session.config.stash.get(_KEY, None)
    if collector is None:
        return
    collector.take()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["npu"] = [use.to_dict() for use in collector.ops.values()]
    if collector.trace:
        stem, suffix = os.path.splitext(collector.trace)
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        collector.save(f"{stem}-{worker}{suffix}" if worker else collector.trace)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    collector = node.config.stash.get(_KEY, None)
    if collector is not None:
        collector.merge(getattr(node, "workeroutput", {}).get("npu", ()))


def pytest_terminal_summary(terminalreporter, config):
    collector = config.stash.get(_KEY, None)
    if collector is not None and collector.report:
        terminalreporter.section("simulated NPU")
        terminalreporter.write_line(collector.table())
