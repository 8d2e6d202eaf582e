"""Fields and operands of the cube's instructions: every one that is checked is broken once, beside the call that stays silent."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

SOURCE = Path(__file__).parent / "rules" / "cube_fields.cpp"
SOCS = ("ascend910b", "ascend910_93", "ascend950")

#: What the kernels of cube_fields.cpp are silent with.
SILENT = {
    "nd2nz": dict(ndNum=1, nValue=16, dValue=16, srcNdMatrixStride=0, srcDValue=16, dstNzC0Stride=16, dstNzNStride=1, dstNzMatrixStride=0,
                  misplaced=0),
    "load": dict(startIndex=0, repeatTimes=2, srcStride=1, dstGap=0, ifTranspose=0, addrMode=0, misplaced=0),
    "load_transposed": dict(startIndex=0, repeatTimes=1, srcStride=1, dstGap=0, dstFracGap=0, addrMode=0, misplaced=0),
    "mmad": dict(m=16, n=16, k=16, unitFlag=0, fmOffset=0, enSsparse=0, cmatrixSource=0, halfResult=0, misplaced=0),
    "fixpipe": dict(nSize=16, mSize=16, srcStride=16, dstStride=16, ndNum=1, unitFlag=0, toHalf=0, isChannelSplit=0, rowsIntoL1=0,
                    misplaced=0),
    "flag_of_cube_cores": dict(mode=0, flagId=3, awaited=3, eventId=7, syncAllOfVectorCores=0),
}

#: Kernel, the field that is changed, the rule that it breaks, a piece of the message.
BROKEN = [
    ("nd2nz", "ndNum", 4096, "repeat-limit", "ndNum"),
    ("nd2nz", "nValue", 16385, "repeat-limit", "nValue"),
    ("nd2nz", "dValue", 65536, "repeat-limit", "dValue"),
    ("nd2nz", "srcNdMatrixStride", 65536, "stride-limit", "srcNdMatrixStride"),
    ("nd2nz", "srcDValue", 65536, "stride-limit", "srcDValue"),
    ("nd2nz", "srcDValue", 0, "stride-limit", "srcDValue"),
    ("nd2nz", "dstNzC0Stride", 16385, "stride-limit", "dstNzC0Stride"),
    ("nd2nz", "dstNzNStride", 16385, "stride-limit", "dstNzNStride"),
    ("nd2nz", "dstNzMatrixStride", 65536, "stride-limit", "dstNzMatrixStride"),
    ("nd2nz", "misplaced", 1, "pipe-legality", "dst lies in L0A, it has to be in L1"),
    ("load", "startIndex", 65536, "stride-limit", "startIndex"),
    ("load", "repeatTimes", 256, "repeat-limit", "repeatTimes"),
    ("load", "srcStride", 65536, "stride-limit", "srcStride"),
    ("load", "dstGap", 65536, "stride-limit", "dstGap"),
    ("load", "ifTranspose", 1, "dtype", "float has 32 bits"),
    ("load", "addrMode", 1, "argument", "addrMode"),
    ("load", "misplaced", 1, "pipe-legality", "dst lies in L1, it has to be in L0A"),
    ("load", "misplaced", 2, "pipe-legality", "src lies in L0B, it has to be in L1"),
    ("load_transposed", "startIndex", 65536, "stride-limit", "startIndex"),
    ("load_transposed", "repeatTimes", 256, "repeat-limit", "repeatTimes"),
    ("load_transposed", "srcStride", 65536, "stride-limit", "srcStride"),
    ("load_transposed", "dstGap", 65536, "stride-limit", "dstGap"),
    ("load_transposed", "dstFracGap", 65536, "stride-limit", "dstFracGap"),
    ("load_transposed", "addrMode", 1, "argument", "addrMode"),
    ("load_transposed", "misplaced", 1, "pipe-legality", "dst lies in L0C, it has to be in L0B"),
    ("load_transposed", "misplaced", 2, "pipe-legality", "src lies in L0A, it has to be in L1"),
    ("mmad", "m", 4096, "repeat-limit", "m is 4096"),
    ("mmad", "n", 4096, "repeat-limit", "n is 4096"),
    ("mmad", "k", 4096, "repeat-limit", "k is 4096"),
    ("mmad", "unitFlag", 1, "argument", "unitFlag is 1"),
    ("mmad", "fmOffset", 1, "argument", "not modelled"),
    ("mmad", "enSsparse", 1, "argument", "not modelled"),
    ("mmad", "cmatrixSource", 1, "argument", "cmatrixSource"),
    ("mmad", "halfResult", 1, "dtype", "Mmad does not multiply float into half"),
    ("mmad", "misplaced", 1, "pipe-legality", "dst lies in L1, it has to be in L0C"),
    ("mmad", "misplaced", 2, "pipe-legality", "fm lies in L0B, it has to be in L0A"),
    ("mmad", "misplaced", 3, "pipe-legality", "filter lies in L0A, it has to be in L0B"),
    ("fixpipe", "nSize", 4096, "repeat-limit", "nSize"),
    ("fixpipe", "nSize", 0, "repeat-limit", "nSize"),
    ("fixpipe", "mSize", 8193, "repeat-limit", "mSize"),
    ("fixpipe", "srcStride", 65536, "stride-limit", "srcStride"),
    ("fixpipe", "srcStride", 8, "argument", "less than mSize 16"),
    ("fixpipe", "dstStride", 0, "stride-limit", "dstStride"),
    ("fixpipe", "ndNum", 0, "repeat-limit", "ndNum"),
    ("fixpipe", "unitFlag", 1, "argument", "unitFlag is 1"),
    ("fixpipe", "toHalf", 1, "dtype", "quantPre does not convert float to float"),
    ("fixpipe", "isChannelSplit", 1, "argument", "isChannelSplit"),
    ("fixpipe", "rowsIntoL1", 1, "argument", "L1 takes the NZ layout"),
    ("fixpipe", "misplaced", 1, "pipe-legality", "dst lies in L0A, it has to be in GM or L1"),
    ("fixpipe", "misplaced", 2, "pipe-legality", "src lies in L0A, it has to be in L0C"),
    ("flag_of_cube_cores", "mode", 1, "pipe-legality", "mode 1 is between the vector cores"),
    ("flag_of_cube_cores", "mode", 2, "pipe-legality", "one kind only"),
    ("flag_of_cube_cores", "flagId", 16, "argument", "flagId is 16"),
    ("flag_of_cube_cores", "awaited", -1, "argument", "flagId is -1"),
    ("flag_of_cube_cores", "eventId", 8, "event-flag", "event id 8"),
    ("flag_of_cube_cores", "syncAllOfVectorCores", 1, "pipe-legality", "SyncAll<true>"),
]


def run(soc: str, entry: str, **changed):
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    arguments = {"x": x, "y": y, **SILENT[entry], **changed}
    return custom_ops.sim.launch(SOURCE, entry, 1, arguments, soc=soc, inputs=["x"], outputs=["y"])


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize(("entry", "field", "value", "rule", "says"), BROKEN)
def test_broken_field_is_reported(entry, field, value, rule, says, soc):
    with pytest.raises(KernelError) as caught:
        run(soc, entry, **{field: value})
    assert caught.value.rule == rule, str(caught.value)
    assert says in str(caught.value) and Path(caught.value.file).name == SOURCE.name


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("entry", SILENT)
def test_the_same_call_with_its_fields_right_is_silent(entry, soc):
    assert run(soc, entry).findings == []
