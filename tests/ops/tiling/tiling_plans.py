"""The tiling functions of op_host as Python functions: compiled on first use, called through ctypes."""

import ctypes
import functools
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Chip:
    cores: int
    ub_bytes: int
    regbase: bool
    cube_cores: int = 0
    l0c_bytes: int = 131072
    l2_bytes: int = 201326592


#: the names of the published tables: 910B1/B2 and most 910_93; 910B3/B4; 950
CHIPS = {"A48": Chip(48, 196608, False, 24), "A40": Chip(40, 196608, False, 20),
         "D64": Chip(64, 253952, True, 32, l0c_bytes=262144, l2_bytes=134217728)}
L1_BYTES, L0_BYTES = 524288, 65536  # of every cube core

_U32, _U64, _F32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float


class PostPlan(ctypes.Structure):
    _fields_ = [(name, _U32) for name in (
        "tokens", "hcMult", "hidden", "usedCores", "coresPerToken", "columnsPerCore", "formerCores", "rowsPerFormer", "rowsPerTail",
        "batchRows", "rowFactor", "dFactor", "dLoop", "weightBytes", "combOffset", "valueBytes", "inBytes", "residualOffset",
        "outBytes", "sumBytes", "wideBytes", "ubBytes")]


class InvRmsPlan(ctypes.Structure):
    _fields_ = [("rowElements", _U64), ("tokens", _U32), ("epsilon", _F32), ("inverseCount", _F32)] + [
        (name, _U32) for name in (
            "usedCores", "formerCores", "rowsPerFormer", "rowsPerTail", "rowFactor", "columnFactor", "columnLoop", "workRows",
            "workColumns", "outRows", "xBytes", "workBytes", "sumBytes", "outBytes", "ubBytes")]


class SinkhornPlan(ctypes.Structure):
    _fields_ = [(name, _U32) for name in ("tokens", "hcMult", "hidden", "sinkhornIters")] + [("hcEps", _F32)] + [
        (name, _U32) for name in (
            "usedCores", "coresPerToken", "columnsPerCore", "formerCores", "rowsPerFormer", "rowsPerTail", "batchRows",
            "chunkTokens", "mixPitch", "mixScales", "mixParts", "rowFactor", "dFactor", "dLoop", "mixBytes", "rsqrtOffset", "postBytes",
            "combBytes", "preBytes", "constantBytes", "planeBytes", "workBytes", "xBytes", "yBytes", "ubBytes")]


class Shares(ctypes.Structure):
    _fields_ = [(name, _U32) for name in ("count", "longer", "units")]

    def sizes(self) -> list[int]:
        """Units of each share, in order."""
        return [self.units] * (self.count - self.longer) + [self.units + 1] * self.longer


class PreData(ctypes.Structure):
    _fields_ = [("rowElements", _U32), ("inverseCount", _F32), ("normEps", _F32)] + [
        (name, _U32) for name in ("mix", "partialPitch", "squareColumn", "parts")] + [("slices", Shares)] + [
        (name, _U32) for name in ("tileColumns", "tileBuffers", "groupTokens", "fnBytes", "xBytes", "wideBytes", "sumBytes",
                                  "outBytes", "scaled")] + [("blocks", Shares), ("kParts", Shares)] + [
        (name, _U32) for name in ("cubeCores", "xPitch", "termColumns", "blockRows", "xL1", "kL1", "kL0", "tileRows")] + [
        ("rows", SinkhornPlan), ("ubBytes", _U32)]


class PrePlan(ctypes.Structure):
    _fields_ = [("key", _U64), ("blockDim", _U32), ("workspaceBytes", _U64), ("data", PreData)]


class RecurrentBuffers(ctypes.Structure):
    _fields_ = [(name, _U32) for name in (
        "keyPitch", "valuePitch", "gatePitch", "chunkTokens", "spare", "inBytes", "inValues", "inKeyStates", "keyStateStride", "inValueStates",
        "inKeyWeights", "keyWeightStride", "inValueWeights", "inKeyBias", "inValueBias", "inGate", "inBeta", "inGateBias", "stateBytes",
        "outBytes", "convOutBytes", "workBytes", "scratchFloats", "sumRows", "ubBytes")]


