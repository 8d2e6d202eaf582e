"""NumPy semantics of the instructions that are not lane to lane: bits, gathers, reductions, copies. Each function changes the
image of UB and returns which bytes it wrote."""

import numpy as np
from vector_reference import BLOCK, MODES, REPEAT, TYPES, Lanes, f32, narrow, widen

COMPARE = {
    "LT": np.less, "GT": np.greater, "EQ": np.equal, "LE": np.less_equal, "GE": np.greater_equal, "NE": np.not_equal,
}  # fmt: skip


def put(image, written, address: int, values) -> None:
    raw = np.frombuffer(np.asarray(values).tobytes(), np.uint8)
    image[address : address + raw.size] = raw
    written[address : address + raw.size] = True


def scalar_of(step, dtype: np.dtype):
    return np.array([step["scalar"]]).view(dtype)[0]


def source(image, step, at: Lanes, dtype: np.dtype, repeat: int, operand: int = 1) -> np.ndarray:
    """All lanes of a repeat, active or not."""
    return image.view(dtype)[at.at(operand, dtype, repeat, np.arange(at.per_repeat))]


# --- bits -------------------------------------------------------------------------------------------------------------
def compare(image, step, name, dtype, _):
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    at = Lanes(step, kind.itemsize)
    for r in range(1 if name.startswith("CompareRegister") else at.repeats):  # mask forms: whole repeats, whatever the mask
        b = scalar_of(step, kind) if name.startswith("CompareScalar") else source(image, step, at, kind, r, 2)
        bits = COMPARE[MODES["compare"][step["mode"]]](source(image, step, at, kind, r), b)
        to = int(step["address"][0]) + r * at.per_repeat // 8
        packed = np.packbits(bits, bitorder="little")
        put(image, written, to, packed)
        if name.startswith("CompareRegister"):  # 128 bits
            put(image, written, to, np.pad(packed, (0, 16 - packed.size)))
    return written


def select(image, step, name, dtype, _):
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    at = Lanes(step, kind.itemsize)
    bits = np.unpackbits(image[step["address"][3] :], bitorder="little").astype(bool)
    reused = MODES["select"][step["mode"]] == "CMPMASK_SPR"
    for r in range(at.repeats):
        first = 0 if reused else r * at.per_repeat
        b = scalar_of(step, kind) if name == "SelectScalar" else source(image, step, at, kind, r, 2)
        chosen = np.where(bits[first : first + at.per_repeat], source(image, step, at, kind, r), b).astype(kind)
        dst = at.at(0, kind, r, at.of(r))
        image.view(kind)[dst] = chosen[at.of(r)]
        written.reshape(-1, kind.itemsize)[dst] = True
    return written


# --- gathers ----------------------------------------------------------------------------------------------------------
PATTERNS = {1: [0, 2], 2: [1, 3], 3: [0], 4: [1], 5: [2], 6: [3], 7: [0, 1, 2, 3]}  # lanes kept of every four


