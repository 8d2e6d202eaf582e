"""Random steps for the vector kernels, and batches of them: one launch, one comparison per step."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from vector_reference import BLOCK, FORMS, KERNELS, REPEAT, STEP, TYPES, operations

import custom_ops

SOCS = ("ascend910b", "ascend950")
REGION = 8192  # bytes for each of dst, src0, src1 and one more operand


def fill(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Eighths in -125 to 125 for floats, with a few infinities, NaN and extremes; integers of the whole range."""
    if dtype.kind in "iu":
        return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    values = rng.integers(-1000, 1000, count) / 8
    special = np.array([np.inf, -np.inf, np.nan, 3e4, -3e4, 1e-7])
    values = np.where(rng.random(count) < 0.02, rng.choice(special, count), values)
    return values.astype(dtype)


def random_strides(rng, blocks: int, is_dst: bool) -> tuple[int, int]:
    """Block and repeat stride of an operand with `blocks` blocks per repeat; repeats of dst do not overlap."""
    if rng.random() < 0.4:
        return 1, blocks
    block = int(rng.integers(1 if is_dst else 0, 4))
    lowest = (blocks - 1) * block + 1 if is_dst else 0
    return block, int(rng.integers(lowest, lowest + 6 if is_dst else 25))


def random_step(rng, form: str, dtype: str, source: str, counter: bool = False):
    """(step, image of UB): dst, src0 and src1 in regions of their own."""
    dst, src = TYPES[dtype].itemsize, TYPES[source].itemsize
    lanes = REPEAT // max(dst, src)
    step = np.zeros((), STEP)
    step["type"], step["from"] = list(TYPES).index(dtype), list(TYPES).index(source)
    step["form"], step["counter"] = FORMS.index(form), counter
    step["address"] = np.arange(4) * REGION
    step["repeats"] = rng.integers(1, 9)
    most = REGION // max(dst, src) // (4 if counter else 1)  # strided repeats need more room
    step["count"] = rng.choice([1, lanes - 1, lanes, lanes + 1, rng.integers(1, most + 1)])
    step["mask"] = rng.integers(1, lanes + 1) if rng.random() < 0.8 else lanes
    words = rng.integers(0, 1 << 63, 2, np.uint64) * np.uint64(2) + np.uint64(1)
    step["bits"] = [words[0] & np.uint64((1 << min(lanes, 64)) - 1), words[1] if lanes > 64 else 0]
    if counter:
        step["mask"] = step["count"]
        if form == "bits":
            step["bits"] = [step["count"], 0]
    for operand, size in enumerate((dst, src, src)):
        step["block"][operand], step["repeat"][operand] = random_strides(rng, lanes * size // BLOCK, operand == 0)
    image = fill(rng, TYPES[source], 4 * REGION // src).view(np.uint8)
    image[:REGION] = fill(rng, TYPES[dtype], REGION // dst).view(np.uint8)
    return step, image


def ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers of the same order, one apart per unit in the last place."""
    bits = values.view(f"i{values.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{values.dtype.itemsize}").min - bits, bits)


@cache
def build(kernel: str, entry: str, gm: int) -> None:
    """Compiles the kernel for both instruction sets at a time: a launch without steps. `gm`: tensors after the steps."""
    nothing = [np.zeros(32, np.uint8) for _ in range(3 + gm)]

    def compiled(soc):
        custom_ops.sim.launch(KERNELS / f"{kernel}.cpp", entry, 1, [*nothing, np.uint32(0), np.uint32(32)], soc=soc)

    with ThreadPoolExecutor(len(SOCS)) as pool:
        list(pool.map(compiled, SOCS))


class Batch:
    def __init__(self, kernel: str, entry: str, soc: str, rng, image_bytes: int = 4 * REGION):
        self.kernel, self.entry, self.soc, self.rng, self.image_bytes = kernel, entry, soc, rng, image_bytes
        self.operations = operations(kernel)
        self.steps, self.images, self.cases = [], [], []

    def add(self, step, image, name: str, dtype: str, source: str, reference, ulps: int = 0):
        """reference(image, step, name, dtype, source) changes the image and returns which bytes it wrote."""
        step["op"] = self.operations.index(name.split()[0])
        self.steps.append(step)
        self.images.append(image)
        self.cases.append((name, dtype, source, reference, ulps))

    def launch(self, *more, **options) -> np.ndarray:
        build(self.kernel, self.entry, len(more))
        images = np.concatenate(self.images)
        results = np.zeros_like(images)
        steps = np.array(self.steps, STEP).view(np.uint8)
        report = custom_ops.sim.launch(
            KERNELS / f"{self.kernel}.cpp", self.entry, 1,
            [images, results, steps, *more, np.uint32(len(self.steps)), np.uint32(self.image_bytes)],
            soc=self.soc, outputs=[1], inputs=[0, 2], **options,
        )  # fmt: skip
        assert report.findings == []
        return results.reshape(len(self.steps), -1)

    def check(self):
        assert self.steps
        for step, image, got, case in zip(self.steps, self.images, self.launch(), self.cases, strict=True):
            name, dtype, source, reference, ulps = case
            want = image.copy()
            with np.errstate(all="ignore"):
                written = reference(want, step, name, dtype, source)
            title = f"{name} {source} -> {dtype} on {self.soc}\n{dict(zip(STEP.names, step.item(), strict=True))}"
            assert_same(title, got, want, written, TYPES[dtype], ulps)


def assert_same(title: str, got, want, written, dtype: np.dtype, ulps: int = 0):
    """Bytes outside `written` must be equal; NaN equals NaN inside."""
    outside = np.flatnonzero((got != want) & ~written)
    assert outside.size == 0, f"{title}\nwrote bytes {outside[:8]} ... of UB, which are not the instruction's"
    if dtype.kind in "iu":
        wrong = got.view(dtype) != want.view(dtype)
    else:
        a, b = got.view(dtype), want.view(dtype)
        wrong = (np.abs(ordered(a) - ordered(b)) > ulps) & ~(np.isnan(a) & np.isnan(b))
        wrong &= written.reshape(-1, dtype.itemsize).any(axis=1)
    at = np.flatnonzero(wrong)
    assert at.size == 0, (
        f"{title}\n{at.size} elements differ, first at {at[:4]}: got {got.view(dtype)[at[:4]]}, want {want.view(dtype)[at[:4]]}"
    )
