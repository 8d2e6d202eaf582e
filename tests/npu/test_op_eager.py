"""Every operator on an NPU tensor, call by call: the oracle, the forms it accepts, the words it refuses with, gradients."""

import threading
from dataclasses import dataclass

import pytest
import torch
from inputs import DTYPES, refusal
from op_table import DEVICE, OPS, REFUSED, assert_same_bits, on, to_cpu

import custom_ops


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    dtype: str
    why: str = ""

    def __str__(self):
        return f"{'x'.join(map(str, self.tokens))}-d{self.d}-{self.dtype}"


CASES = [
    Case((1,), 16, "float32"),
    Case((1,), 1, "bfloat16", why="the smallest call"),
    Case((17,), 1040, "bfloat16"),
    Case((3, 43), 512, "float16"),
    Case((4, 4), 4096, "bfloat16", why="the published test"),
    Case((2, 1), 7168, "bfloat16"),
    Case((41,), 72, "float32", why="one more than the vector cores of 910B3"),
    Case((129,), 1296, "bfloat16"),
]


def call(op, inputs, **attributes):
    return op(**inputs, **(attributes or op.attributes))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(op, case, rng):
    inputs = op.inputs(rng, case.tokens, case.d, DTYPES[case.dtype])
    on_npu = on(DEVICE, inputs)
    got = call(op, on_npu)
    assert all(result.device == torch.device(DEVICE) and result.is_contiguous() for result in got)
    op.matches(to_cpu(got), inputs, op.attributes, DEVICE)
    assert_same_bits(to_cpu(call(op, on_npu)), to_cpu(got))
    assert_same_bits(to_cpu(on_npu.values()), inputs.values())  # unchanged


def test_defaults_are_the_published_ones(op, rng):
    inputs = op.inputs(rng, (5,), 64, torch.bfloat16)
    op.matches(to_cpu(op(**on(DEVICE, inputs))), inputs, {})


def test_is_what_simulate_gives(op, rng, simulated):
    inputs = op.inputs(rng, (50,), 272, torch.bfloat16)
    with custom_ops.simulate(torch.npu.get_device_name()):
        want = call(op, inputs)
    assert_same_bits(to_cpu(call(op, on(DEVICE, inputs))), want)


@pytest.mark.parametrize("tokens", [(0,), (0, 3), (3, 0)], ids=str)
def test_no_tokens(op, tokens, rng):
    inputs = op.inputs(rng, tokens, 16, torch.bfloat16)
    for got, want in zip(call(op, on(DEVICE, inputs)), call(op, inputs), strict=True):
        assert (got.shape, got.dtype, got.device.type) == (want.shape, want.dtype, "npu")


def strided(tensor):
    """The same values, every second of the last dimension of a wider tensor, from its second element on."""
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 1, dtype=tensor.dtype)
    wide[..., 1::2] = tensor
    return wide.to(DEVICE)[..., 1::2]


def offset(tensor):
    """Contiguous, but not at the start of its storage."""
    wide = torch.cat([torch.full((7,), torch.nan, dtype=tensor.dtype), tensor.flatten()])
    return wide.to(DEVICE)[7:].view(tensor.shape)


def transposed(tensor):
    return tensor.transpose(0, -1).contiguous().to(DEVICE).transpose(0, -1)


@pytest.mark.parametrize("layout", [strided, offset, transposed])
def test_layouts(op, layout, rng):
    inputs = op.inputs(rng, (6,), 48, torch.bfloat16)
    want = to_cpu(call(op, on(DEVICE, inputs)))
    for name in inputs:
        assert_same_bits(to_cpu(call(op, {**on(DEVICE, inputs), name: layout(inputs[name])})), want)


@pytest.mark.parametrize("name, case", REFUSED, ids=lambda value: value)
def test_refuses_in_the_words_of_the_cpu(name, case):
    arguments, message = OPS[name].refused[case]
    assert refusal(lambda: OPS[name](**on(DEVICE, arguments))) == message


