"""Modelled time of hc_post and hc_pre over T, drawn next to the published times: docs/ops/<operator>_modelled.{csv,svg}.

    python benchmarks/plot_modelled.py                   # everything again; T = 65536 takes minutes and 6 GB
    python benchmarks/plot_modelled.py --op hc_post --max-tokens 4096 --output /tmp
    python benchmarks/plot_modelled.py --redraw          # the pictures alone, of the .csv files

d = 4096, n = 4, bfloat16. The times are the timeline's, with the launch; none was measured on a device. "Bytes alone" is the time of every
input and output once at the HBM bandwidth of the SoC table. Needs matplotlib: pip install 'custom_ops[docs]'.
"""

import argparse
import csv
import time
from pathlib import Path

import matplotlib
import torch
from matplotlib.figure import Figure

import custom_ops
from custom_ops.sim import runtime

DOCS = Path(__file__).resolve().parents[1] / "docs" / "ops"
STREAMS, HIDDEN = 4, 4096
TOKENS = (*(2**i for i in range(15)), 65536)
CHIPS = {"ascend910_93": ("#2f7fd6", "o"), "ascend950": ("#d9730d", "s")}  # colours and greys that show on white and on black
PUBLISHED_COLOUR, GREY = "#a05fc0", "#808080"
STYLE = {"svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],
         **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY)}
COLUMNS = ("soc", "T", "modelled_us", "bytes")

#: T -> us of the published kernels on an A3, measured by their authors (facts on mHC, section 6.2).
PUBLISHED_ON = "ascend910_93"
PUBLISHED = {
    "hc_post": {8: 5.09, 16: 5.37, 32: 6.99, 64: 9.16, 128: 13.85, 4096: 319.86, 16384: 1264.68, 65536: 5044.53},
    "hc_pre": {16: 32.8, 32: 37, 64: 44, 128: 60, 4096: 1254.92, 16384: 4784.20, 65536: 18545.39},
}


def arguments(op: str, tokens: int) -> tuple[torch.Tensor, ...]:
    """The modelled time depends on shapes alone: zeros."""
    streams = torch.zeros(tokens, STREAMS, HIDDEN, dtype=torch.bfloat16)
    if op == "hc_post":
        return (torch.zeros(tokens, HIDDEN, dtype=streams.dtype), streams, torch.zeros(tokens, STREAMS),
                torch.zeros(tokens, STREAMS, STREAMS))
    mix = (2 + STREAMS) * STREAMS
    return streams, torch.zeros(mix, STREAMS * HIDDEN), torch.zeros(3), torch.zeros(mix)


def simulated(op: str, soc: str, tokens: int) -> dict:
    """One row of the table."""
    args = arguments(op, tokens)
    with custom_ops.simulate(soc, checks=False) as run:
        result = getattr(custom_ops, op)(*args)
    (call,) = run.calls
    tensors = (*args, *((result,) if isinstance(result, torch.Tensor) else result))
    return {"soc": soc, "T": tokens, "modelled_us": f"{call.modelled_us:.2f}", "bytes": sum(t.nbytes for t in tensors)}


def simulate(op: str, max_tokens: int) -> list[dict]:
    rows = []
    for soc in CHIPS:
        for tokens in (t for t in TOKENS if t <= max_tokens):
            start = time.perf_counter()
            rows.append(simulated(op, soc, tokens))
            print(f"{op} {soc} T={tokens}: modelled {rows[-1]['modelled_us']} us "
                  f"(simulated in {time.perf_counter() - start:.1f} s)", flush=True)
    return rows


def draw(op: str, rows: list[dict], picture: Path) -> None:
    """Time over T, and below it what share of the HBM bandwidth the bytes that nobody can avoid have."""
    matplotlib.rcParams.update({**STYLE, "svg.hashsalt": op})
    figure = Figure(figsize=(7.6, 6.2), layout="constrained")
    times, shares = figure.subplots(2, sharex=True, height_ratios=(3, 1.3))
    alone = {(row["soc"], row["T"]): row["bytes"] / runtime.find_soc(row["soc"])["hbmBytesPerSecond"] * 1e6 for row in rows}
    last = max(row["T"] for row in rows)

    def points(label: str, soc: str, us_of: dict[int, float], **style) -> None:
        times.plot(list(us_of), list(us_of.values()), label=label, **style)
        shares.plot(list(us_of), [100 * alone[soc, tokens] / us for tokens, us in us_of.items()], **style)

    for soc, (colour, marker) in CHIPS.items():
        modelled = {row["T"]: row["modelled_us"] for row in rows if row["soc"] == soc}
        points(f"this kernel, modelled on {soc}", soc, modelled, color=colour, marker=marker, markersize=4, linewidth=1.5)
    published = {tokens: us for tokens, us in PUBLISHED[op].items() if (PUBLISHED_ON, tokens) in alone}
    points("published kernel, measured by its authors on an A3", PUBLISHED_ON, published,
           color=PUBLISHED_COLOUR, marker="D", markersize=5, linestyle="none")
    for soc, (colour, _) in CHIPS.items():
        line = {tokens: us for (chip, tokens), us in alone.items() if chip == soc}
        times.plot(list(line), list(line.values()), color=colour, linewidth=1, linestyle="--", label=f"bytes alone on {soc}")
    for launch in {runtime.find_soc(soc)["launchSeconds"] * 1e6 for soc in CHIPS}:
        times.axhline(launch, color=GREY, linewidth=1, linestyle=":", label=f"launch, {launch:.0f} us")

    times.set(yscale="log", ylabel="us", ylim=(1, None), title=f"{op}, d = {HIDDEN}, n = {STREAMS}, bfloat16")
    times.set_xscale("log", base=2)
    times.legend(frameon=False, loc="upper left", fontsize=9)
    shares.set(ylabel="% of HBM bandwidth", ylim=(0, 105), xlabel="T, tokens", xticks=[4**i for i in range(9) if 4**i <= last])
    shares.xaxis.set_major_formatter("{x:.0f}")
    times.yaxis.set_major_formatter("{x:.0f}")
    for axes in (times, shares):
        axes.minorticks_off()
        axes.patch.set_visible(False)
        axes.grid(color=GREY, alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, transparent=True, metadata={"Date": None, "Creator": None})
    picture.write_text("\n".join(text.rstrip() for text in picture.read_text().splitlines()) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", choices=PUBLISHED, action="append", help="default: both")
    parser.add_argument("--max-tokens", type=int, default=TOKENS[-1], help="leave out larger T (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=DOCS, help="folder (default: docs/ops)")
    parser.add_argument("--redraw", action="store_true", help="simulate nothing, draw the .csv files of the output folder")
    options = parser.parse_args()
    for op in options.op or PUBLISHED:
        table = options.output / f"{op}_modelled.csv"
        if not options.redraw:
            rows = simulate(op, options.max_tokens)
            with table.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        with table.open(newline="") as file:
            rows = [{"soc": row["soc"], "T": int(row["T"]), "modelled_us": float(row["modelled_us"]), "bytes": int(row["bytes"])}
                    for row in csv.DictReader(file)]
        draw(op, rows, table.with_suffix(".svg"))
        print(f"written: {table.name}, {table.with_suffix('.svg').name}")


if __name__ == "__main__":
    main()
