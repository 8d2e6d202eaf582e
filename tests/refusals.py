"""What an operator does not accept, as tests: one case per check, in the same words on the CPU, on every simulated chip and for fake
tensors. A test file names its operator, a good call and the cases, and takes the tests:

    OP, call = "npu_hc_post", custom_ops.hc_post
    def good(tokens=(3,)): ...                                   # arguments by name
    REFUSED = {"d0": case("d (dim -1 of x) must be ...", x=...)}
    globals().update(refusals.tests(OP, call, good, REFUSED))
"""

from collections.abc import Callable

import pytest
import torch
from inputs import refusal


def cases(op: str, good: Callable[..., dict]) -> Callable:
    """case(message, tokens=(3,), **changes): the arguments of a good call with these changes, and the whole message."""

    def case(message, tokens=(3,), **changes):
        return {**good(tokens), **changes}, f"{op}: {message}"

    return case


def on_meta(arguments: dict) -> dict:
    return {name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}


def tests(op: str, call: Callable, good: Callable[..., dict], refused: dict, first: str = "x") -> dict[str, Callable]:
    @pytest.mark.parametrize("name", refused)
    def test_refuses(name, backend):
        arguments, message = refused[name]
        with backend:
            assert refusal(lambda: call(**arguments)).startswith(message)
        if not backend.simulated:
            assert refusal(lambda: call(**arguments)) == message

    @pytest.mark.parametrize("name", refused)
    def test_fake_refuses_in_the_same_words(name):
        arguments, message = refused[name]
        assert refusal(lambda: call(**on_meta(arguments))) == message

    beside = [name for name, value in good().items() if name != first and isinstance(value, torch.Tensor)]

    @pytest.mark.parametrize("argument", beside)
    def test_refuses_mixed_devices(argument):
        arguments = {**on_meta(good()), argument: good()[argument]}
        assert refusal(lambda: call(**arguments)) == f"{op}: {argument} is on cpu and {first} on meta, all must be on one device"

    def test_accepts_what_the_cases_change():
        """The cases fail for what they change, not for what they start from."""
        for tokens in ((3,), (2, 3)):
            call(**good(tokens))

    return {test.__name__: test for test in (test_refuses, test_fake_refuses_in_the_same_words, test_refuses_mixed_devices,
                                             test_accepts_what_the_cases_change)}
