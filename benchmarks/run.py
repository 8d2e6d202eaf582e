"""All benchmarks in one run: `./build.sh bench`. Measured wall-clock times of this machine, compared side by side as ratios."""

import runpy
from pathlib import Path

HERE = Path(__file__).resolve().parent

for name in ("bench_native.py", "bench_linear_attention.py", "bench_decode.py", "bench_simulator.py", "bench_npu.py"):
    print(f"\n=== {name}", flush=True)
    runpy.run_path(str(HERE / name), run_name="__main__")
