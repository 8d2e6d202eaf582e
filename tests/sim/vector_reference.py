"""What the vector instructions do to UB, in NumPy: a step (tests/sim/kernels/vector_step.h) applied to an image of UB."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np

KERNELS = Path(__file__).parent / "kernels"
BLOCK, REPEAT = 32, 256  # bytes of a block and of one repeat of an instruction

TYPES = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "half": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
}  # fmt: skip
TYPES = {name: np.dtype(t) for name, t in TYPES.items()}
FLOATS = ("half", "bf16", "f32")
FORMS = ("count", "mask", "bits", "register")
MODES = {
    "round": ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD"),
    "compare": ("LT", "GT", "EQ", "LE", "GE", "NE"),
    "select": ("CMPMASK_SPR", "TENSOR_SCALAR", "TENSOR_TENSOR"),
    "order": ("VALUE_INDEX", "INDEX_VALUE", "ONLY_VALUE", "ONLY_INDEX"),
}

STEP = np.dtype({
    "names": ["op", "type", "from", "form", "counter", "count", "mask", "bits", "repeats", "address", "block", "repeat",
              "scalar", "mode"],
    "formats": ["i8", "i8", "i8", "i8", "?", "i8", "i8", ("u8", 2), "i8", ("i8", 4), ("i8", 3), ("i8", 3), "u8", "i8"],
    "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 72, 80, 112, 136, 160, 168],
    "itemsize": 176,
})  # fmt: skip


def operations(kernel: str) -> list[str]:
    """Names of the kernel file's `enum class Op`, in order."""
    found = re.search(r"enum class Op[^{]*{([^}]*)}", (KERNELS / f"{kernel}.cpp").read_text())
    return [name.strip() for name in found[1].split(",")] if found else ["Cast"]


