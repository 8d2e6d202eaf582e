"""The built-in aclnn operators (sim/aclnn): the same call on CPU and on NPU tensors."""

import warnings
import zlib

import pytest
import torch
from builtin_cases import BACKWARD, CASES

NPU = "npu:0"
# One rounding of the result apart, and for sums of float32 the order of addition.
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.float16: {"rtol": 2e-3, "atol": 2e-3}, torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2}}
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
FORWARD = [pytest.param(case, dtype, id=f"{case}-{name}") for case in CASES for name, dtype in DTYPES.items()
           if dtype == torch.float32 or (case.half and any(given.kind == "float" for given in case.inputs))]


def make_inputs(case, dtype):
    generator = torch.Generator().manual_seed(zlib.crc32(str(case).encode()))
    return [given.make(generator, dtype) for given in case.inputs]


def on_npu(function, *arguments, **keywords):
    """Nothing may go to the CPU behind our back."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*fall back to run on the CPU.*")
        return function(*arguments, **keywords)


def compare(got, want, tolerance):
    if isinstance(want, torch.Tensor):
        assert got.device.type == "npu"
        torch.testing.assert_close(got.cpu(), want, equal_nan=True, **tolerance)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            compare(one, other, tolerance)
    else:
        assert got == want


@pytest.mark.parametrize("case, dtype", FORWARD)
def test_matches_the_cpu(case, dtype):
    inputs = make_inputs(case, dtype)
    compare(on_npu(case.function, *(t.to(NPU) for t in inputs)), case.function(*inputs), TOLERANCE[dtype])


def spread(tensor):
    """The same values in a view that starts behind its storage's start and skips elements, dimensions in reverse order."""
    wide = torch.zeros([size * 2 + 3 for size in reversed(tensor.shape)], dtype=tensor.dtype, device=tensor.device)
    view = wide[tuple(slice(1, 1 + 2 * size, 2) for size in reversed(tensor.shape))]
    view = view.permute(*reversed(range(tensor.dim())))
    return view.copy_(tensor)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_takes_views(case):
    inputs = make_inputs(case, torch.float32)
    views = [spread(t.to(NPU)) if t.dim() else t.to(NPU) for t in inputs]
    compare(on_npu(case.function, *views), case.function(*inputs), TOLERANCE[torch.float32])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", BACKWARD, ids=str)
def test_gradients_match_the_cpu(case, dtype):
    def run(device):
        inputs = [t.to(device).requires_grad_(t.is_floating_point()) for t in make_inputs(case, dtype)]
        result = on_npu(case.function, *inputs)
        weight = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(device, dtype)
        on_npu((result * weight).sum().backward)
        return result.detach(), [t.grad for t in inputs if t.requires_grad]

    tolerance = TOLERANCE[dtype] if dtype == torch.float32 else {"rtol": 5e-2, "atol": 5e-2}
    compare(run(NPU), run("cpu"), tolerance)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("function", [torch.exp, lambda a: a + a, lambda a: a * 2, lambda a: a.sum(), lambda a: a.to(torch.float16), torch.zeros_like,
                                      lambda a: torch.cat((a, a)), lambda a: a.clone(), lambda a: a.cpu()])
def test_empty_tensors(function, shape):
    want = function(torch.zeros(shape))
    got = function(torch.zeros(shape, device=NPU))
    assert got.shape == want.shape and got.dtype == want.dtype
    torch.testing.assert_close(got.cpu(), want)
