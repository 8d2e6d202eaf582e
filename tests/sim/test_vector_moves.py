"""The LocalTensor API that is not lane to lane, against NumPy: Compare, Select, gathers, reductions, copies between GM and UB."""

import sys
from pathlib import Path

import numpy as np
import pytest

import custom_ops

sys.path.insert(0, str(Path(__file__).parent))

import vector_moves_reference as ref  # noqa: E402
from vector_reference import BLOCK, FORMS, MODES, REPEAT, STEP, TYPES  # noqa: E402
from vector_steps import REGION, SOCS, Batch, assert_same, fill, random_step  # noqa: E402

FORMS_OF = {"ascend910b": FORMS[:3], "ascend950": FORMS[:1]}
SOC_FORMS = [(soc, form) for soc in SOCS for form in FORMS_OF[soc]]
FLOATS = ("half", "f32")
BUILT_FLOATS = {"ascend910b": FLOATS, "ascend950": ("f32",)}  # by vector_moves.cpp


class Moves(Batch):
    def __init__(self, soc, seed=0):
        super().__init__("vector_moves", "moves", soc, np.random.default_rng(seed))

    def launch(self, *more, **options):
        return super().launch(*(more or [np.zeros(32, np.uint8)]), **options)

    def random_step(self, form, dtype, counter=False):
        step, image = random_step(self.rng, form, dtype, dtype, counter)
        values = image.view(TYPES[dtype])
        if dtype in FLOATS:  # equal values are frequent
            values[: values.size // 2] = np.nan_to_num(self.rng.integers(-20, 20, values.size // 2) / 4, nan=1)
        step["scalar"] = np.frombuffer(np.array([1.5 if dtype in FLOATS else 7], TYPES[dtype]).tobytes().ljust(8, b"\0"), np.uint64)[0]
        return step, image


def whole_repeats(step, dtype):
    lanes = REPEAT // TYPES[dtype].itemsize
    step["count"] = max(1, step["count"] // lanes) * lanes


# --- bits -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("soc", "form"), SOC_FORMS)
def test_compare(soc, form):
    batch = Moves(soc)
    for mode, called in enumerate(MODES["compare"]):
        for name in ("Compare", "CompareScalar"):
            for dtype in (*BUILT_FLOATS[soc], "i32") if called == "EQ" or soc == "ascend950" else BUILT_FLOATS[soc]:
                step, image = batch.random_step(form, dtype)
                values = image.view(TYPES[dtype])
                values[REGION // values.itemsize :] = batch.rng.integers(-3, 4, values.size - REGION // values.itemsize)
                if dtype in FLOATS:
                    values[REGION // values.itemsize :: 7] = np.nan
                whole_repeats(step, dtype)
                step["mode"] = mode
                if form != "count":  # dst is packed and the mask has no say
                    step["form"], step["mask"] = FORMS.index("mask"), REPEAT // values.itemsize
                batch.add(step, image, name, dtype, dtype, ref.compare)
    batch.check()


def test_compare_into_the_register():
    batch = Moves("ascend910b")
    for mode in range(6):
        for dtype in FLOATS:
            step, image = batch.random_step("mask", dtype)
            step["mask"], step["mode"] = REPEAT // TYPES[dtype].itemsize, mode
            batch.add(step, image, "CompareRegister", dtype, dtype, ref.compare)
    batch.check()


@pytest.mark.parametrize(("soc", "form"), SOC_FORMS)
def test_select(soc, form):
    batch = Moves(soc, seed=1)
    for name, mode in [("Select", "TENSOR_TENSOR"), ("SelectScalar", "TENSOR_SCALAR"), ("Select", "CMPMASK_SPR")]:
        for dtype in BUILT_FLOATS[soc]:
            for _ in range(4):
                if mode == "CMPMASK_SPR" and form == "count":
                    continue
                step, image = batch.random_step(form, dtype)
                image[3 * REGION :] = batch.rng.integers(0, 256, REGION)
                step["mode"] = MODES["select"].index(mode)
                batch.add(step, image, name, dtype, dtype, ref.select)
    batch.check()


def test_select_by_the_register():
    batch = Moves("ascend910b", seed=2)
    for dtype in FLOATS:
        for _ in range(4):
            step, image = batch.random_step("register", dtype)
            image[3 * REGION :] = batch.rng.integers(0, 256, REGION)
            batch.add(step, image, "SelectRegister", dtype, dtype, ref.select)
    batch.check()


# --- gathers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("soc", SOCS)
def test_gather_mask(soc):
    batch = Moves(soc, seed=3)
    for dtype in (*BUILT_FLOATS[soc], "i32"):
        lanes = REPEAT // TYPES[dtype].itemsize
        for pattern in (0, *ref.PATTERNS, 0, 0, 0):
            step, image = batch.random_step("mask", dtype)
            image[2 * REGION :] = batch.rng.integers(0, 256, 2 * REGION)
            step["mode"] = pattern
            step["repeats"] = batch.rng.integers(1, 5)
            step["mask"] = batch.rng.choice([0, batch.rng.integers(1, 3 * lanes)])  # 0: normal mode
            step["block"][1], step["repeat"][1] = batch.rng.integers(1, 3), batch.rng.integers(8, 30)
            step["repeat"][2] = batch.rng.integers(0, 3)
            batch.add(step, image, "GatherMask" if pattern else "GatherMaskBits", dtype, dtype, ref.gather_mask)
    batch.check()


@pytest.mark.parametrize(("soc", "form"), SOC_FORMS)
def test_gather(soc, form):
    batch = Moves(soc, seed=4)
    for dtype in (*BUILT_FLOATS[soc], "i32"):
        size = TYPES[dtype].itemsize
        for _ in range(4):
            step, image = batch.random_step(form, dtype)
            step["block"][0] = 1
            step["repeat"][0] = batch.rng.integers(8, 20)
            step["count"] = min(step["count"], REGION // 4)
            step["mode"] = 64  # srcBaseAddr
            image[2 * REGION :].view(np.uint32)[:] = batch.rng.integers(0, (REGION - 64) // size, REGION // 2) * size
            batch.add(step, image, "Gather", dtype, dtype, ref.gather)
        step, image = batch.random_step(form, dtype)
        image[2 * REGION :].view(np.uint32)[:] = batch.rng.integers(0, REGION // BLOCK, REGION // 2) * BLOCK
        batch.add(step, image, "Gatherb", dtype, dtype, ref.gather)
    batch.check()


def test_transpose():
    batch = Moves("ascend910b", seed=5)
    step, image = batch.random_step("count", "half")
    batch.add(step, image, "Transpose", "half", "half", ref.transpose)
    batch.check()


# --- reductions -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("counter", [False, True], ids=["norm", "counter"])
@pytest.mark.parametrize("form", FORMS[1:3])
def test_reduce_in_a_repeat(form, counter):
    batch = Moves("ascend910b", seed=FORMS.index(form))
    sums = ("WholeReduceSum", "RepeatReduceSum", "BlockReduceSum", "BlockReduceMax", "BlockReduceMin", "PairReduceSum")
    for name in (*sums, "WholeReduceMax", "WholeReduceMin"):
        for dtype in FLOATS:
            for order in range(4):  # the others repeat with other masks
                if name == "RepeatReduceSum" and form == "bits":
                    continue
                step, image = batch.random_step(form, dtype, counter)
                values = image.view(TYPES[dtype])
                values[~np.isfinite(values)] = 3
                if order == 3 and form == "bits" and not counter:
                    step["bits"][0] &= np.uint64(0xFF00_0000_FF01)  # whole blocks without active lanes
                    step["bits"][1] = 0
                extreme = name in ("WholeReduceMax", "WholeReduceMin")
                step["mode"] = order if extreme else 0
                results = 1 if extreme or ref.groups(name, TYPES[dtype]) == REPEAT // TYPES[dtype].itemsize else 8
                step["repeat"][0] = batch.rng.integers(1, 4 if results > 1 else 9)
                batch.add(step, image, name, dtype, dtype, ref.reduce_extreme if extreme else ref.reduce_repeats)
    batch.check()


@pytest.mark.parametrize(("soc", "form"), SOC_FORMS)
def test_reduce_to_one(soc, form):
    batch = Moves(soc, seed=6)
    for name in ("ReduceSum", "ReduceMax", "ReduceMin"):
        for dtype in BUILT_FLOATS[soc]:
            for index in (0, 1, 0, 1):
                step, image = batch.random_step(form, dtype)
                values = image.view(TYPES[dtype])
                values[~np.isfinite(values)] = 3
                step["block"][1] = 1
                step["mode"] = index if name != "ReduceSum" else 0
                batch.add(step, image, name, dtype, dtype, without_temporary(ref.reduce_total(soc)))
    results = batch.launch()
    for result in results:  # the temporary buffer may hold anything
        result[2 * REGION : 3 * REGION] = 0
    batch.launch = lambda: results
    batch.check()


def without_temporary(reference):
    def apply(image, *arguments):
        written = reference(image, *arguments)
        image[2 * REGION : 3 * REGION] = 0
        return written

    return apply


# --- copies -----------------------------------------------------------------------------------------------------------
COPIES = ("CopyIn", "CopyOut", "CopyUb", "CopyInBlocks", "CopyOutBlocks", "CopyUbBlocks", "PadIn", "PadOut", "PadInShort",
          "PadOutShort")  # fmt: skip
COMPACT = ("PadInCompact", "PadOutCompact")
GM_BYTES = 16384  # of every step


def copy_step(batch, name, dtype, number):
    """A copy with random blocks, gaps, padding and addresses; its GM end is in the step's own part of GM."""
    rng, size = batch.rng, TYPES[dtype].itemsize
    step, image = random_step(rng, "count", dtype, dtype)
    pad = name.startswith("Pad")
    step["repeats"] = rng.integers(1, 7)
    step["count"] = rng.integers(1, 300 // size) * size if pad else rng.integers(1, 9)
    if name in ("CopyIn", "CopyOut", "CopyUb"):
        step["count"] *= BLOCK // size
    step["repeat"][:2] = rng.integers(0, 5, 2)
    step["block"] = 0
    into_ub, out = "In" in name, "Out" in name
    if pad:
        step["repeat"][1 if into_ub else 0] = rng.integers(0, 20) * size  # gaps in GM are bytes
        if name in COMPACT:
            step["repeat"][0 if into_ub else 1] = 0
    if name.startswith("PadIn"):
        step["mode"] = rng.integers(0, 2)
        if step["mode"] and rng.random() < 0.7:
            step["block"][:2] = rng.integers(1, BLOCK // size + 1, 2) if name not in COMPACT else [0, rng.integers(1, 4)]
        value = fill(rng, np.dtype(np.uint8), size) if dtype != "f32" else np.array([2.5], np.float32).view(np.uint8)
        step["scalar"] = np.frombuffer(value.tobytes().ljust(8, b"\0"), np.uint64)[0]
    local = [0, REGION, 2 * REGION, 3 * REGION]
    step["address"] = local
    gm_end = 1 if into_ub else 0
    if into_ub or out:
        step["address"][gm_end] = number * GM_BYTES + rng.integers(0, 40) * size
    return step, image


@pytest.mark.parametrize(("soc", "name"), [(s, n) for s in SOCS for n in (*COPIES, *COMPACT) if s == "ascend950" or n in COPIES])
def test_copy(soc, name):
    batch = Moves(soc, seed=len(name))
    for number in range(18):
        dtype = ("u8", "i16", "f32")[number % 3]
        step, image = copy_step(batch, name, dtype, number)
        batch.add(step, image, name, dtype, dtype, None)
    gm = batch.rng.integers(0, 256, len(batch.steps) * GM_BYTES, np.uint8)
    want_gm, written_gm = gm.copy(), np.zeros(gm.size, bool)
    # bytes behind a block that the device leaves open are unwritten to the simulator, and all of UB is copied out
    results = batch.launch(gm, ignore=["uninitialized-read"])
    for step, image, got, (_, dtype, _, _, _) in zip(batch.steps, batch.images, results, batch.cases, strict=True):
        want, title = image.copy(), f"{name} {dtype} {dict(zip(STEP.names, step.item(), strict=True))}"
        if "Out" in name:
            written_gm |= ref.copy(want_gm, image, step, name, dtype)
            written = np.zeros(want.size, bool)
        else:
            written = ref.copy(want, gm if "In" in name else image, step, name, dtype)
        assert_same(title, got, want, written, np.dtype(np.uint8))
    assert_same(f"{name}: GM", gm, want_gm, written_gm, np.dtype(np.uint8))


def test_rest_of_a_padded_block_is_unwritten():
    """The device does not say what is behind a block that is padded to 32 bytes without isPad: reading it is reported."""
    batch = Moves("ascend910b")
    step, image = copy_step(batch, "PadIn", "u8", 0)
    step["count"], step["mode"], step["block"] = 5, 0, 0
    batch.add(step, image, "PadIn", "u8", "u8", None)
    with pytest.raises(custom_ops.KernelError) as caught:
        batch.launch(np.zeros(GM_BYTES, np.uint8))
    assert caught.value.rule == "uninitialized-read"
