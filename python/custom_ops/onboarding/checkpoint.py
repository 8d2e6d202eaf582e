"""A model directory read without its weights: config.json and the headers of its safetensors files, all checked before they are used.

The files are somebody else's: a header is believed only after its offsets fit the file, a shard name only when it is a plain file name
of this folder. Pickled weights (.bin, .pt, .pth, .ckpt) are never opened, code named in config.json (auto_map) is never run.
Format: 8 bytes little-endian header length n, n bytes of JSON {name: {dtype, shape, data_offsets}}, then the data.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import mmap
import stat
import struct
from pathlib import Path
from typing import NamedTuple

from .errors import OnboardingError, nearest, some

# dtype of the header -> (torch name, bytes per element); what torch has no name for cannot be read
DTYPES = {
    "F64": ("float64", 8), "F32": ("float32", 4), "F16": ("float16", 2), "BF16": ("bfloat16", 2), "I64": ("int64", 8), "I32": ("int32", 4),
    "I16": ("int16", 2), "I8": ("int8", 1), "U8": ("uint8", 1), "BOOL": ("bool", 1), "U16": ("uint16", 2), "U32": ("uint32", 4),
    "U64": ("uint64", 8), "F8_E4M3": ("float8_e4m3fn", 1), "F8_E5M2": ("float8_e5m2", 1),
}
FLOATS = ("F64", "F32", "F16", "BF16")
_MOST_HEADER = 100_000_000  # bytes; the limit of the format's own reader
_MOST_JSON = 256 << 20      # bytes of config.json or an index; a name per tensor is far below
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


class TensorInfo(NamedTuple):
    """One tensor of a checkpoint. `begin`, `end`: bytes of its file."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as the header spells it: "BF16"
    file: Path
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    @property
    def torch_dtype(self):
        import torch

        return getattr(torch, DTYPES[self.dtype][0])


@contextlib.contextmanager
def collector_paused():
    """For code that makes many objects and no cycles: with 70,000 tensors the collector takes two thirds of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Checkpoint:
    """`tensors`: name -> TensorInfo of every tensor; `config`: config.json as a dict; `files`: the safetensors files.

    Raises OnboardingError when a file is missing, damaged or dangerous: the text names the file and what is wrong with it.
    `read(name)` is the only thing that touches weights.
    """

    @collector_paused()
    def __init__(self, model_dir: str | Path):
        self.folder = Path(model_dir)
        self.config = read_config(self.folder)
        self.files, listed = _files(self.folder)
        self.tensors: dict[str, TensorInfo] = {}
        self.unindexed: list[str] = []  # tensors of a shard that the index does not list: no reader loads them
        for file in self.files:
            for name, info in read_header(file).items():
                if listed is not None and listed.get(name) != file.name:
                    self.unindexed.append(name)
                elif name in self.tensors:
                    raise OnboardingError(f"{file}: tensor {name!r} is also in {self.tensors[name].file.name}")
                else:
                    self.tensors[name] = info
        self._compare_with(listed or {})
        self._maps: dict[Path, mmap.mmap] = {}

    def _compare_with(self, listed: dict[str, str]) -> None:
        missing = [name for name in listed if name not in self.tensors]
        if missing:
            shown = some([f"{name} (in {listed[name]})" for name in missing])
            raise OnboardingError(f"{self.folder / INDEX}: lists tensors that its shards do not hold: {shown}")

    @property
    def names(self) -> list[str]:
        return list(self.tensors)

    @property
    def nbytes(self) -> int:
        return sum(info.nbytes for info in self.tensors.values())

    def read(self, name: str):
        """The tensor as torch has it, a private view of the file: pages are read when they are used, writes stay in memory."""
        import torch

        if name not in self.tensors:
            raise OnboardingError(f"{self.folder}: no tensor {name!r}; {nearest(name, self.tensors)}")
        info = self.tensors[name]
        kind = info.torch_dtype
        if info.nbytes == 0:
            return torch.empty(info.shape, dtype=kind)
        data = self._map(info.file)
        if len(data) < info.end:
            raise OnboardingError(f"{info.file}: became shorter since its header was read")
        flat = torch.frombuffer(data, dtype=torch.uint8, count=info.nbytes, offset=info.begin)
        if info.begin % kind.itemsize:  # a view needs its alignment
            flat = flat.clone()
        return flat.view(kind).reshape(info.shape)

    def forget(self, name: str) -> None:
        """Lets go of the pages of a tensor; one that is still in use reads them again. A loader's peak is then not the whole file."""
        info, page = self.tensors[name], mmap.PAGESIZE
        begin, end = -(-info.begin // page) * page, info.end // page * page
        if info.file in self._maps and end > begin:
            self._maps[info.file].madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def _map(self, file: Path) -> mmap.mmap:
        if file not in self._maps:
            with open(file, "rb") as stream:
                self._maps[file] = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        return self._maps[file]

    def close(self) -> None:
        """Drops the mapped files; tensors that were read keep theirs."""
        self._maps.clear()


def read_config(folder: Path) -> dict:
    """config.json of a model directory."""
    if not folder.is_dir():
        raise OnboardingError(f"{folder}: no such model directory")
    return read_object(folder / "config.json")


def read_object(path: Path) -> dict:
    """As read_json, of a file that must hold an object."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise OnboardingError(f"{path}: must hold an object, holds {type(content).__name__}")
    return content


def read_json(path: Path):
    """JSON of a file. NaN and Infinity, keys given twice, deep nesting and very large files are errors."""
    try:
        size = _size(path)
        if size > _MOST_JSON:
            raise OnboardingError(f"{path}: {size} bytes of JSON, at most {_MOST_JSON} are read")
        return _parse(path.read_bytes(), path)
    except OSError as error:
        raise OnboardingError(f"{path}: {error.strerror}") from None


def _size(path: Path) -> int:
    """Bytes of a regular file: a pipe or a device may give none, or no end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OnboardingError(f"{path}: is no regular file")
    return found.st_size


def _parse(text: bytes, path: Path, what: str = "JSON"):
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise OnboardingError(f"{path}: {what} is nested too deeply") from None
    except ValueError as error:
        raise OnboardingError(f"{path}: {what} cannot be read: {error}") from None


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"key {twice[:100]!r} stands twice")
    return found