def gather_mask(image, step, name, dtype, _):
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    per_block, kept = BLOCK // kind.itemsize, []
    lane = np.arange(step["mask"] or REPEAT // kind.itemsize)  # counter mode: mask elements per repeat
    for r in range(int(step["repeats"])):
        if name == "GatherMask":
            keep = np.isin(lane % 4, PATTERNS[int(step["mode"])])
        else:
            begin = step["address"][2] + r * step["repeat"][2] * BLOCK
            keep = np.unpackbits(image[begin:], bitorder="little")[lane].astype(bool)
        offset = (r * step["repeat"][1] + lane // per_block * step["block"][1]) * per_block + lane % per_block
        kept.append(image.view(kind)[step["address"][1] // kind.itemsize + offset[keep]])
    kept = np.concatenate(kept)
    put(image, written, int(step["address"][0]), kept)
    put(image, written, int(step["address"][3]), np.full(8, kept.size, np.uint32))  # rsvdCnt
    return written


def gather(image, step, name, dtype, _):
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    offsets = image[step["address"][2] :].view(np.uint32)
    if name == "Gatherb":
        for r in range(int(step["repeats"])):
            for k in range(8):
                begin = int(step["address"][1] + offsets[8 * r + k])
                to = int(step["address"][0] + (r * step["repeat"][0] + k * step["block"][0]) * BLOCK)
                put(image, written, to, image[begin : begin + BLOCK].copy())
        return written
    at = Lanes(step, kind.itemsize)
    for r in range(at.repeats):
        for lane in at.of(r):
            begin = int(step["address"][1] + step["mode"] + offsets[r * at.per_repeat + lane])
            to = at.at(0, kind, r, lane) * kind.itemsize
            put(image, written, int(to), image[begin : begin + kind.itemsize].copy())
    return written


def transpose(image, step, name, dtype, _):
    written = np.zeros(image.size, bool)
    matrix = image[step["address"][1] :][:512].view(np.uint16).reshape(16, 16)
    put(image, written, int(step["address"][0]), matrix.T.copy())
    return written


# --- reductions -------------------------------------------------------------------------------------------------------
def tree(values: np.ndarray, kind: np.dtype) -> float:
    """((a0 + a1) + (a2 + a3)) + ..., every sum rounded to the element type."""
    while values.size > 1:
        values = widen(narrow(values[::2] + values[1::2], kind))
    return values[0]


def extreme(values, largest: bool) -> int:
    """Index of the first of the largest or smallest."""
    return int(np.argmax(values) if largest else np.argmin(values))


def groups(name: str, kind: np.dtype) -> int:
    """Lanes that give one result."""
    return 2 if name.startswith("Pair") else BLOCK // kind.itemsize if name.startswith("Block") else REPEAT // kind.itemsize


def reduce_repeats(image, step, name, dtype, _):
    """WholeReduceSum, RepeatReduceSum, BlockReduce*, PairReduceSum: results of a repeat side by side; on the 910B a group
    without active lanes keeps its result."""
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    at, size = Lanes(step, kind.itemsize), groups(name, kind)
    identity = 0 if name.endswith("Sum") else -np.inf if name.endswith("Max") else np.inf
    original = image.copy()
    for r in range(at.repeats):
        values = np.where(at.active[r], widen(source(original, step, at, kind, r)), identity)
        for g in range(at.per_repeat // size):
            if not at.active[r][g * size : (g + 1) * size].any():
                continue
            part = values[g * size : (g + 1) * size]
            result = tree(part, kind) if name.endswith("Sum") else part[extreme(part, name.endswith("Max"))]
            to = step["address"][0] + (r * step["repeat"][0] * (at.per_repeat // size) + g) * kind.itemsize
            put(image, written, int(to), narrow([result], kind))
    return written


def index_bits(index: int, kind: np.dtype):
    return np.array([index], f"u{kind.itemsize}").view(kind)


def reduce_extreme(image, step, name, dtype, _):
    """WholeReduceMax and WholeReduceMin: value and index in the repeat."""
    kind, written = TYPES[dtype], np.zeros(image.size, bool)
    at, order, original = Lanes(step, kind.itemsize), MODES["order"][step["mode"]], image.copy()
    for r in range(at.repeats):
        lane = at.of(r)
        values = source(original, step, at, kind, r)[lane]
        best = extreme(widen(values), name.endswith("Max"))
        value, index = values[best : best + 1], index_bits(lane[best], kind)
        result = {
            "VALUE_INDEX": [value, index], "INDEX_VALUE": [index, value], "ONLY_VALUE": [value],
            "ONLY_INDEX": [np.array([lane[best]], np.uint32)],
        }[order]  # fmt: skip
        raw = np.concatenate([part.view(np.uint8) for part in result])
        put(image, written, int(step["address"][0] + r * step["repeat"][0] * raw.size), raw)
    return written


def reduce_total(soc: str):
    """ReduceSum, ReduceMax, ReduceMin; the bytes of the temporary buffer may change."""

    def apply(image, step, name, dtype, _):
        kind, written = TYPES[dtype], np.zeros(image.size, bool)
        at = Lanes(step, kind.itemsize)
        step["block"][1] = 1
        values = np.array([np.where(at.active[r], widen(source(image, step, at, kind, r)), 0) for r in range(at.repeats)])
        if name == "ReduceSum":
            put(image, written, int(step["address"][0]), narrow([total(values, kind, at.contiguous, soc)], kind))
            return written
        best, where = None, 0
        for r in range(at.repeats):
            for lane in at.of(r):
                if best is None or (values[r, lane] > best if name == "ReduceMax" else values[r, lane] < best):
                    best, where = values[r, lane], int(at.at(1, kind, r, lane) - step["address"][1] // kind.itemsize)
        put(image, written, int(step["address"][0]), narrow([best], kind))
        if step["mode"]:
            put(image, written, int(step["address"][0]) + kind.itemsize, index_bits(where, kind))
        return written

    return apply


def total(values: np.ndarray, kind: np.dtype, counted: bool, soc: str) -> float:
    if counted and (soc == "ascend910b" or 1 < len(values) <= 4):
        # 910B: a tree per repeat, then one after the other; 950: up to four repeats are added lane by lane first
        parts = values if soc == "ascend950" else np.array([[tree(row, kind)] for row in values])
        result = np.zeros(parts.shape[1])
        for row in parts:
            result = widen(narrow(result + row, kind))
        return tree(result, kind)
    level = np.array([tree(row, kind) for row in values])
    while level.size > 1:  # trees over the results
        level = np.pad(level, (0, -level.size % values.shape[1])).reshape(-1, values.shape[1])
        level = np.array([tree(row, kind) for row in level])
    return level[0]


# --- copies -----------------------------------------------------------------------------------------------------------
def ceil_block(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def copy(destination, origin, step, name, dtype):
    """Blocks of origin to destination (uint8 images of UB or GM); returns the bytes written."""
    kind, written = TYPES[dtype], np.zeros(destination.size, bool)
    count, length = int(step["repeats"]), int(step["count"])
    dst_gap, src_gap = (int(gap) for gap in step["repeat"][:2])
    left, right = (int(n) * kind.itemsize for n in step["block"][:2])
    to, begin = int(step["address"][0]), int(step["address"][1])
    if name in ("CopyIn", "CopyOut", "CopyUb"):
        count, length, left, right, dst_gap, src_gap = 1, length * kind.itemsize, 0, 0, 0, 0
    elif not name.startswith("Pad"):  # blocks of 32 bytes, gaps too
        length, dst_gap, src_gap = length * BLOCK, dst_gap * BLOCK, src_gap * BLOCK
    into_ub, compact = name.startswith("PadIn"), name.endswith("Compact")
    dst_pitch, src_pitch = length + dst_gap, length + src_gap
    if into_ub and not compact:  # on the UB side a block starts on 32 bytes and gaps count blocks
        dst_pitch = ceil_block(left + length + right) + dst_gap * BLOCK
    elif name.startswith("PadOut") and not compact:
        src_pitch = ceil_block(length) + src_gap * BLOCK
    padding = np.frombuffer(scalar_of(step, kind).tobytes(), np.uint8)
    if into_ub and compact:
        data = np.concatenate([origin[begin + i * src_pitch :][:length] for i in range(count)])
        put(destination, written, to, padded(data, left, right, padding, step["mode"]))
        return written
    for i in range(count):
        data = origin[begin + i * src_pitch :][:length].copy()
        put(destination, written, to + i * dst_pitch, padded(data, left, right, padding, step["mode"]) if into_ub else data)
    return written


def padded(data, left: int, right: int, value, is_pad):
    """A block with its padding, up to a multiple of 32 bytes. Without isPad the device leaves the rest open: all ones here."""
    if not is_pad:
        value = np.array([255], np.uint8)
    elif left == right == 0:
        value = data[: value.size]  # the first element of the block
    behind = ceil_block(left + data.size + right) - left - data.size
    return np.concatenate([np.resize(value, left), data, np.resize(value, behind)])
