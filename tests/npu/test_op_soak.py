"""soak.py with its full count: 10,000 launches, of which the simulator keeps the last 4,096 reports, so that the second half is flat."""

from pathlib import Path


def test_soak(run_script):
    code = (Path(__file__).parent / "soak.py").read_text().replace("Path(__file__)", f"Path({str(Path(__file__))!r})")
    assert "all results right" in run_script(code, "--timeout", "550")
