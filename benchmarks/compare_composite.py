"""Modelled time of hc_pre against what it replaces: npu_hc_pre_inv_rms, a matrix product and npu_hc_pre_sinkhorn, three launches.

    python benchmarks/compare_composite.py                                 # everything
    python benchmarks/compare_composite.py --soc ascend950 --dtype float32

The product is of the high-level Matmul object (tests/sim/ops/matmul) and as accurate as hc_pre's: of float32 x and hc_fn, or with 16-bit x
of x and the three terms of its type that hc_fn is the sum of, whichever is faster. To make 16-bit x float32 is counted as a launch and
its bytes at the bandwidth, the least that it can take; to make the terms and add the three results is not. Rows longer than the Matmul
object takes (65535) are products of pieces, all in one launch, whose results nobody adds. Nothing was measured on a device. The ratio of
the three launches to the one is printed; the exit code is 1 if one is below 1.
"""

import argparse
import sys
from pathlib import Path

import torch

import custom_ops
from custom_ops.sim import runtime

MATMUL = Path(__file__).resolve().parents[1] / "tests" / "sim" / "ops" / "matmul"
SOCS = ("ascend910_93", "ascend910b", "ascend950")
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
#: (n, d): published sizes, small and odd ones, the largest n, and rows too long for the stride of a copy into the cube cores
SHAPES = ((4, 4096), (4, 7168), (4, 1280), (2, 2048), (1, 256), (5, 777), (8, 2048), (16, 1024), (4, 16400), (16, 4099))
TOKENS = (1, 8, 16, 48, 129, 520, 1024, 3073, 4096)
LONGEST_ROW = 65535  # elements, of an operand of a Matmul object
LARGEST = 2**25  # elements of x: larger ones take minutes each


def fused_us(soc: str, tokens: int, n: int, d: int, dtype: torch.dtype) -> float:
    """Microseconds of npu_hc_pre, as all times here modelled and with the launch."""
    mix = (2 + n) * n
    with custom_ops.simulate(soc, checks=False) as run:
        custom_ops.hc_pre(torch.zeros(tokens, n, d, dtype=dtype), torch.zeros(mix, n * d), torch.zeros(3), torch.zeros(mix), hc_mult=n)
    return run.modelled_us


def product_us(soc: str, rows: int, columns: int, depth: int, dtype: torch.dtype) -> float:
    matmul = custom_ops.sim.build(MATMUL, soc=soc, ops=["MatmulPlain"]).with_options(checks=False)
    pieces, launch = -(-depth // LONGEST_ROW), runtime.find_soc(soc)["launchSeconds"] * 1e6
    piece = -(-depth // pieces)
    matmul(torch.zeros(rows, piece, dtype=dtype), torch.zeros(columns, piece, dtype=dtype))
    return launch + (matmul.report.modelled_us - launch) * pieces


def widened_us(soc: str, elements: int) -> float:
    """Least microseconds of a launch that makes 16-bit numbers float32."""
    chip = runtime.find_soc(soc)
    return (chip["launchSeconds"] + elements * (2 + 4) / chip["hbmBytesPerSecond"]) * 1e6


def parts_us(soc: str, tokens: int, n: int, d: int, dtype: torch.dtype) -> tuple[float, float, float]:
    """Microseconds of inv_rms, product and sinkhorn."""
    mix = (2 + n) * n
    x = torch.zeros(tokens, n, d, dtype=dtype)
    product = product_us(soc, tokens, mix, n * d, torch.float32)
    if dtype != torch.float32: product = min(product + widened_us(soc, x.numel()), product_us(soc, tokens, 3 * mix, n * d, dtype))
    with custom_ops.simulate(soc, checks=False) as run:
        rsqrt = custom_ops.hc_pre_inv_rms(x)
        custom_ops.hc_pre_sinkhorn(torch.zeros(tokens, mix), rsqrt, torch.zeros(3), torch.zeros(mix), x, hc_mult=n)
    inv_rms, sinkhorn = run.calls
    return inv_rms.modelled_us, product, sinkhorn.modelled_us


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--soc", choices=SOCS, action="append", help="default: all three")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="of x; default: all three")
    parser.add_argument("--tokens", type=int, action="append", help=f"default: {', '.join(map(str, TOKENS))}")
    parser.add_argument("--shape", type=lambda text: tuple(map(int, text.split(","))), action="append", metavar="n,d",
                        help="default: " + " ".join(f"{n},{d}" for n, d in SHAPES))
    options = parser.parse_args()
    least = {}
    print("| soc | x | n | d | T | hc_pre us | inv_rms + product + sinkhorn us | ratio |\n" + "| --- " * 8 + "|")
    for soc in options.soc or SOCS:
        for dtype in options.dtype or DTYPES:
            for n, d in options.shape or SHAPES:
                for tokens in options.tokens or TOKENS:
                    if tokens * n * d > LARGEST: continue
                    case = soc, tokens, n, d, DTYPES[dtype]
                    one, three = fused_us(*case), parts_us(*case)
                    ratio = sum(three) / one
                    least = min(least, (ratio, *case)) if least else (ratio, *case)
                    parts = " + ".join(f"{us:.1f}" for us in three)
                    print(f"| {soc} | {dtype} | {n} | {d} | {tokens} | {one:.1f} | {parts} | {ratio:.2f} |", flush=True)
    print(f"least ratio {least[0]:.2f}: T = {least[2]}, n = {least[3]}, d = {least[4]}, {least[5]} on {least[1]}", file=sys.stderr)
    return 0 if least[0] >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