def test_refuses_mixed_devices(op, rng):
    inputs = op.inputs(rng, (3,), 16, torch.bfloat16)
    for name in inputs:
        if name == op.hidden:
            continue
        mixed = {**on(DEVICE, inputs), name: inputs[name]}
        assert refusal(lambda: op(**mixed)) == f"npu_{op.name}: {name} is on cpu and x on {DEVICE}, all must be on one device"


def test_on_other_streams(op, rng):
    """Each stream's calls are in its order, and an event orders one stream after another."""
    inputs = [op.inputs(rng, (9 + i,), 128, torch.bfloat16) for i in range(4)]
    streams = [torch.npu.Stream() for _ in inputs]
    results = []
    for stream, one in zip(streams, inputs):
        with torch.npu.stream(stream):
            results.append(call(op, on(DEVICE, one)))
    for stream in streams:
        torch.npu.current_stream().wait_stream(stream)
    for got, one in zip(results, inputs):
        op.matches(to_cpu(got), one, op.attributes)


def test_from_several_threads(op, rng):
    inputs = [op.inputs(rng, (9 + i,), 128, torch.bfloat16) for i in range(4)]
    results, errors = {}, []

    def work(index):
        try:
            with torch.npu.stream(torch.npu.Stream()):
                for _ in range(5):
                    results[index] = to_cpu(call(op, on(DEVICE, inputs[index])))
        except Exception as error:  # noqa: BLE001  (the test shows it)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for index, one in enumerate(inputs):
        op.matches(results[index], one, op.attributes)


def test_temporaries_may_go_at_once(op, rng):
    """Inputs, strided ones' copies and workspaces are freed while the launch still waits in the queue; their memory is reused."""
    inputs = op.inputs(rng, (16,), 256, torch.bfloat16)
    want = to_cpu(call(op, on(DEVICE, inputs)))
    results = []
    for _ in range(30):
        results.append(call(op, {name: strided(tensor) for name, tensor in inputs.items()}))
        for tensor in inputs.values():
            torch.full((2 * tensor.numel(),), torch.nan, dtype=tensor.dtype, device=DEVICE)
    for got in results:
        assert_same_bits(to_cpu(got), want)


# Not test_autograd_registration, which knows CPU and CUDA only.
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
def test_opcheck(op, gradient, rng):
    arguments = [tensor.requires_grad_(gradient) for tensor in on(DEVICE, op.inputs(rng, (5,), 16, torch.bfloat16)).values()]
    keywords = {argument.name for argument in op.overload._schema.arguments if argument.kwarg_only}
    positional = [value for name, value in op.attributes.items() if name not in keywords]
    torch.library.opcheck(op.overload, (*arguments, *positional), {name: op.attributes[name] for name in keywords}, test_utils=CHECKS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_the_cpu(op, dtype, rng):
    grads = []
    inputs = op.inputs(rng, (6,), 24, DTYPES[dtype])
    for device in ("cpu", DEVICE):
        leaves = {name: tensor.detach().to(device).requires_grad_() for name, tensor in inputs.items()}
        loss = sum((result.float() ** 2).sum() for result in call(op, leaves))
        loss.backward()
        grads.append([leaf.grad.cpu() for leaf in leaves.values()])
    for name, got, want in zip(inputs, grads[1], grads[0]):
        bound = {torch.bfloat16: 2**-7, torch.float16: 2e-3, torch.float32: 1e-3}[got.dtype]
        torch.testing.assert_close(got, want, rtol=bound, atol=bound * float(want.abs().max()), msg=lambda text, name=name: f"{name}: {text}")


def test_inference_mode_and_no_grad(op, rng):
    inputs = on(DEVICE, op.inputs(rng, (5,), 32, torch.bfloat16))
    want = to_cpu(call(op, inputs))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            got = call(op, inputs)
        assert not any(result.requires_grad for result in got)
        assert_same_bits(to_cpu(got), want)
