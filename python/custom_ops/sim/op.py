"""A built operator as a Python callable."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import arrays, execute
from .builder import Package
from .names import DType, nearest
from .opinfo import Attr, OpInfo, Param
from .report import OpCall
from .runtime import Options


class Op:
    """op(x, y, attr=...) or op(x=..., y=..., attr=...): tensors and attributes by their OpDef names.

    Takes torch tensors or NumPy arrays, one kind per call, and returns the same kind: one array, or a tuple in the order
    of the OpDef. `out=` gives the outputs instead of having them allocated: an array, a sequence in OpDef order, or a dict
    by name. Optional tensors may be left out. An output that has the name of an input is written in place; it is None when
    the input is left out.

    Raises TypeError or ValueError for names, types, dtypes and shapes the OpDef does not take, KernelError for findings
    and for calls that the op's host code refuses.
    """

    def __init__(self, package: Package, info: OpInfo, family: str, options: Options):
        self._package, self.info, self._family, self.options = package, info, family, options
        #: Launch reports of the last call of this object, usually one; none when every output was empty.
        self.calls: list[OpCall] = []
        self.__name__ = info.type
        self.__doc__ = f"{info.signature()}\n\n{type(self).__doc__}"

    def __repr__(self) -> str:
        return f"<Op {self.info.signature()} on {self.options.soc}>"

    @property
    def package(self):
        """Folder of the built op package."""
        return self._package.path

    @property
    def report(self) -> OpCall | None:
        """Report of the last launch."""
        return self.calls[-1] if self.calls else None

    def with_options(self, **changes) -> Op:
        """The same op run otherwise: checks, trace, adversarial_seed, host_threads, ignore, raise_on_finding, timeout."""
        known = {f.name for f in dataclasses.fields(Options)} - {"soc"}
        for name in changes:
            if name not in known:
                raise TypeError(f"{name!r} is no option; options are {nearest(name, sorted(known))}")
        return Op(self._package, self.info, self._family, dataclasses.replace(self.options, **changes))

    def __call__(self, *tensors, out=None, **named) -> Any:
        inputs = self._inputs(tensors, named)
        attributes = self._attributes(named)
        kind = self._kind(inputs)
        self._column(inputs)
        given = [inputs[p.name] for p in self.info.inputs]
        packed = [None if v is None else arrays.contiguous(v) for v in given]
        views = execute.views(packed, [f"{self.info.type}: {p.name}" for p in self.info.inputs])
        results = self._outputs(out, kind, dict(zip(inputs, given, strict=True)), views, attributes)
        packed_by_name = dict(zip(inputs, packed, strict=True))
        targets = [packed_by_name[p.name] if p.name in inputs else r if arrays.is_contiguous(r) else arrays.contiguous(r)
                   for p, r in zip(self.info.outputs, results, strict=True)]
        self.calls = []
        try:
            self.calls = execute.run(self._package, self.info, views, attributes,
                                     execute.views(targets, [p.name for p in self.info.outputs]), self.options)
        except execute.KernelError as error:
            self.calls = [error.report] if error.report else []
            raise
        for result, target in zip(results, targets, strict=True):
            if result is not None and result is not target and not _same_memory(result, target):
                arrays.copy_into(result, target)
        return results[0] if len(results) == 1 else tuple(results)

    # --- what the caller gave -----------------------------------------------------------------------------------------

    def _inputs(self, tensors: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        op, params = self.info, self.info.inputs
        if len(tensors) > len(params):
            raise TypeError(f"{op.type} takes {len(params)} tensors, got {len(tensors)}: {op.signature()}")
        known = [p.name for p in params] + [a.name for a in op.attrs]
        for name in named:
            if name not in known:
                raise TypeError(f"{op.type} has no {name!r}; it takes {', '.join(known)}")
        found: dict[str, Any] = {}
        for i, param in enumerate(params):
            if i < len(tensors) and param.name in named:
                raise TypeError(f"{op.type}: {param.name} was given twice")
            value = tensors[i] if i < len(tensors) else named.get(param.name)
            if value is None and not param.optional:
                raise TypeError(f"{op.type}: {param.name} is missing: {op.signature()}")
            if value is not None and not arrays.is_array(value):
                raise TypeError(f"{op.type}: {param.name} must be a torch tensor or a NumPy array, got {type(value).__name__}")
            if value is not None:
                arrays.require_cpu(value, f"{op.type}: {param.name}")
            found[param.name] = value
        return found

    def _attributes(self, named: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for attr in self.info.attrs:
            value = named.get(attr.name)
            if value is None:
                if attr.required or attr.default is None:
                    raise TypeError(f"{self.info.type}: attribute {attr.name} ({attr.type}) has no default and must be given")
                value = attr.default
            found[attr.name] = _convert(self.info.type, attr, value)
        return found

    def _kind(self, inputs: Mapping[str, Any]) -> str:
        kinds = {"torch" if arrays.is_torch(v) else "numpy" for v in inputs.values() if v is not None}
        if len(kinds) > 1:
            raise TypeError(f"{self.info.type}: torch tensors and NumPy arrays cannot be mixed in one call")
        return kinds.pop() if kinds else "torch"

    def _column(self, inputs: Mapping[str, Any]) -> int:
        """The dtype column that the present inputs select."""
        op = self.info
        dtypes = {n: arrays.dtype_of(v, f"{op.type}: {n}") for n, v in inputs.items() if v is not None}
        columns = op.columns(self._family)
        for column in columns:
            if all(p.dtype(column) == dtypes.get(p.name, p.dtype(column)) for p in op.inputs):
                return column
        got = ", ".join(f"{n} {d.name}" for n, d in dtypes.items())
        rows = "; ".join(", ".join(f"{p.name} {p.dtype(c).name}" for p in op.inputs if p.name in dtypes) for c in columns)
        raise TypeError(f"{op.type}: no dtype combination for {got} on {self._family}; supported are {rows}")

    # --- outputs --------------------------------------------------------------------------------------------------------

    def _outputs(self, out, kind: str, inputs: Mapping[str, Any], views, attributes) -> list[Any]:
        op = self.info
        given = self._given_outputs(out)
        results: list[Any] = [inputs.get(p.name, given.get(p.name)) for p in op.outputs]
        for param in op.outputs:
            if param.name in inputs and inputs[param.name] is None and not param.optional:
                raise TypeError(f"{op.type}: {param.name} is written in place and must be given")
        inferred = execute.infer_shapes(self._package, op, views, attributes, self.options)
        for i, (param, (shape, dtype)) in enumerate(zip(op.outputs, inferred, strict=True)):
            if param.name in inputs:
                continue
            if results[i] is None:
                results[i] = arrays.empty(kind, shape, dtype)
            else:
                self._check_output(param, results[i], kind, shape, dtype)
        return results

    def _given_outputs(self, out) -> dict[str, Any]:
        names = [p.name for p in self.info.outputs if p.name not in self.info.references]
        if out is None:
            return {}
        if isinstance(out, Mapping):
            for name in out:
                if name not in names:
                    raise TypeError(f"{self.info.type} has no output {name!r} to give; it has {nearest(name, names)}")
            return dict(out)
        several = [out] if arrays.is_array(out) else list(out)
        if len(several) != len(names):
            raise TypeError(f"{self.info.type}: out must give {len(names)} arrays ({', '.join(names)}), got {len(several)}")
        return dict(zip(names, several, strict=True))

    def _check_output(self, param: Param, value: Any, kind: str, shape: tuple[int, ...], dtype: DType) -> None:
        what = f"{self.info.type}: out {param.name}"
        if not arrays.is_array(value) or ("torch" if arrays.is_torch(value) else "numpy") != kind:
            raise TypeError(f"{what} must be a {kind} array like the inputs, got {type(value).__name__}")
        arrays.require_cpu(value, what)
        got = (tuple(value.shape), arrays.dtype_of(value, what))
        if got != (shape, dtype):
            raise ValueError(f"{what} must be {list(shape)} {dtype.name}, got {list(got[0])} {got[1].name}")


class OpPackage(Mapping):
    """The ops of one folder, by OpType or snake-case name; also as attributes."""

    def __init__(self, ops: Mapping[str, Op]):
        self._ops = dict(ops)

    def __getitem__(self, name: str) -> Op:
        for op in self._ops.values():
            if name in (op.info.type, op.info.snake):
                return op
        raise KeyError(f"no operator {name!r}; there are {nearest(name, self._ops)}")

    def __getattr__(self, name: str) -> Op:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def __repr__(self) -> str:
        return f"<OpPackage {', '.join(self._ops)}>"


def _same_memory(a: Any, b: Any) -> bool:
    if arrays.is_torch(a):
        return a.data_ptr() == b.data_ptr() and a.stride() == b.stride()
    return a.ctypes.data == b.ctypes.data and a.strides == b.strides


def _convert(op: str, attr: Attr, value: Any) -> Any:
    """A Python value as the attribute's type; bools are no ints here, NumPy scalars are welcome."""
    item = attr.type.removeprefix("list_")
    if attr.type.startswith("list_"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise TypeError(f"{op}: attribute {attr.name} must be a sequence of {item}, got {value!r}")
        return [_scalar(op, attr, item, v) for v in value]
    return _scalar(op, attr, item, value)


def _scalar(op: str, attr: Attr, kind: str, value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and not arrays.is_array(value) else value
    fits = {"int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, (int, float)) and not isinstance(value, bool),
            "bool": isinstance(value, bool), "str": isinstance(value, str)}[kind]
    if not fits:
        raise TypeError(f"{op}: attribute {attr.name} must be {kind}, got {value!r}")
    if kind == "int" and not -2**63 <= value < 2**63:
        raise ValueError(f"{op}: attribute {attr.name} does not fit int64: {value}")
    return float(value) if kind == "float" else value
