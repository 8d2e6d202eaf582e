"""Cube instructions and Matmul objects: fields, operands and calls that are checked, each broken once, beside a kernel that is silent."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

RULES = Path(__file__).parent / "rules"
SOCS = ("ascend910b", "ascend910_93", "ascend950")

#: What the kernels of cube_fields.cpp are silent with.
INSTRUCTIONS = {
    "nd2nz": dict(ndNum=1, nValue=16, dValue=16, srcNdMatrixStride=0, srcDValue=16, dstNzC0Stride=16, dstNzNStride=1, dstNzMatrixStride=0,
                  misplaced=0),
    "load": dict(startIndex=0, repeatTimes=2, srcStride=1, dstGap=0, ifTranspose=0, addrMode=0, misplaced=0),
    "load_transposed": dict(startIndex=0, repeatTimes=1, srcStride=1, dstGap=0, dstFracGap=0, addrMode=0, misplaced=0),
    "mmad": dict(m=16, n=16, k=16, unitFlag=0, fmOffset=0, enSsparse=0, cmatrixSource=0, halfResult=0, misplaced=0),
    "fixpipe": dict(nSize=16, mSize=16, srcStride=16, dstStride=16, ndNum=1, unitFlag=0, toHalf=0, isChannelSplit=0, rowsIntoL1=0,
                    misplaced=0),
    "flag_of_cube_cores": dict(mode=0, flagId=3, awaited=3, eventId=7, syncAllOfVectorCores=0),
}
#: And those of matmul_fields.cpp.
OBJECTS = {
    "tiling_of_a_cube_core": dict(M=16, singleCoreM=16, baseM=16, baseN=16, baseK=16, depthA1=2, depthB1=2, stepM=1, stepN=1, dbL0A=1,
                                  dbL0B=1, dbL0C=1, iterateOrder=0, isBias=0),
    "calls_on_a_cube_core": dict(hasTiling=1, hasB=1, hasBias=0, orgKa=16, orgN=16, singleN=16, singleK=16, aInL0A=0, biasInL1=0,
                                 resultInL1=0),
    "a_in_l1": dict(nz=1, transposed=0),
    "result_of_bytes": dict(scaled=1),
    "result_after_another_object": dict(interleaved=0),
    "calls_of_a_vector_core": dict(hasTiling=1, initOnCube=0, singleN=16, singleK=16, hasWorkspace=1, ahead=1, partialSum=0, fetchToGm=0,
                                   atomic=0),
    "wait_for_all": dict(announced=1),
}
#: And those of cube_fields_950.cpp.
ONLY_950 = {
    "load_rectangle": dict(mStep=1, kStep=2, mStartPosition=0, ifTranspose=0),
    "fixpipe_to_one_core": dict(dualDstCtl=0),
}
FILES = {"cube_fields.cpp": INSTRUCTIONS, "matmul_fields.cpp": OBJECTS, "cube_fields_950.cpp": ONLY_950}
SILENT = {**INSTRUCTIONS, **OBJECTS, **ONLY_950}

#: Kernel, what is changed, the rule that it breaks, a piece of the message.
BROKEN = [
    ("nd2nz", {"ndNum": 4096}, "repeat-limit", "ndNum"),
    ("nd2nz", {"nValue": 16385}, "repeat-limit", "nValue"),
    ("nd2nz", {"dValue": 65536}, "repeat-limit", "dValue"),
    ("nd2nz", {"srcNdMatrixStride": 65536}, "stride-limit", "srcNdMatrixStride"),
    ("nd2nz", {"srcDValue": 65536}, "stride-limit", "srcDValue"),
    ("nd2nz", {"srcDValue": 0}, "stride-limit", "srcDValue"),
    ("nd2nz", {"dstNzC0Stride": 16385}, "stride-limit", "dstNzC0Stride"),
    ("nd2nz", {"dstNzNStride": 16385}, "stride-limit", "dstNzNStride"),
    ("nd2nz", {"dstNzMatrixStride": 65536}, "stride-limit", "dstNzMatrixStride"),
    ("nd2nz", {"misplaced": 1}, "pipe-legality", "dst lies in L0A, it has to be in L1"),
    ("load", {"startIndex": 65536}, "stride-limit", "startIndex"),
    ("load", {"repeatTimes": 256}, "repeat-limit", "repeatTimes"),
    ("load", {"srcStride": 65536}, "stride-limit", "srcStride"),
    ("load", {"dstGap": 65536}, "stride-limit", "dstGap"),
    ("load", {"ifTranspose": 1}, "dtype", "float has 32 bits"),
    ("load", {"addrMode": 1}, "argument", "addrMode"),
    ("load", {"misplaced": 1}, "pipe-legality", "dst lies in L1, it has to be in L0A"),
    ("load", {"misplaced": 2}, "pipe-legality", "src lies in L0B, it has to be in L1"),
    ("load_transposed", {"startIndex": 65536}, "stride-limit", "startIndex"),
    ("load_transposed", {"repeatTimes": 256}, "repeat-limit", "repeatTimes"),
    ("load_transposed", {"srcStride": 65536}, "stride-limit", "srcStride"),
    ("load_transposed", {"dstGap": 65536}, "stride-limit", "dstGap"),
    ("load_transposed", {"dstFracGap": 65536}, "stride-limit", "dstFracGap"),
    ("load_transposed", {"addrMode": 1}, "argument", "addrMode"),
    ("load_transposed", {"misplaced": 1}, "pipe-legality", "dst lies in L0C, it has to be in L0B"),
    ("load_transposed", {"misplaced": 2}, "pipe-legality", "src lies in L0A, it has to be in L1"),
    ("mmad", {"m": 4096}, "repeat-limit", "m is 4096"),
    ("mmad", {"n": 4096}, "repeat-limit", "n is 4096"),
    ("mmad", {"k": 4096}, "repeat-limit", "k is 4096"),
    ("mmad", {"unitFlag": 1}, "argument", "unitFlag is 1"),
    ("mmad", {"fmOffset": 1}, "argument", "not modelled"),
    ("mmad", {"enSsparse": 1}, "argument", "not modelled"),
    ("mmad", {"cmatrixSource": 1}, "argument", "cmatrixSource"),
    ("mmad", {"halfResult": 1}, "dtype", "Mmad does not multiply float into half"),
    ("mmad", {"misplaced": 1}, "pipe-legality", "dst lies in L1, it has to be in L0C"),
    ("mmad", {"misplaced": 2}, "pipe-legality", "fm lies in L0B, it has to be in L0A"),
    ("mmad", {"misplaced": 3}, "pipe-legality", "filter lies in L0A, it has to be in L0B"),
    ("fixpipe", {"nSize": 4096}, "repeat-limit", "nSize"),
    ("fixpipe", {"nSize": 0}, "repeat-limit", "nSize"),
    ("fixpipe", {"mSize": 8193}, "repeat-limit", "mSize"),
    ("fixpipe", {"srcStride": 65536}, "stride-limit", "srcStride"),
    ("fixpipe", {"srcStride": 8}, "argument", "less than mSize 16"),
    ("fixpipe", {"dstStride": 0}, "stride-limit", "dstStride"),
    ("fixpipe", {"ndNum": 0}, "repeat-limit", "ndNum"),
    ("fixpipe", {"unitFlag": 1}, "argument", "unitFlag is 1"),
    ("fixpipe", {"toHalf": 1}, "dtype", "quantPre does not convert float to float"),
    ("fixpipe", {"isChannelSplit": 1}, "argument", "isChannelSplit"),
    ("fixpipe", {"rowsIntoL1": 1}, "argument", "L1 takes the NZ layout"),
    ("fixpipe", {"misplaced": 1}, "pipe-legality", "dst lies in L0A, it has to be in GM or L1"),
    ("fixpipe", {"misplaced": 2}, "pipe-legality", "src lies in L0A, it has to be in L0C"),
    ("flag_of_cube_cores", {"mode": 1}, "pipe-legality", "mode 1 is between the vector cores"),
    ("flag_of_cube_cores", {"mode": 2}, "pipe-legality", "one kind only"),
    ("flag_of_cube_cores", {"flagId": 16}, "argument", "flagId is 16"),
    ("flag_of_cube_cores", {"awaited": -1}, "argument", "flagId is -1"),
    ("flag_of_cube_cores", {"eventId": 8}, "event-flag", "event id 8"),
    ("flag_of_cube_cores", {"syncAllOfVectorCores": 1}, "pipe-legality", "SyncAll<true>"),
    ("tiling_of_a_cube_core", {"M": 0}, "argument", "M is 0"),
    ("tiling_of_a_cube_core", {"singleCoreM": 0}, "argument", "singleCoreM is 0"),
    ("tiling_of_a_cube_core", {"baseM": 4081}, "argument", "baseM is 4081"),
    ("tiling_of_a_cube_core", {"baseM": 8}, "argument", "baseM is 8, it must be a multiple of 16"),
    ("tiling_of_a_cube_core", {"baseN": 8}, "argument", "baseN is 8, it must be a multiple of 16"),
    ("tiling_of_a_cube_core", {"baseK": 8}, "argument", "baseK is 8, it must be a multiple of 16"),
    ("tiling_of_a_cube_core", {"depthA1": 0}, "argument", "depthA1 is 0"),
    ("tiling_of_a_cube_core", {"stepM": 3}, "argument", "depthA1 is 2, fewer base matrices than the 3"),
    ("tiling_of_a_cube_core", {"stepN": 3}, "argument", "depthB1 is 2, fewer base matrices than the 3"),
    ("tiling_of_a_cube_core", {"dbL0A": 3}, "argument", "dbL0A is 3"),
    ("tiling_of_a_cube_core", {"dbL0C": 0}, "argument", "dbL0C is 0"),
    ("tiling_of_a_cube_core", {"iterateOrder": 2}, "argument", "iterateOrder is 2"),
    ("tiling_of_a_cube_core", {"baseM": 2048}, "local-memory-overflow", "does not fit L0A"),
    ("tiling_of_a_cube_core", {"baseN": 2048}, "local-memory-overflow", "does not fit L0B"),
    ("tiling_of_a_cube_core", {"baseM": 512, "baseN": 512}, "local-memory-overflow", "does not fit L0C"),
    ("tiling_of_a_cube_core", {"depthA1": 1024, "stepM": 1024}, "local-memory-overflow", "does not fit L1"),
    ("calls_on_a_cube_core", {"hasTiling": 0}, "argument", "Init without a tiling"),
    ("calls_on_a_cube_core", {"hasB": 0}, "argument", "Iterate without SetTensorB"),
    ("calls_on_a_cube_core", {"hasBias": 1}, "argument", "SetBias, but the tiling has isBias 0"),
    ("calls_on_a_cube_core", {"orgKa": 65536}, "stride-limit", "A has rows of 65536 elements"),
    ("calls_on_a_cube_core", {"orgN": 65536}, "stride-limit", "B has rows of 65536 elements"),
    ("calls_on_a_cube_core", {"singleN": 17}, "argument", "n of this product is 17"),
    ("calls_on_a_cube_core", {"singleK": 17}, "argument", "k of this product is 17"),
    ("calls_on_a_cube_core", {"aInL0A": 1}, "pipe-legality", "the matrix lies in L0A"),
    ("calls_on_a_cube_core", {"biasInL1": 1}, "pipe-legality", "a bias in L1"),
    ("calls_on_a_cube_core", {"resultInL1": 1}, "pipe-legality", "a cube core brings C to GM"),
    ("a_in_l1", {"nz": 0}, "argument", "a matrix in L1 is NZ there"),
    ("a_in_l1", {"transposed": 1}, "dtype", "a transposed matrix of float in L1"),
    ("result_of_bytes", {"scaled": 0}, "argument", "without SetQuantScalar"),
    ("result_after_another_object", {"interleaved": 1}, "argument", "another object has used L0C"),
    ("calls_of_a_vector_core", {"hasTiling": 0}, "argument", "Init without a tiling"),
    ("calls_of_a_vector_core", {"initOnCube": 1}, "pipe-legality", "Init on a cube core"),
    ("calls_of_a_vector_core", {"singleN": 4}, "alignment", "C in UB has rows of 16 bytes"),
    ("calls_of_a_vector_core", {"singleK": 15}, "alignment", "a matrix in UB has rows of 60 bytes"),
    ("calls_of_a_vector_core", {"hasWorkspace": 0}, "argument", "Iterate<false> without SetWorkspace"),
    ("calls_of_a_vector_core", {"ahead": 0}, "argument", "GetTensorC<false> into UB comes after Iterate<false>"),
    ("calls_of_a_vector_core", {"partialSum": 1}, "argument", "enPartialSum"),
    ("calls_of_a_vector_core", {"fetchToGm": 1}, "argument", "the result is fetched into UB"),
    ("calls_of_a_vector_core", {"atomic": 1}, "argument", "UB takes no atomic writes"),
    ("wait_for_all", {"announced": 0}, "argument", "WaitIterateAll without IterateAll<false>"),
    ("load_rectangle", {"mStep": 256}, "repeat-limit", "mStep"),
    ("load_rectangle", {"kStep": 256}, "repeat-limit", "kStep"),
    ("load_rectangle", {"mStartPosition": 1}, "out-of-range", "LoadData"),
    ("load_rectangle", {"ifTranspose": 1}, "dtype", "float has 32 bits"),
    ("fixpipe_to_one_core", {"dualDstCtl": 1}, "argument", "not modelled"),
]


def file_of(entry: str) -> Path:
    return RULES / next(name for name, kernels in FILES.items() if entry in kernels)


def on_their_chips(cases):
    """(soc, *case) of every case, whose first item is the kernel."""
    return [(soc, *case) for case in cases for soc in (SOCS[-1:] if case[0] in ONLY_950 else SOCS)]


def run(soc: str, entry: str, **changed):
    x, y = np.arange(512, dtype=np.float32), np.zeros(256, np.float32)
    arguments = {"x": x, "y": y, **SILENT[entry], **changed}
    return custom_ops.sim.launch(file_of(entry), entry, 1, arguments, soc=soc, inputs=["x"])


@pytest.mark.parametrize(("soc", "entry", "changed", "rule", "says"), on_their_chips(BROKEN), ids=lambda value: str(value)[:40])
def test_broken_field_is_reported(soc, entry, changed, rule, says):
    with pytest.raises(KernelError) as caught:
        run(soc, entry, **changed)
    assert caught.value.rule == rule, str(caught.value)
    assert says in str(caught.value) and Path(caught.value.file).name == file_of(entry).name


@pytest.mark.parametrize(("soc", "entry"), on_their_chips([(entry,) for entry in SILENT]))
def test_the_same_kernel_with_its_values_right_is_silent(soc, entry):
    assert run(soc, entry).findings == []
