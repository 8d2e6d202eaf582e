"""python -m custom_ops.npu and what belongs to it, where torch_npu is not: a stand-in package for torch_npu and, for most cases, a
folder with empty libraries for CANN. What needs the real torch_npu is in tests/npu/test_launcher.py."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from custom_ops import _backend, _paths
from custom_ops.npu import __main__ as launcher
from custom_ops.npu import doctor as doctor_module
from custom_ops.npu import environment
from custom_ops.sim import compiler

LAUNCHER = ("-m", "custom_ops.npu")
CLEARED = ("LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH",
           "TORCH_DEVICE_BACKEND_AUTOLOAD", "CUSTOM_OPS_NPU_SOC", "CUSTOM_OPS_NPU_MEMORY", "CUSTOM_OPS_NPU_DEVICES")


@pytest.fixture(scope="session")
def empty_libraries(tmp_path_factory):
    """A folder with what libtorch_npu.so is linked to."""
    folder = tmp_path_factory.mktemp("cann") / "lib64"
    folder.mkdir()
    for name in _backend.LINKED:
        command = [*compiler.find().command, "-shared", "-x", "c++", os.devnull, "-o", str(folder / name)]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture
def with_torch_npu(tmp_path, monkeypatch):
    """torch_npu can be found, no CANN can."""
    package = tmp_path / "site" / "torch_npu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import torch\n")
    (package / "version.py").write_text("__version__ = '2.13.0'\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]))
    for name in CLEARED:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def with_cann(with_torch_npu, empty_libraries, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(empty_libraries))


def python(*arguments, cwd=None, stdin=None, **variables) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=900, cwd=cwd, input=stdin,
                          env={**os.environ, **variables})


STATE = """
import sys
print(sys.argv, __name__, globals().get("__file__"), sys.path[0], __package__, __doc__, __spec__ and __spec__.name,
      type(__loader__).__name__, __builtins__, sys.modules["__main__"].__dict__ is globals())