def _no_constant(name: str):
    raise ValueError(f"{name} is no number of JSON")


def _files(folder: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The safetensors files of a model and, with an index, tensor name -> file name."""
    if (folder / INDEX).exists():
        return _indexed(folder)
    if (folder / SINGLE).exists():
        return [folder / SINGLE], None
    there = sorted(path.name for path in folder.iterdir())
    others = [name for name in there if name.endswith(".safetensors")]
    if len(others) == 1:
        return [folder / others[0]], None
    if others:
        raise OnboardingError(f"{folder}: {len(others)} safetensors files ({some(others)}) without {INDEX}: which tensors "
                              "belong to the model is not known")
    pickles = [name for name in there if name.endswith(_PICKLES)]
    if pickles:
        raise OnboardingError(f"{folder}: only pickled weights ({some(pickles)}), which can run any code and are never loaded; "
                              "save the model with safetensors where you trust it: model.save_pretrained(folder)")
    raise OnboardingError(f"{folder}: no {SINGLE} and no {INDEX}")


def read_index(folder: Path) -> dict[str, str]:
    """weight_map of the index, its file names checked: tensor name -> file name."""
    path = folder / INDEX
    index = read_json(path)
    listed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(listed, dict) or not listed or not all(isinstance(file, str) for file in listed.values()):
        raise OnboardingError(f"{path}: weight_map must be an object of tensor name: file name, and not empty")
    for name in sorted(set(listed.values())):
        if "/" in name or "\\" in name or "\0" in name or name.startswith(".") or not name.endswith(".safetensors"):
            raise OnboardingError(f"{path}: shard {name[:100]!r} is no plain name of a .safetensors file of this folder")
    return listed


def _indexed(folder: Path) -> tuple[list[Path], dict[str, str]]:
    listed = read_index(folder)
    shards = sorted(set(listed.values()))
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing:
        raise OnboardingError(f"{folder}: {len(missing)} of {len(shards)} shards are missing: {some(missing)}; fetch the whole checkpoint")
    return [folder / name for name in shards], listed


def read_header(file: Path) -> dict[str, TensorInfo]:
    """Tensors of one safetensors file. Data must follow the header without gaps or overlaps and end with the file."""
    try:
        size = _size(file)
        with open(file, "rb") as stream:
            start = stream.read(8)
            if len(start) < 8:
                raise OnboardingError(f"{file}: {size} bytes, too short for a safetensors file")
            (length,) = struct.unpack("<Q", start)
            if length > _MOST_HEADER or 8 + length > size:
                raise OnboardingError(f"{file}: not a safetensors file, or cut short: its header would be {length} bytes, "
                                      f"the file has {size}")
            header = _parse(stream.read(length), file, "header")
    except OSError as error:
        raise OnboardingError(f"{file}: {error.strerror}") from None
    if not isinstance(header, dict):
        raise OnboardingError(f"{file}: header must be an object, is {type(header).__name__}")
    header.pop("__metadata__", None)
    tensors = {name: _tensor(file, 8 + length, name, entry) for name, entry in header.items()}
    _check_layout(file, 8 + length, size, tensors)
    return tensors


def _tensor(file: Path, data: int, name: str, entry) -> TensorInfo:
    where = f"{file}: tensor {name[:200]!r}"
    if not isinstance(entry, dict):
        raise OnboardingError(f"{where}: entry must be an object, is {type(entry).__name__}")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise OnboardingError(f"{where}: dtype {str(dtype)[:40]!r} is not supported, use one of {', '.join(DTYPES)}")
    if not _counts(shape):
        raise OnboardingError(f"{where}: shape must be a list of integers >= 0, is {str(shape)[:80]}")
    if not _counts(offsets) or len(offsets) != 2:
        raise OnboardingError(f"{where}: data_offsets must be two integers >= 0, are {str(offsets)[:80]}")
    need = math.prod(shape) * DTYPES[dtype][1]
    if offsets[1] - offsets[0] != need:
        raise OnboardingError(f"{where}: {dtype} {list(shape)} needs {need} bytes, data_offsets {offsets} give {offsets[1] - offsets[0]}")
    return TensorInfo(name, tuple(shape), dtype, file, data + offsets[0], data + offsets[1])


def _counts(value) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)  # a bool is none


def _check_layout(file: Path, data: int, size: int, tensors: dict[str, TensorInfo]) -> None:
    end = data
    for info in sorted(tensors.values(), key=lambda info: (info.begin, info.end)):
        if info.begin != end:
            what = "overlaps the tensor before it" if info.begin < end else f"leaves {info.begin - end} bytes unused before it"
            raise OnboardingError(f"{file}: tensor {info.name[:200]!r} {what}: the file is damaged or hides something")
        end = info.end
    if end != size:
        cut = f"cut short: its tensors need {end} bytes, the file has {size}"
        raise OnboardingError(f"{file}: {cut if end > size else f'{size - end} bytes follow the last tensor'}")
