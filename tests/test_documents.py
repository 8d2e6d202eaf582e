"""What README and docs tell a reader to type works as written."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.S)


def run(code: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_readme_example(tmp_path):
    example = next(block for block in blocks("README.md", "python") if "simulate" in block)
    done = run(example, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "HcPreSinkhorn" in done.stdout and (tmp_path / "sinkhorn.json").stat().st_size > 0


def test_write_a_kernel(tmp_path):
    broken, mended = blocks("docs/write-a-kernel.md", "cpp")
    launch, adversarial, profile = blocks("docs/write-a-kernel.md", "python")
    kernel = tmp_path / "twice_plus_one.cpp"

    kernel.write_text(broken)
    done = run(launch, tmp_path)
    printed = re.search(r"((?:    .*\n|\n)+)\nEach report", (ROOT / "docs/write-a-kernel.md").read_text()).group(1)
    for line in filter(None, (line.strip() for line in printed.splitlines())):
        assert line in done.stderr, f"the document shows\n{line}\nbut the launch printed\n{done.stderr}"

    setup = launch[: launch.index("report =")]
    assert run(setup + adversarial, tmp_path).stdout.splitlines()[-1] == "False"

    kernel.write_text(mended)
    done = run(launch + "assert report.findings == [] and np.array_equal(y, 2 * (x + 1))\n" + profile, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MTE2" in done.stdout and (tmp_path / "trace.json").is_file()
