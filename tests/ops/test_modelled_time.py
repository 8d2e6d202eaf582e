"""The timeline's own check: modelled times of hc_post and hc_pre over T, against what launch and bytes allow and what the pages print."""

import csv
import functools
import importlib
import re
from pathlib import Path

import pytest
import torch
from inputs import post_inputs, pre_inputs

import custom_ops
from custom_ops.sim import runtime

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "ops"
SOCS = ("ascend910_93", "ascend950")
INPUTS = {"hc_post": post_inputs, "hc_pre": pre_inputs}
STREAMS, HIDDEN = 4, 4096
PUBLISHED = (8, 16, 32, 64, 128)  # the small T of the published figures
TOKENS = (1, *PUBLISHED, 512, 1024)
on_every_chip = pytest.mark.parametrize("op, soc", [(op, soc) for op in INPUTS for soc in SOCS])


@functools.cache
def modelled(op, soc, tokens):
    """Microseconds of the timeline, with the launch, and bytes of all inputs and outputs."""
    rng = torch.Generator().manual_seed(tokens)
    inputs = INPUTS[op]("normal", rng, (tokens,), STREAMS, HIDDEN, torch.bfloat16)
    with custom_ops.simulate(soc, checks=False) as run:
        result = getattr(custom_ops, op)(**inputs)
    (call,) = run.calls
    outputs = (result,) if isinstance(result, torch.Tensor) else result
    return call.modelled_us, sum(tensor.nbytes for tensor in (*inputs.values(), *outputs))


def bytes_alone_us(soc, size):
    return size / runtime.find_soc(soc)["hbmBytesPerSecond"] * 1e6


def launch_us(soc):
    return runtime.find_soc(soc)["launchSeconds"] * 1e6


def figures(op):
    """(soc, T) -> modelled us and bytes of the picture in docs/ops."""
    with (DOCS / f"{op}_modelled.csv").open(newline="") as file:
        return {(row["soc"], int(row["T"])): (float(row["modelled_us"]), int(row["bytes"])) for row in csv.DictReader(file)}


@on_every_chip
def test_no_time_is_shorter_than_launch_and_bytes_allow(op, soc):
    drawn = {tokens: figure for (chip, tokens), figure in figures(op).items() if chip == soc}  # up to 65536
    for tokens, (time, size) in (drawn | {tokens: modelled(op, soc, tokens) for tokens in TOKENS}).items():
        assert time >= launch_us(soc) + bytes_alone_us(soc, size), f"{op} at T = {tokens} on {soc}"


@on_every_chip
def test_time_has_a_floor_grows_with_tokens_and_ends_at_the_bandwidth(op, soc):
    times = [modelled(op, soc, tokens)[0] for tokens in TOKENS]
    assert times == sorted(times)
    latency = {"hc_post": 2, "hc_pre": 8}[op]  # us: two dependent transfers; hc_pre has a SyncAll and 20 Sinkhorn rounds between
    assert launch_us(soc) < times[0] < launch_us(soc) + latency
    assert modelled(op, soc, 8)[0] < 1.25 * times[0], "eight times the tokens, still the floor"
    (half, fewer), (full, more) = (modelled(op, soc, tokens) for tokens in (512, 1024))
    slope = (full - half) / bytes_alone_us(soc, more - fewer)
    assert 0.99 < slope < {"hc_post": 1.1, "hc_pre": 1.6}[op], f"{slope:.3f} times what more bytes take at the bandwidth"


@on_every_chip
def test_the_picture_shows_the_times_of_today(op, soc):
    drawn = figures(op)
    for tokens in TOKENS:
        time, size = modelled(op, soc, tokens)
        assert drawn[soc, tokens] == (pytest.approx(time, abs=0.01), size), (
            f"T = {tokens}: run benchmarks/plot_modelled.py --op {op} and correct docs/ops/{op}.md")


@pytest.mark.parametrize("op", INPUTS)
def test_the_table_of_the_page_shows_the_times_of_the_picture(op):
    table = re.search(r"(?:^\|.*\|\n)+", (DOCS / f"{op}.md").read_text().split("## Figures")[1], re.M)[0]  # the first one
    header, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    drawn, compared = figures(op), 0
    for row in rows[1:]:
        tokens, _, hidden = row[0].partition(", ")
        for soc in SOCS:
            printed = row[header.index(f"{soc.removeprefix('ascend')} modelled us")]
            if printed and int(hidden or HIDDEN) == HIDDEN and (soc, int(tokens)) in drawn:
                last_place = 10.0 ** -len(printed.partition(".")[2])
                assert abs(float(printed) - drawn[soc, int(tokens)][0]) <= 0.51 * last_place, f"{op}.md, T = {tokens}, {soc}"
                compared += 1
    assert compared >= 8


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("tokens, n, d, dtype", [
    (129, 4, 1280, torch.bfloat16),  # the least ratio of docs/ops/hc_pre.md at n = 4
    (8, 16, 256, torch.bfloat16),    # few tokens for many mixes: terms of hc_fn are made for few products
    (8, 16, 1024, torch.bfloat16),   # what plan widen is for
    (129, 16, 1024, torch.bfloat16),  # rows of one batch, though x tiles are smaller for it
    (129, 16, 256, torch.float32),   # bound by the array, which also multiplies x by itself
], ids=str)
def test_one_launch_is_faster_than_three(tokens, n, d, dtype, soc, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    composite = importlib.import_module("compare_composite")
    case = soc, tokens, n, d, dtype
    assert composite.fused_us(*case) < sum(composite.parts_us(*case))