"""
PROGRAMS = {
    "state": '"""The doc."""' + STATE,
    "error": "def f():\n    return 1 / 0\n\nf()\n",
    "cause": "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no a') from error\n",
    "syntax error": "x = (1,\n",
    "exit code": "import sys\nsys.exit(3)\n",
    "exit text": "raise SystemExit('over')\n",
    "own excepthook": "import sys\nsys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_lineno)\nraise ValueError(1)\n",
    "interrupt": "print('before', flush=True)\nraise KeyboardInterrupt\n",
    "atexit": "import atexit\natexit.register(print, 'last')\nprint('first')\n",
    "pickle": "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "spawn": textwrap.dedent("""
        import multiprocessing
        def work(queue): queue.put(__name__)
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start(); print(queue.get()); process.join()
        """),
    "imports a neighbour": "import neighbour\nprint(neighbour.__file__)\n",
}


def assert_as_python(*arguments, cwd, stdin=None):
    """What comes out is what plain python gives."""
    plain, launched = python(*arguments, cwd=cwd, stdin=stdin), python(*LAUNCHER, *arguments, cwd=cwd, stdin=stdin)
    assert (launched.returncode, launched.stdout, launched.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return launched


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_runs_as_with_python(name, with_cann, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAMS[name])
    (folder / "neighbour.py").touch()
    done = assert_as_python("scripts/program.py", "--soc", "ascend950", "-m", "x y", cwd=tmp_path)
    if name == "interrupt":
        assert done.returncode == -signal.SIGINT and "custom_ops" not in done.stderr


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("spawn", "own excepthook")])
def test_a_module_runs_as_with_python(name, with_cann, tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "inner" / "__init__.py").touch()
    (package / "program.py").write_text(PROGRAMS[name])
    (package / "inner" / "__main__.py").write_text(PROGRAMS[name])
    (tmp_path / "neighbour.py").touch()
    launched, plain = (python(*how, "-m", module, "--report", "-c", cwd=tmp_path).stdout
                       for how in (LAUNCHER, ()) for module in ("package.inner",))
    assert launched == plain
    done, plain = (python(*how, "-m", "package.program", "--report", cwd=tmp_path) for how in (LAUNCHER, ()))
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    # Plain python's own frames (runpy) come first in its traceback; ours has none.
    assert done.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:] and "runpy" not in done.stderr


@pytest.mark.parametrize("name", ["state", "error", "exit code"])
def test_code_stdin_folders_and_archives_run_as_with_python(name, with_cann, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(PROGRAMS[name])
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", PROGRAMS[name])
    for arguments in (("-c", PROGRAMS[name], "a"), ("-", "a")):
        assert_as_python(*arguments, cwd=tmp_path, stdin=PROGRAMS[name])
    for place in ("folder", "archive.pyz"):
        launched, plain = (python(*how, place, "a", cwd=tmp_path) for how in (LAUNCHER, ()))
        assert (launched.returncode, launched.stdout) == (plain.returncode, plain.stdout)


@pytest.mark.parametrize("arguments", [("nowhere.py",), ("-m", "nowhere"), ("-m", "json"), ("-m", "nowhere.at.all"), (".",)], ids=str)
def test_what_cannot_be_run_is_refused_in_pythons_words(arguments, with_cann, tmp_path):
    launched, plain = (python(*how, *arguments, cwd=tmp_path) for how in (LAUNCHER, ()))
    assert launched.returncode == plain.returncode
    words = plain.stderr.removeprefix(f"{sys.executable}: ")
    assert launched.stderr == f"python -m custom_ops.npu: {words}"


@pytest.mark.parametrize("argv, kind, target, rest", [
    (["a.py", "-m", "b"], "script", "a.py", ["-m", "b"]),
    (["--soc", "ascend950", "a.py", "--soc", "x"], "script", "a.py", ["--soc", "x"]),
    (["--soc=ascend950", "--no-checks", "-m", "m", "--report"], "module", "m", ["--report"]),
    (["--report", "--trace", "-", "-mm", "x"], "module", "m", ["x"]),
    (["-cprint()", "-c"], "code", "print()", ["-c"]),
    (["-", "x"], "script", "-", ["x"]),
], ids=str)
def test_options_end_at_what_is_run(argv, kind, target, rest):
    assert launcher.parse(argv, "prog")[1:] == (kind, target, rest)


@pytest.mark.parametrize("argv, says", [
    ([], "nothing to run"), (["-m"], "argument expected for the -m option"), (["--soc"], "--soc: expected one argument"),
    (["--sock", "a.py"], "unrecognized arguments: --sock"), (["--devices", "two", "a.py"], "invalid int value: 'two'"),
], ids=str)
def test_wrong_options_are_refused(argv, says, capsys):
    with pytest.raises(SystemExit) as exit:
        launcher.parse(argv, "prog")
    assert exit.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("text, size", [("8GB", 8 << 30), ("512mb", 512 << 20), ("1.5 GiB", 3 << 29), ("4096", 4096), ("2K", 2048)])
def test_memory_sizes(text, size):
    assert environment.memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "8 GBit", "-1GB", "lots", "1e9"])
def test_memory_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="memory must be a size like 8GB"):
        environment.memory_bytes(text)


@pytest.mark.parametrize("options, says", [
    (("--soc", "ascend920"), "soc 'ascend920' is not known; families are ascend910b"),
    (("--memory", "lots"), "memory must be a size like 8GB"),
    (("--devices", "0"), "devices must be 1 to 64, got 0"),
], ids=str)
def test_wrong_values_are_refused_before_anything_runs(options, says, with_torch_npu):
    done = python(*LAUNCHER, *options, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr and "Traceback" not in done.stderr


def test_without_torch_npu_it_says_what_to_install():
    for arguments in (LAUNCHER, ("-m", "custom_ops.cli", "run")):
        done = python(*arguments, "-c", "print('ran')", PYTHONNOUSERSITE="1")
        assert done.returncode == 2 and "pip install 'custom_ops[npu]'" in done.stderr and not done.stdout


ENVIRONMENT = """
import os, sys, json, ctypes, subprocess
names = [n for n in os.environ if n.startswith(("ASCEND", "CUSTOM_OPS_NPU", "LD_LIBRARY"))]
ctypes.CDLL("libascendcl.so")
print(json.dumps({n: os.environ[n] for n in names} | {"modules": [m for m in sys.modules if m.startswith(("custom_ops", "torch"))]}))
"""


def test_simulated_environment_is_inherited(with_torch_npu, tmp_path):
    mine = tmp_path / "mine"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ENVIRONMENT!r}], check=True)"
    for code in (ENVIRONMENT, child):
        done = python(*LAUNCHER, "--soc", "ascend950", "--memory", "2GB", "--devices", "2", "--no-checks", "-c", code,
                      ASCEND_CUSTOM_OPP_PATH=str(mine))
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["modules"] == []  # the user's `import custom_ops` is the first one
        assert seen["LD_LIBRARY_PATH"].split(":")[0] == str(environment.STAND_INS)
        assert [seen[f"CUSTOM_OPS_NPU_{n}"] for n in ("SOC", "MEMORY", "DEVICES", "CHECKS")] == ["ascend950", str(2 << 30), "2", "0"]
        first, own = seen["ASCEND_CUSTOM_OPP_PATH"].split(":")
        assert first == str(mine) and (Path(own) / "op_api" / "lib" / "libcust_opapi.so").is_file()
        assert (Path(own) / "kernel" / "regbase").is_dir()
        assert all((Path(seen["ASCEND_HOME_PATH"]) / part).is_dir() for part in ("runtime", "compiler", "opp", "lib64"))


def test_real_cann_is_used_as_it_is(with_cann, empty_libraries):
    done = python(*LAUNCHER, "-c", ENVIRONMENT)
    seen = json.loads(done.stdout)
    assert done.stderr == "" and seen == {"LD_LIBRARY_PATH": str(empty_libraries), "modules": []}
    done = python(*LAUNCHER, "--soc", "ascend950", "--report", "-c", "")
    assert done.returncode == 0 and "is used; --soc, --report: of the simulated NPU only" in done.stderr
    done = python(*LAUNCHER, "--simulate", "-c", ENVIRONMENT)
    assert json.loads(done.stdout)["LD_LIBRARY_PATH"] == f"{environment.STAND_INS}:{empty_libraries}"


@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
def test_cann_that_the_loader_does_not_find(variable, with_torch_npu, empty_libraries):
    where = {variable: str(empty_libraries.parent)}
    done = python(*LAUNCHER, "-c", "", **where)
    assert done.returncode == 2 and f"CANN is in {empty_libraries} (by {variable})" in done.stderr
    assert f"export LD_LIBRARY_PATH={empty_libraries}:$LD_LIBRARY_PATH" in done.stderr and "set_env.sh" not in done.stderr


def test_cann_with_a_script_of_its_own(with_torch_npu, empty_libraries, tmp_path):
    (tmp_path / "cann").mkdir()
    (tmp_path / "cann" / "lib64").symlink_to(empty_libraries)
    (tmp_path / "cann" / "set_env.sh").touch()
    done = python("-m", "custom_ops.cli", "doctor", "--no-run", ASCEND_HOME_PATH=str(tmp_path / "cann"))
    assert done.returncode == 1 and f"source {tmp_path}/cann/set_env.sh" in done.stdout


# `import custom_ops` where torch-npu is installed without its libraries
def test_import_waits_where_torch_cannot_be_imported(with_torch_npu):
    done = python("-c", "import sys, custom_ops; print('torch' in sys.modules, 'hc_post' in dir(custom_ops)); custom_ops.hc_pre_inv_rms")
    assert done.stdout == "False True\n"
    assert "torch cannot be imported here" in done.stderr and "TORCH_DEVICE_BACKEND_AUTOLOAD=0 python SCRIPT" in done.stderr
    for module in ("nn", "functional", "ops.hc_post", "reference"):
        done = python("-c", f"try:\n    import custom_ops.{module}\nexcept ImportError:\n    import custom_ops.{module}")
        assert done.stderr.count("ImportError: torch cannot be imported here") == 2, done.stderr
    done = python("-c", "import custom_ops, torch; print(torch.ops.custom.npu_hc_pre_inv_rms(torch.ones(2, 4, 8)).shape)",
                  TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.stdout == "torch.Size([2, 1])\n", done.stderr


def test_import_after_torch_has_failed(with_torch_npu, tmp_path):
    """As in a notebook: torch cannot be imported twice. torch_npu's own import takes autoloading out of the environment."""
    (tmp_path / "site" / "torch_npu" / "__init__.py").write_text("""
import os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
def start(): raise ImportError("libhccl.so: cannot open shared object file")
""")
    metadata = tmp_path / "site" / "torch_npu-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-npu\nVersion: 2.13.0\n")
    (metadata / "entry_points.txt").write_text("[torch.backends]\ntorch_npu = torch_npu:start\n")
    done = python("-c", "try:\n    import torch\nexcept RuntimeError as e:\n    print(e)\nimport custom_ops\ncustom_ops.hc_post")
    assert "Failed to load the backend extension: torch_npu" in done.stdout
    assert "ImportError: importing torch has failed in this process" in done.stderr and "custom-ops run SCRIPT" in done.stderr


