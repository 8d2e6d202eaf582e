"""TCubeTiling as bytes, for kernels launched without op_host."""

import ctypes

FIELDS = (
    "usedCoreNum", "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK", "depthA1", "depthB1",
    "stepM", "stepN", "isBias", "transLength", "iterateOrder", "shareMode", "shareL1Size", "shareL0CSize", "shareUbSize", "batchM",
    "batchN", "singleBatchM", "singleBatchN", "stepKa", "stepKb", "depthAL1CacheUB", "depthBL1CacheUB", "dbL0A", "dbL0B", "dbL0C",
    *(f"{m}LayoutInfo{x}" for m, xs in (("A", "BSNGD"), ("B", "BSNGD"), ("C", ("B", "S1", "N", "G", "S2"))) for x in xs), "BatchNum",
)  # fmt: skip


class CubeTiling(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in FIELDS]


def cube_tiling(m, n, k, base, single=None, **fields):
    """The tiling of an m x k by k x n product in base matrices `base` = (m, n, k); `single`: what one core computes."""
    single = single or (m, n, k)
    default = dict(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=single[0], singleCoreN=single[1], singleCoreK=single[2], baseM=base[0],
                   baseN=base[1], baseK=base[2], depthA1=2, depthB1=2, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2, dbL0B=2,
                   dbL0C=1)  # fmt: skip
    return CubeTiling(**{**default, **fields})
