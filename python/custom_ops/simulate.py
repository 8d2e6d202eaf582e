"""custom_ops.simulate: CPU tensors through op_host and op_kernel on a simulated SoC."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any


class simulate:
    """Context manager and decorator: torch.ops.custom.npu_* on CPU tensors run on the simulated SoC.

        with custom_ops.simulate("ascend910b") as run:
            y, post, comb = torch.ops.custom.npu_hc_pre_sinkhorn(mixes, rsqrt, scale, base, x)
        print(run.summary())

    Calls go through the op's host code (inference, tiling), the aclnn functions and the kernel, below autograd, and also
    from inside functions that torch.compile made. Fake and meta tensors are left alone. Blocks nest, the inner one wins;
    a block belongs to the thread that entered it.

    Args:
        soc:              family or SKU: "ascend910b" (the 910B3), "ascend910_93", "ascend950", "Ascend910B1" ...
        checks:           operand and ordering checks. Without them only the numbers and the modelled times are right.
        trace:            keep the timeline for run.save_trace(path).
        adversarial_seed: not 0: hold instructions back as long as the ordering edges allow, in an order picked by the
                          seed, so that a missing edge changes the numbers.
        host_threads:     threads that run the cores, all by default. Results do not depend on it.
        ignore:           rule names (`custom-ops sim rules`) that are not reported.
        raise_on_finding: False: findings stay in run.calls[i].findings and the call returns its numbers.
        timeout:          seconds per launch.
    Yields: the report: run.calls (OpCall: cores, tiling plan, UB map, pipes, modelled cycles, findings), run.summary(),
        run.save_trace(path).
    Raises: KernelError for findings and for calls that the host code refuses.
    """

    def __init__(self, soc: str = "ascend910b", *, checks: bool = True, trace: bool = False, adversarial_seed: int = 0,
                 host_threads: int | None = None, ignore: Sequence[str] = (), raise_on_finding: bool = True,
                 timeout: float | None = None):
        from .sim import runtime

        self._options = runtime.Options(soc, checks, trace, adversarial_seed, host_threads, timeout, ignore, raise_on_finding)
        runtime.find_soc(soc)
        runtime.ignored_bits(self._options.ignore)
        self._entered = threading.local()  # one object may be entered by several threads, and again inside itself

    def __enter__(self):
        from .sim import execute, report

        run = report.Run(self._options)
        recording = execute.recording(run)
        recording.__enter__()
        mode = _mode_class()(self._options)
        mode.__enter__()
        self._entered.__dict__.setdefault("stack", []).append((mode, recording))
        return run

    def __exit__(self, *exception) -> None:
        if not self._entered.__dict__.get("stack"):
            raise RuntimeError("custom_ops.simulate: this thread leaves a block that it has not entered; "
                               "use `with custom_ops.simulate(...):`")
        mode, recording = self._entered.stack.pop()
        mode.__exit__(*exception)
        recording.__exit__(*exception)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def simulated(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return simulated


@functools.cache
def _mode_class():
    from torch.utils._python_dispatch import TorchDispatchMode

    from . import ops

    class SimulateMode(TorchDispatchMode):
        def __init__(self, options):
            super().__init__()
            self.options = options

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True  # compile as if there were no mode; our operators stay calls in the compiled code and come here

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func.namespace == "custom" and _on_cpu(args, kwargs):
                operator = ops.BY_NAME.get(func.overloadpacket.__name__)
                if operator is not None:
                    return _run(self.options, operator, args, kwargs)
            with self:  # under inference_mode an operator made of others arrives whole
                result = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if result is NotImplemented else result

    return SimulateMode


def _on_cpu(args: tuple, kwargs: dict) -> bool:
    """All tensors are plain ones in host memory: no fakes, no meta, no subclasses."""
    import torch

    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
    return bool(tensors) and all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.device.type == "cpu" for t in tensors)


_building = threading.Lock()


@functools.cache
def _package(op_type: str, family: str):
    from . import _paths
    from .sim import builder

    return builder.build_package(_paths.SOURCE_ROOT, family, [op_type])


def _run(options, operator, args: tuple, kwargs: dict) -> Any:
    from .sim import execute, runtime

    call = operator.to_opdef(*args, **kwargs)  # checks the arguments as the CPU and the NPU do
    if any(tensor.numel() for tensor in call.outputs.values() if tensor is not None):
        soc = runtime.find_soc(options.soc)
        with _building:
            package = _package(call.op_type, soc["family"])
        op = package.ops[call.op_type]
        inputs = [call.inputs.get(p.name) for p in op.inputs]
        outputs = [call.outputs[p.name] for p in op.outputs]
        attributes = {a.name: call.attributes.get(a.name, a.default) for a in op.attrs}
        execute.run(package, op, execute.views(inputs, [p.name for p in op.inputs]), attributes,
                    execute.views(outputs, [p.name for p in op.outputs]), options)
    return call.result()
