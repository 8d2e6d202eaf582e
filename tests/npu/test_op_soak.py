"""A short run of soak.py; its full count, 10,000 launches, is part of benchmarks/bench_npu.py."""

from pathlib import Path


def test_soak(run_script):
    code = (Path(__file__).parent / "soak.py").read_text().replace("Path(__file__)", f"Path({str(Path(__file__))!r})")
    assert "all results right" in run_script(code, "--launches", "600", "--timeout", "300")