# --- lanes ------------------------------------------------------------------------------------------------------------
class Lanes:
    """Which lanes of which repeats a step works on, and where they are. `width`: bytes of the widest operand."""

    def __init__(self, step, width: int):
        self.step, self.width = step, width
        self.per_repeat = REPEAT // width
        counted = step["form"] == FORMS.index("count")
        lane = np.arange(self.per_repeat)
        self.contiguous = counted
        if counted or step["counter"]:
            total = int(step["count"] if counted else step["mask"])
            self.repeats = -(-total // self.per_repeat)
            self.active = np.arange(self.repeats)[:, None] * self.per_repeat + lane < total
            return
        self.repeats = int(step["repeats"])
        if step["form"] == FORMS.index("mask"):
            one = lane < step["mask"]
        else:
            one = (step["bits"][lane // 64] >> (lane % 64).astype(np.uint64) & 1).astype(bool)
        self.active = np.broadcast_to(one, (self.repeats, self.per_repeat))

    def of(self, repeat: int) -> np.ndarray:
        return np.flatnonzero(self.active[repeat])

    def at(self, operand: int, dtype: np.dtype, repeat: int, lane: np.ndarray) -> np.ndarray:
        """Indices, in elements from byte 0 of UB. Operands: 0 dst, 1 src0, 2 src1."""
        block, stride = self.step["block"][operand], self.step["repeat"][operand]
        if self.contiguous:
            block, stride = 1, self.per_repeat * dtype.itemsize // BLOCK
        per_block = BLOCK // dtype.itemsize
        offset = (repeat * stride + lane // per_block * block) * per_block + lane % per_block
        return self.step["address"][operand] // dtype.itemsize + offset


# --- numbers ----------------------------------------------------------------------------------------------------------
def widen(values: np.ndarray) -> np.ndarray:
    """float64 for floats: the sum, product, quotient and root of two floats, rounded once more, is still right; int64 or
    Python integers for integers."""
    if values.dtype.kind in "iu":
        return values.astype(object if values.dtype.itemsize == 8 else np.int64)
    return values.astype(np.float64)


def f32(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def narrow(values, dtype: np.dtype, saturate: bool = False) -> np.ndarray:
    if dtype.kind not in "iu":
        return np.asarray(values, np.float64).astype(np.float32 if dtype == ml_dtypes.bfloat16 else np.float64).astype(dtype)
    values = np.asarray(values, object)
    if saturate:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([min(max(int(v), low), high) for v in values], dtype)
    bits = 8 * dtype.itemsize
    return np.array([int(v) & ((1 << bits) - 1) for v in values], f"u{dtype.itemsize}").view(dtype)


def quotient(a, b):
    if a.dtype.kind == "f":
        return a / b
    return np.array([-1 if y == 0 else abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
                     for x, y in zip(a, np.broadcast_to(b, a.shape), strict=True)], object)  # fmt: skip


def positive(a):
    return np.where((a > 0) | (a != a), a, 0)


def shifted_right(a, by, rounded):
    by = int(by)
    return (a >> by) + ((a >> (by - 1) & 1) if rounded and by else 0)


#: Integers that saturate: sums and differences of the signed types that the 910B has.
SATURATES = {"Add", "Sub", "Adds", "Subs", "AddRelu", "SubRelu", "Abs"}
SATURATING = ("i16", "i32")
BINARY = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": quotient,
    "Max": np.maximum, "Min": np.minimum, "And": lambda a, b: a & b, "Or": lambda a, b: a | b,
    "AddRelu": lambda a, b: positive(a + b), "SubRelu": lambda a, b: positive(a - b),
}  # fmt: skip
INTO = {  # the first argument is the old dst; the product is rounded to float32
    "FusedMulAdd": lambda d, a, b: f32(f32(d * a) + b), "FusedMulAddRelu": lambda d, a, b: positive(f32(f32(d * a) + b)),
    "MulAddDst": lambda d, a, b: f32(d + f32(a * b)),
}  # fmt: skip
SCALAR = {
    "Adds": BINARY["Add"], "Muls": BINARY["Mul"], "Maxs": np.maximum, "Mins": np.minimum, "Subs": BINARY["Sub"],
    "Divs": quotient, "Ands": BINARY["And"], "Ors": BINARY["Or"], "LeakyRelu": lambda a, s: np.where(a >= 0, a, a * s),
    "ShiftLeft": lambda a, s: a << int(s), "ShiftRight": None, "Axpy": None,
}  # fmt: skip
UNARY = {
    "Exp": np.exp, "Ln": np.log, "Sqrt": np.sqrt, "Rsqrt": lambda a: 1 / f32(np.sqrt(a)), "Reciprocal": lambda a: 1 / a,
    "Abs": np.abs, "Relu": positive, "Not": lambda a: ~a,
}  # fmt: skip


def lanes(image: np.ndarray, step, name: str, dtype: str, source: str) -> np.ndarray:
    """Applies a lane-wise step to the image; returns which bytes it writes."""
    out, src = TYPES[dtype], TYPES[source]
    at = Lanes(step, max(out.itemsize, src.itemsize))
    written = np.zeros(image.size, bool)
    scalar = widen(np.array([step["scalar"]]).view(src)[:1])[0]
    saturate = name in SATURATES and dtype in SATURATING
    ub, source_ub = image.view(out), image.view(src)
    if name == "Brcb":
        for r in range(int(step["repeats"])):
            for k in range(8):
                to = step["address"][0] + (r * step["repeat"][0] + k * step["block"][0]) * BLOCK
                image[to : to + BLOCK].view(out)[:] = source_ub[step["address"][1] // src.itemsize + 8 * r + k]
                written[to : to + BLOCK] = True
        return written
    for r in range(at.repeats):
        lane = at.of(r)
        dst, a = at.at(0, out, r, lane), source_ub[at.at(1, src, r, lane)]
        if name in BINARY:
            result = BINARY[name](widen(a), widen(source_ub[at.at(2, src, r, lane)]))
        elif name in INTO:
            result = INTO[name](widen(ub[dst]), widen(a), widen(source_ub[at.at(2, src, r, lane)]))
        elif name == "ShiftRight":
            result = shifted_right(widen(a), scalar, step["mode"])
        elif name == "Axpy":
            result = f32(widen(ub[dst]) + f32(widen(a) * scalar))
        elif name in SCALAR:
            result = SCALAR[name](widen(a), scalar)
        elif name in UNARY:
            result = UNARY[name](widen(a))
        elif name == "CreateVecIndex":
            result = scalar + widen(np.array(r * at.per_repeat + lane))
        elif name == "Duplicate":
            result = np.full(lane.size, scalar)
        else:  # Copy
            ub[dst] = a
            written.reshape(-1, out.itemsize)[dst] = True
            continue
        ub[dst] = narrow(result, out, saturate)
        written.reshape(-1, out.itemsize)[dst] = True
    return written


# --- Cast -------------------------------------------------------------------------------------------------------------
FIVE = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC")
NONE, SIX = ("NONE",), (*FIVE, "NONE")
CASTS = {  # (from, to) -> round modes: facts of the 910B
    ("i8", "half"): NONE, ("u8", "half"): NONE, ("i16", "half"): SIX, ("i16", "f32"): NONE, ("half", "i8"): SIX,
    ("half", "u8"): SIX, ("half", "i16"): FIVE, ("half", "i32"): FIVE, ("half", "f32"): NONE, ("bf16", "f32"): NONE,
    ("bf16", "i32"): FIVE, ("i32", "i16"): NONE, ("i32", "half"): NONE, ("i32", "f32"): SIX, ("i32", "i64"): NONE,
    ("i64", "i32"): NONE, ("i64", "f32"): FIVE, ("f32", "half"): (*SIX, "ODD"), ("f32", "bf16"): FIVE,
    ("f32", "i16"): FIVE, ("f32", "i32"): FIVE, ("f32", "i64"): FIVE, ("f32", "f32"): FIVE,
}  # fmt: skip
CASTS_950 = {
    ("half", "bf16"): FIVE, ("bf16", "half"): FIVE, ("i8", "i16"): NONE, ("i8", "i32"): NONE, ("u8", "u16"): NONE,
    ("u8", "u32"): NONE, ("i16", "u8"): NONE, ("i16", "u32"): NONE, ("u16", "u8"): NONE, ("u16", "u32"): NONE,
    ("u32", "u8"): NONE, ("u32", "u16"): NONE, ("u32", "i16"): NONE,
}  # fmt: skip
ROUND = {
    "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc, "RINT": np.rint, "NONE": np.rint,
    "ROUND": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v),  # exact in float64 for every 32-bit float below 2^52
}  # fmt: skip


def neighbours(values, dtype: np.dtype):
    """The largest representable value <= v, and the smallest >= v."""
    near = values.astype(np.float32).astype(dtype)
    back = near.astype(values.dtype)
    down, up = np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))
    return np.where(back > values, down, near), np.where(back < values, up, near)


def cast(values: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    if dtype.kind in "iu":
        if values.dtype.kind in "iu":
            # into a wider type the bits are extended: negative int16 to uint32 is not documented
            return narrow(widen(values), dtype, saturate=dtype.itemsize <= values.dtype.itemsize)
        whole = ROUND[mode](np.nan_to_num(widen(values), nan=0, posinf=1e30, neginf=-1e30))
        return narrow(whole, dtype, saturate=True)
    if values.dtype == dtype:
        return ROUND[mode](widen(values)).astype(dtype)
    # longdouble holds every int64
    exact = values.astype(np.longdouble if values.dtype.kind in "iu" else np.float64)
    low, high = neighbours(exact, dtype)
    below, above = exact - low.astype(exact.dtype), high.astype(exact.dtype) - exact
    odd = low.view(f"u{dtype.itemsize}") & 1 == 1
    # beyond the largest finite value the step to infinity counts as one more unit in the last place
    top = np.longdouble(ml_dtypes.finfo(dtype).max)
    unit = top - np.nextafter(dtype.type(top), dtype.type(0)).astype(np.longdouble)
    below = np.where(np.isneginf(low.astype(np.float64)), unit + top + exact, below)
    above = np.where(np.isposinf(high.astype(np.float64)), unit + top - exact, above)
    up = {
        "FLOOR": np.full(exact.shape, False), "CEIL": np.full(exact.shape, True), "TRUNC": exact < 0, "ODD": ~odd,
        "ROUND": (above < below) | ((above == below) & (exact > 0)),
    }.get(mode, (above < below) | ((above == below) & odd))  # fmt: skip
    return np.where(np.isnan(exact), dtype.type(np.nan), np.where(low == high, low, np.where(up, high, low))).astype(dtype)


def cast_step(image: np.ndarray, step, dtype: str, source: str) -> np.ndarray:
    out, src = TYPES[dtype], TYPES[source]
    at = Lanes(step, max(out.itemsize, src.itemsize))
    written = np.zeros(image.size, bool)
    for r in range(at.repeats):
        lane = at.of(r)
        a = image.view(src)[at.at(1, src, r, lane)]
        if (source, dtype) == ("i32", "half"):  # SetDeqScale
            result = narrow(f32(f32(a) * np.array([step["scalar"]]).view(out)[0]), out)
        else:
            result = cast(a, out, MODES["round"][step["mode"]])
        dst = at.at(0, out, r, lane)
        image.view(out)[dst] = result
        written.reshape(-1, out.itemsize)[dst] = True
    return written