class ShortConvBuffers(ctypes.Structure):
    _fields_ = [(name, _U32) for name in (
        "parts", "tileGroups", "chunkTokens", "pitch", "inBytes", "inX", "inC", "inStates", "inWeights", "inBias", "outBytes",
        "convOutBytes", "windowBytes", "workBytes", "planeFloats", "ubBytes")]


class ChunkedData(ctypes.Structure):
    _fields_ = [(name, _U32) for name in ("cubeCores", "windowChunks", "lanes", "spare", "operandBuffers")] + [(name, _U64) for name in (
        "queries", "keys", "values", "scales", "products", "squares", "scaled", "factors", "operands", "updates", "carried", "bytes")]


class LinearAttentionData(ctypes.Structure):
    _fields_ = [(name, _U32) for name in (
        "sequences", "tokens", "sequenceTokens", "slots", "channels", "convChannels", "taps", "keyHeads", "valueHeads", "keyDim",
        "valueDim", "perChannelGate", "useQkL2norm", "gateFold")] + [("queryScale", _F32)] + [
        (name, _U32) for name in ("usedCores", "valueTile", "valueTiles", "pieces", "wholeItems", "sequenceWeight")] + [
        ("buffers", RecurrentBuffers), ("conv", ShortConvBuffers), ("chunked", ChunkedData)]


class LinearAttentionPlan(ctypes.Structure):
    _fields_ = [("kernel", _U64), ("blockDim", _U32), ("workspaceBytes", _U64), ("data", LinearAttentionData)]


class Refused(ValueError):
    """The tiling function answered with a sentence instead of a plan."""


@functools.cache
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libtiling.so"
        sources = [Path(__file__).with_name("tiling_shim.cpp"), *ROOT.glob("op_host/*/*_tiling.cpp")]
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                        f"-I{ROOT}", *map(str, sources), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    for size in (library.PostPlanBytes, library.InvRmsPlanBytes, library.SinkhornPlanBytes, library.PrePlanBytes,
                 library.LinearAttentionPlanBytes):
        size.restype = _U64
    assert library.PostPlanBytes() == ctypes.sizeof(PostPlan)
    assert library.InvRmsPlanBytes() == ctypes.sizeof(InvRmsPlan)
    assert library.SinkhornPlanBytes() == ctypes.sizeof(SinkhornPlan)
    assert library.PrePlanBytes() == ctypes.sizeof(PrePlan)
    assert library.LinearAttentionPlanBytes() == ctypes.sizeof(LinearAttentionPlan)
    return library


def _plan(function, plan, *arguments):
    message = ctypes.create_string_buffer(1024)
    if function(*arguments, ctypes.byref(plan), message, _U64(len(message))):
        raise Refused(message.value.decode())
    return plan


def post(chip: Chip, tokens: int, hc_mult: int, hidden: int, element_bytes: int = 2, weight_bytes: int = 4) -> PostPlan:
    return _plan(_library().PlanPost, PostPlan(), _U64(tokens), ctypes.c_int64(hc_mult), _U64(hidden), _U32(element_bytes),
                 _U32(weight_bytes), _U32(chip.cores), _U64(chip.ub_bytes), ctypes.c_int(chip.regbase))


def inv_rms(chip: Chip, tokens: int, row_elements: int, element_bytes: int, epsilon: float = 1e-6) -> InvRmsPlan:
    return _plan(_library().PlanInvRms, InvRmsPlan(), _U64(tokens), _U64(row_elements), _U32(element_bytes), _F32(epsilon),
                 _U32(chip.cores), _U64(chip.ub_bytes), ctypes.c_int(chip.regbase))


