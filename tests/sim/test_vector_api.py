"""The LocalTensor vector API against NumPy, lane-wise instructions: every operation and element type of the arch in every
form, with random masks, repeats and strides. The whole UB is compared, so inactive lanes must keep their bytes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from custom_ops import KernelError

sys.path.insert(0, str(Path(__file__).parent))

import vector_reference as ref  # noqa: E402
from vector_reference import CASTS, CASTS_950, FLOATS, FORMS, MODES, TYPES  # noqa: E402
from vector_steps import REGION, Batch, fill, random_step  # noqa: E402

# Element types on the 910B; what the 950 adds is tested for the types that vector_step.h builds there.
FOUR, TWO, WORDS = ("half", "f32", "i16", "i32"), ("half", "f32"), ("i16", "u16")
ADDED, INTEGERS = ("bf16", "u8", "u32", "i64"), ("u8", "u32", "i64")
OPERATIONS = {  # name -> (types on the 910B, types the 950 adds)
    "Add": (FOUR, ADDED), "Sub": (FOUR, ADDED), "Mul": (FOUR, ("bf16", "u32", "i64")), "Div": (TWO, ("u32", "i64")),
    "Max": (FOUR, ADDED), "Min": (FOUR, ADDED), "And": (WORDS, INTEGERS), "Or": (WORDS, INTEGERS),
    "AddRelu": (("half", "f32", "i16"), ()), "SubRelu": (("half", "f32", "i16"), ()),
    "FusedMulAdd": (TWO, ("bf16",)), "FusedMulAddRelu": (TWO, ()), "MulAddDst": (TWO, ("bf16",)),
    "Adds": (FOUR, ADDED), "Muls": (FOUR, ADDED), "Maxs": (FOUR, ADDED), "Mins": (FOUR, ADDED),
    "Subs": ((), ("f32", *ADDED)), "Divs": ((), ("f32", *ADDED)), "Ands": ((), INTEGERS), "Ors": ((), INTEGERS),
    "LeakyRelu": (TWO, ()), "ShiftLeft": (("i16", "u16", "i32", "u32"), ("u8", "i64")),
    "ShiftRight": (("i16", "u16", "i32", "u32"), ("u8", "i64")), "Axpy": (TWO, ()),
    "Exp": (TWO, ()), "Ln": (TWO, ()), "Sqrt": (TWO, ()), "Rsqrt": (TWO, ()), "Reciprocal": (TWO, ()),
    "Abs": (TWO, ("i64",)), "Relu": (("half", "f32", "i32"), ("i64",)), "Not": (WORDS, INTEGERS),
    "Duplicate": (("half", "f32", "i16", "u16", "i32", "u32"), ("u8", "i64")),
    "CreateVecIndex": (FOUR, ("i64",)), "Copy": (("half", "f32", "i16", "u16", "i32", "u32"), ()),
}  # fmt: skip
BUILT = {"ascend910b": ("f32", "half", "i16", "u16", "i32", "u32"), "ascend950": ("f32", *ADDED)}
FAMILIES = {
    "binary": (*ref.BINARY, *ref.INTO), "scalar": tuple(ref.SCALAR), "unary": tuple(ref.UNARY),
    "fill": ("Duplicate", "CreateVecIndex", "Copy"),
}  # fmt: skip
IN_REGISTER_FORM = ("Add", "Muls", "Abs", "Duplicate")  # of vector_lanes.cpp
#: libm and the simulator's exp are within one unit in the last place; all else is rounded once or as the reference says.
ULPS = {"Exp": 1, "Ln": 1}


def types_of(name, soc):
    membase, added = OPERATIONS[name]
    return [t for t in BUILT[soc] if t in membase or (soc == "ascend950" and t in added)]


def count_types_of(name, soc):
    """And and Or take 32-bit elements as raw bits in the count form."""
    return ["i32", "u32"] if name in ("And", "Or") and soc == "ascend910b" else []


def lanes_batch(rng, soc, names, form, per_type=3, counter=False):
    batch = Batch("vector_lanes", "lanes", soc, rng)
    for name in names:
        pairs = [(t, t) for t in types_of(name, soc) + (count_types_of(name, soc) if form == "count" else [])]
        if name in ("MulAddDst", "Axpy") and soc == "ascend910b":
            pairs.append(("f32", "half"))
        if name == "Copy" and form == "count":
            continue
        for dtype, source in pairs:
            for _ in range(per_type):
                step, image = random_step(rng, form, dtype, source, counter)
                set_scalar(rng, step, name, source)
                batch.add(step, image, name, dtype, source, ref.lanes, ULPS.get(name, 0))
    return batch


def set_scalar(rng, step, name, source):
    value = rng.integers(0, 8) if name.startswith("Shift") else fill(rng, TYPES[source], 1)[0]
    if name == "CreateVecIndex":
        value = rng.integers(-50, 50)
    step["scalar"] = np.frombuffer(np.array([value], TYPES[source]).tobytes().ljust(8, b"\0"), np.uint64)[0]
    step["mode"] = rng.integers(0, 2) if name == "ShiftRight" and step["form"] != 0 else 0


@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("family", FAMILIES)
def test_lanes(family, form):
    rng = np.random.default_rng([FORMS.index(form), len(family)])
    lanes_batch(rng, "ascend910b", FAMILIES[family], form).check()


@pytest.mark.parametrize("form", FORMS[1:])
def test_lanes_in_counter_mode(form):
    rng = np.random.default_rng(FORMS.index(form))
    names = IN_REGISTER_FORM if form == "register" else ("Sub", "Maxs", "Relu", "CreateVecIndex", "Axpy", *IN_REGISTER_FORM)
    lanes_batch(rng, "ascend910b", names, form, counter=True).check()


def test_lanes_of_the_mask_register():
    lanes_batch(np.random.default_rng(3), "ascend910b", IN_REGISTER_FORM, "register", per_type=6).check()


@pytest.mark.parametrize("family", FAMILIES)
def test_lanes_on_950(family):
    lanes_batch(np.random.default_rng(len(family)), "ascend950", FAMILIES[family], "count").check()


@pytest.mark.parametrize("form", FORMS[:3])
def test_in_place(form):
    """dst may be a source when addresses and strides are equal."""
    rng = np.random.default_rng(FORMS.index(form))
    batch = Batch("vector_lanes", "lanes", "ascend910b", rng)
    for name, operand in [("Add", 1), ("Sub", 2), ("Muls", 1), ("Sqrt", 1), ("Abs", 1), ("MulAddDst", 1)]:
        for dtype in TWO:
            step, image = random_step(rng, form, dtype, dtype)
            for field_name in ("address", "block", "repeat"):
                step[field_name][operand] = step[field_name][0]
            set_scalar(rng, step, name, dtype)
            batch.add(step, image, name, dtype, dtype, ref.lanes)
    batch.check()


def test_serial_accumulation():
    """dst == src1 with repeat strides 0: the repeats are added one after the other."""
    rng = np.random.default_rng(0)
    batch = Batch("vector_lanes", "lanes", "ascend910b", rng)
    for name in ("Add", "Sub", "Mul", "Max", "Min"):
        for dtype in FOUR:
            for form in ("mask", "bits"):
                step, image = random_step(rng, form, dtype, dtype)
                step["address"][2], step["block"][2], step["repeat"][[0, 2]] = step["address"][0], step["block"][0], 0
                batch.add(step, image, name, dtype, dtype, ref.lanes)
    batch.check()


def test_most_repeats():
    rng = np.random.default_rng(0)
    batch = Batch("vector_lanes", "lanes", "ascend910b", rng, image_bytes=3 * 255 * 256)
    for form in ("mask", "bits", "count"):
        step, _ = random_step(rng, form, "f32", "f32")
        step["repeats"], step["count"], step["block"], step["repeat"] = 255, 255 * 64 - 1, 1, 8
        step["address"][:3] = np.arange(3) * 255 * 256
        batch.add(step, fill(rng, TYPES["f32"], 3 * 255 * 64).view(np.uint8), "Add", "f32", "f32", ref.lanes)
    batch.check()


@pytest.mark.parametrize("soc", BUILT)
def test_brcb(soc):
    rng = np.random.default_rng(0)
    batch = Batch("vector_lanes", "lanes", soc, rng)
    for dtype in BUILT[soc]:
        for repeats, block, repeat in [(1, 1, 8), (7, 1, 8), (3, 2, 20), (4, 5, 1), (0, 1, 8)]:
            step, image = random_step(rng, "mask" if soc == "ascend910b" else "count", dtype, dtype)
            step["repeats"], step["block"][0], step["repeat"][0] = repeats, block, repeat
            batch.add(step, image, "Brcb", dtype, dtype, ref.lanes)
    batch.check()


def test_other_types_are_refused():
    rng, missed = np.random.default_rng(0), []
    for name, (types, _) in OPERATIONS.items():
        for dtype in set(BUILT["ascend910b"]) - set(types):
            step, image = random_step(rng, "mask", dtype, dtype)
            batch = Batch("vector_lanes", "lanes", "ascend910b", rng)
            batch.add(step, image, name, dtype, dtype, ref.lanes)
            try:
                batch.launch()
                missed.append((name, dtype))
            except KernelError as error:
                assert error.rule == "dtype" and name in str(error), str(error)
    assert missed == []


# --- Cast -------------------------------------------------------------------------------------------------------------
def values_to_cast(rng, source: str, dtype: str, count: int) -> np.ndarray:
    """Random bit patterns, numbers of the size of dst, ties, both infinities, NaN, both zeros, subnormals, the limits."""
    src, dst = TYPES[source], TYPES[dtype]
    bits = rng.integers(0, 256, count * src.itemsize, np.uint8).view(src)
    if source not in FLOATS:
        bits[::2] >>= rng.integers(0, 8 * src.itemsize, bits[::2].size).astype(src)
        limits = np.array([0, np.iinfo(src).min, np.iinfo(src).max])
        return np.concatenate([limits.astype(src), bits])[:count]
    span = 300.0 if dtype in ("i8", "u8") else 70000.0 if dst.itemsize == 2 else 3e9 if dst.itemsize == 4 else 2e19
    bits[1::4] = (rng.uniform(-1, 1, bits[1::4].size) * span).astype(src)
    bits[2::4] = (rng.integers(-2000, 2000, bits[2::4].size) / 4).astype(src)  # quarters: ties of integers
    if dtype in ("half", "bf16") and source == "f32":  # the middle between neighbours, and one float32 step beside it
        low = rng.integers(0, 1 << 16, bits[3::4].size, np.uint16).view(dst)
        low = np.where(np.isfinite(low), low, dst.type(1))
        middle = ((low.astype(np.float64) + np.nextafter(low, dst.type(np.inf)).astype(np.float64)) / 2).astype(np.float32)
        bits[3::4] = (middle.view(np.int32) + rng.integers(-1, 2, middle.size)).astype(np.int32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 65504, 65519.99, 65520, -65520,
                        127.5, -128.5, 255.5, -0.75, 32767.5, -32768.5, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 1e-40])  # fmt: skip
    return np.concatenate([special.astype(src), bits])[:count]


def cast_batch(rng, soc, pair, form, elements=1024):
    source, dtype = pair
    batch = Batch("vector_cast", "cast", soc, rng)
    for mode in (CASTS | CASTS_950)[pair]:
        step, image = random_step(rng, form, dtype, source)
        if form == "count":
            step["count"] = min(elements, REGION // max(TYPES[dtype].itemsize, TYPES[source].itemsize))
        values = values_to_cast(rng, source, dtype, REGION // TYPES[source].itemsize)
        image[step["address"][1] :][:REGION] = values.view(np.uint8)
        step["mode"] = MODES["round"].index(mode)
        step["scalar"] = np.array([0.125], np.float16).view(np.uint16)[0]  # SetDeqScale
        batch.add(step, image, f"Cast {mode}", dtype, source, lambda image, step, _, *pair: ref.cast_step(image, step, *pair))
    return batch


# NumPy warns of NaN and overflow in the random bit patterns
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("pair", CASTS, ids="-".join)
def test_cast(pair):
    rng = np.random.default_rng(list(CASTS).index(pair))
    for form in FORMS[:3]:
        cast_batch(rng, "ascend910b", pair, form).check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("pair", CASTS_950, ids="-".join)
def test_cast_of_950(pair):
    cast_batch(np.random.default_rng(0), "ascend950", pair, "count").check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_round_modes_are_refused():
    rng, missed = np.random.default_rng(0), []
    for pair in [*CASTS, ("half", "bf16"), ("bf16", "half")]:
        for mode in set(MODES["round"]) - set(CASTS.get(pair, ())):
            batch = Batch("vector_cast", "cast", "ascend910b", rng)
            step, image = random_step(rng, "count", pair[1], pair[0])
            step["mode"] = MODES["round"].index(mode)
            batch.add(step, image, "Cast", pair[1], pair[0], None)
            try:
                batch.launch()
                missed.append((pair, mode))
            except KernelError as error:
                assert error.rule == "dtype" and f"CAST_{mode}" in str(error), str(error)
    assert missed == []