@pytest.mark.parametrize("module", ["nn", "functional", "reference", "ops"])
def test_modules_that_waited_for_torch(module, with_torch_npu):
    """custom_ops was imported before the libraries were there; its modules register the operators."""
    done = python("-c", f"""
import os, custom_ops
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import custom_ops.{module} as module
import sys, torch
assert module is sys.modules["custom_ops.{module}"] is custom_ops.{module}
print(torch.ops.custom.npu_hc_pre_inv_rms(torch.ones(2, 4, 8)).shape, custom_ops.hc_post.__module__)
""")
    assert done.stdout == "torch.Size([2, 1]) custom_ops.functional\n", done.stderr


def test_command_line_does_not_import_torch():
    code = """
import runpy, sys
sys.argv = ["custom-ops", "--help"]
try:
    runpy.run_module("custom_ops.cli", run_name="__main__")
except SystemExit:
    print("torch" in sys.modules)
"""
    assert python("-c", "import sys; sys.argv[0] = 'custom-ops'\n" + code).stdout.splitlines()[-1] == "False"


# `custom-ops run`
def test_custom_ops_run_is_the_launcher(with_cann, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAMS["state"])
    launched, plain = (python(*how, "program.py", "--report", cwd=tmp_path) for how in (("-m", "custom_ops.cli", "run"), ()))
    assert (launched.returncode, launched.stdout) == (0, plain.stdout)
    done = python("-m", "custom_ops.cli", "run", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: custom-ops run [options] script.py")


# `custom-ops doctor`
def doctor(**variables):
    done = python("-m", "custom_ops.cli", "doctor", "--json", "--no-run", **variables)
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_doctor_without_torch_npu():
    code, checks = doctor()
    assert code == 1 and checks["torch"]["state"] == "ok"
    assert checks["torch_npu"]["state"] == "missing" and "custom_ops[npu]" in checks["torch_npu"]["advice"]


def test_doctor_with_the_simulator(with_torch_npu):
    _, checks = doctor(CUSTOM_OPS_NPU_SOC="ascend950", CUSTOM_OPS_NPU_MEMORY="2GB")
    assert checks["torch_npu"]["state"] == "ok"
    assert checks["CANN"]["state"] == "note" and "simulator" in checks["CANN"]["found"]
    assert set(checks["libraries"]["details"]) == set(_backend.LINKED)
    assert checks["SoC"]["details"]["family"] == "ascend950" and checks["device memory"]["details"]["bytes"] == 2 << 30
    assert checks["compiler"]["state"] == "ok"


def test_doctor_with_cann(with_cann, empty_libraries, tmp_path):
    _, checks = doctor(ASCEND_CUSTOM_OPP_PATH=str(tmp_path))
    assert checks["CANN"]["state"] == "ok" and str(empty_libraries) in checks["CANN"]["found"]
    assert "SoC" not in checks
    assert checks["op package"]["state"] == "note" and str(tmp_path) in checks["op package"]["found"]


def test_doctor_sees_packages_that_are_none(with_torch_npu, empty_libraries, tmp_path):
    for name, content in ("text", b"no library"), ("package", (empty_libraries / _backend.LINKED[0]).read_bytes()):
        library = tmp_path / name / "op_api" / "lib" / "libcust_opapi.so"
        library.parent.mkdir(parents=True)
        library.write_bytes(content)
    for name, state, says in ("text", "note", "is no library"), ("package", "ok", "operators of a CANN package"):
        _, checks = doctor(ASCEND_CUSTOM_OPP_PATH=str(tmp_path / name))
        assert checks["op package"]["state"] == state and says in checks["op package"]["found"]


@pytest.mark.parametrize("variables, name", [({"CUSTOM_OPS_NPU_SOC": "ascend920"}, "SoC"), ({"CUSTOM_OPS_NPU_MEMORY": "x"}, "SoC"),
                                             ({"CXX": "no-such-compiler"}, "compiler")], ids=str)
def test_doctor_says_what_is_missing(variables, name, with_torch_npu):
    code, checks = doctor(**variables)
    assert code == 1 and checks[name]["state"] == "missing" and checks[name]["advice"]


def test_doctor_without_stand_ins(with_torch_npu, tmp_path):
    for library in _paths.LIBRARY_DIR.glob("*.so"):
        (tmp_path / library.name).symlink_to(library)
    code, checks = doctor(CUSTOM_OPS_LIB_DIR=str(tmp_path))
    assert code == 1 and checks["libraries"]["state"] == "missing" and "libascendcl.so" in checks["libraries"]["found"]


def test_doctor_sees_versions_that_do_not_match(with_torch_npu, tmp_path):
    (tmp_path / "site" / "torch_npu" / "version.py").write_text("__version__ = '2.1.0.post3'\n")
    code, checks = doctor()
    assert code == 1 and checks["torch_npu"]["advice"] == "pip install torch==2.1.0"


def test_doctor_says_what_torch_npu_failed_of(with_torch_npu, tmp_path):
    """Not the last words of the chain of errors, which are the same for every reason."""
    (tmp_path / "site" / "torch_npu" / "__init__.py").write_text(textwrap.dedent("""
        try:
            raise ImportError("libascendcl.so: undefined symbol: aclInit")
        except ImportError as error:
            raise RuntimeError("Failed to load the backend extension: torch_npu") from error
        """))
    check = doctor_module._probe(environment.Cann(tmp_path, "LD_LIBRARY_PATH", True))
    assert check.state == "missing" and "ImportError: libascendcl.so: undefined symbol: aclInit" in check.found
    assert "Failed to load the backend extension" in check.details["stderr"]


# pytest -p custom_ops.npu
SUITE = """
import os, ctypes
def test_one():
    ctypes.CDLL("libascendcl.so")
    assert os.environ["CUSTOM_OPS_NPU_SOC"] == "ascend950"
def test_two():
    test_one()
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["", "xdist"])
def test_pytest_plugin(options, with_torch_npu, tmp_path):
    (tmp_path / "conftest.py").write_text("import ctypes\nctypes.CDLL('libascendcl.so')\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = python("-m", "pytest", "-p", "custom_ops.npu", "--npu-soc", "ascend950", "--npu-report", *options, "test_suite.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "npu: simulated ascend950" in done.stdout and "2 passed" in done.stdout
    assert "no kernel was launched on the simulated NPU" in done.stdout


def test_pytest_plugin_refuses(with_torch_npu, tmp_path):
    done = python("-m", "pytest", "-p", "custom_ops.npu", "--npu-soc", "ascend920", cwd=tmp_path)
    assert done.returncode == 4 and "soc 'ascend920' is not known" in done.stderr


def test_looking_for_a_module_is_not_importing_it(tmp_path, monkeypatch):
    """import custom_ops looks whether there is a torch_npu, and what waits for it must go on waiting."""
    (tmp_path / "awaited_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    called = []
    _backend.after_import("awaited_module", lambda: called.append("first"))
    _backend.after_import("awaited_module", lambda: called.append("second"))
    assert importlib.util.find_spec("awaited_module") and importlib.util.find_spec("awaited_module") and not called
    module = importlib.import_module("awaited_module")
    importlib.reload(module)
    assert sorted(called) == ["first", "second"]
    assert not [finder for finder in sys.meta_path if getattr(finder, "name", None) == "awaited_module"]