def sinkhorn(chip: Chip, tokens: int, hc_mult: int, hidden: int, element_bytes: int = 2, iters: int = 20,
             eps: float = 1e-6) -> SinkhornPlan:
    return _plan(_library().PlanSinkhorn, SinkhornPlan(), _U64(tokens), ctypes.c_int64(hc_mult), _U64(hidden),
                 ctypes.c_int64(iters), _U32(element_bytes), _F32(eps), _U32(chip.cores), _U64(chip.ub_bytes),
                 ctypes.c_int(chip.regbase))


#: tiling keys of hc_pre, and columns of its OpDef
DECODE, GRID, STREAM, WIDEN = 0, 1, 2, 3
BFLOAT16, FLOAT16, FLOAT32 = 0, 1, 2


def pre(chip: Chip, tokens: int, hc_mult: int, hidden: int, dtype: int = BFLOAT16, iters: int = 20, norm_eps: float = 1e-6,
        hc_eps: float = 1e-6) -> PrePlan:
    cube = [_U64(size) for size in (L1_BYTES, L0_BYTES, L0_BYTES, chip.l0c_bytes, chip.l2_bytes)]
    return _plan(_library().PlanPre, PrePlan(), _U64(tokens), ctypes.c_int64(hc_mult), _U64(hidden), ctypes.c_int64(iters),
                 _U32(dtype), _F32(norm_eps), _F32(hc_eps), _U32(chip.cores), _U64(chip.ub_bytes), ctypes.c_int(chip.regbase),
                 _U32(chip.cube_cores), *cube)


#: tiling keys of fused_linear_attention
SHORT_CONV, RECURRENT, CHUNKED = 0, 1, 2


def linear_attention(chip: Chip, attn_type: str = "gated_delta_rule", batch: int = 1, length: int = 1, heads: tuple = (16, 32),
                     dims: tuple = (128, 128), taps: int = 4, sequences: int | None = None, slots: int | None = None,
                     conv_state: bool = True, norm: bool = True, fold: bool = False, element_bytes: int = 2,
                     gate_bytes: int = 2) -> LinearAttentionPlan:
    """`sequences` is the number of them with cu_seqlens."""
    count = batch if sequences is None else sequences
    return _plan(_library().PlanLinearAttention, LinearAttentionPlan(), attn_type.encode(), *map(ctypes.c_int64, (*heads, *dims)),
                 _U64(batch), _U64(length), _U64(count), ctypes.c_int(sequences is not None), _U64(count if slots is None else slots),
                 ctypes.c_int64(taps), *map(ctypes.c_int, (conv_state, norm, fold)), _U32(element_bytes), _U32(gate_bytes),
                 _U32(chip.cores), _U64(chip.ub_bytes), ctypes.c_int(chip.regbase), _U32(chip.cube_cores))


def rows_of_core(plan, group: int) -> int:
    """Rows of a core (of a group of cores that share rows)."""
    return plan.rowsPerFormer if group < plan.formerCores else plan.rowsPerTail


def tiles(plan: SinkhornPlan | PostPlan, rows: int, columns: int):
    """(row, rows, column, columns) of the tiles of a core, in the order of op_kernel/common/tiles.h."""
    row = 0
    while row < rows:
        batch_end = min(rows, (row // plan.batchRows + 1) * plan.batchRows)
        tile_rows = min(plan.rowFactor, batch_end - row)
        for column in range(0, columns, plan.dFactor):
            yield row, tile_rows, column, min(plan.dFactor, columns - column)
        row += tile_rows


def inv_rms_tiles(plan: InvRmsPlan, rows: int):
    """(row, rows, column, columns) of the x tiles of a core."""
    for first in range(0, rows, plan.outRows):
        for row in range(first, min(first + plan.outRows, rows), plan.rowFactor):
            tile_rows = min(plan.rowFactor, first + plan.outRows - row, rows - row)
            for piece in range(plan.columnLoop):
                column = piece * plan.columnFactor
                yield row, tile_rows, column, min(plan.columnFactor, plan.rowElements - column)
