"""custom_ops.simulate on the operators of this repository: dispatch, reports, nesting, threads, autograd, torch.compile."""

import json
import threading

import numpy as np
import pytest
import torch

import custom_ops

SOCS = ["ascend910b", "ascend910_93", "ascend950"]


def sample(tokens=5, streams=4, hidden=32, dtype=torch.bfloat16):
    return torch.randn(tokens, streams, hidden, generator=torch.Generator().manual_seed(tokens)).to(dtype)


def inv_rms(x, **options):
    return torch.ops.custom.npu_hc_pre_inv_rms(x, epsilon=1e-6)


def expected(x):
    return (x.double().square().mean((-2, -1)) + 1e-6).rsqrt().unsqueeze(-1).float()


@pytest.mark.parametrize("soc", SOCS)
def test_call_runs_on_the_simulated_soc(soc):
    x = sample()
    with custom_ops.simulate(soc) as run:
        y = inv_rms(x)
    torch.testing.assert_close(y, expected(x), rtol=1e-5, atol=1e-5)
    (call,) = run.calls
    assert call.op == "HcPreInvRms" and call.soc.lower().startswith(soc.replace("ascend950", "ascend95"))
    assert call.cores == 5 and call.plan and call.ub_map and 0 < call.ub_peak <= 262144
    assert call.pipes["MTE2"].bytes >= x.numel() * 2 and call.modelled_us > 0
    assert call.findings == [] and run.findings == []


def test_outside_of_the_block_the_native_kernel_runs():
    x = sample()
    with custom_ops.simulate("ascend910b") as run:
        pass
    inv_rms(x)
    assert run.calls == []


def test_nothing_is_launched_for_no_tokens():
    with custom_ops.simulate("ascend910b") as run:
        y = inv_rms(sample(tokens=0))
    assert y.shape == (0, 1) and run.calls == []


def test_blocks_nest_and_the_inner_one_wins():
    x = sample()
    with custom_ops.simulate("ascend910b") as outer:
        inv_rms(x)
        with custom_ops.simulate("ascend950") as inner:
            inv_rms(x)
        inv_rms(x)
    assert [c.soc for c in outer.calls] == [outer.calls[0].soc] * 2 and "910B" in outer.calls[0].soc
    assert len(inner.calls) == 1 and "95" in inner.calls[0].soc


def test_decorator_and_reentry():
    block = custom_ops.simulate("ascend910b")

    @block
    def twice(x, depth=1):
        """Doc."""
        return inv_rms(x) if depth == 0 else twice(x, depth - 1)

    x = sample()
    torch.testing.assert_close(twice(x), expected(x), rtol=1e-5, atol=1e-5)
    assert twice.__name__ == "twice" and twice.__doc__ == "Doc."


def test_threads_have_their_own_blocks():
    x, runs, results = sample(), {}, {}

    def work(soc):
        with custom_ops.simulate(soc) as runs[soc]:
            results[soc] = [inv_rms(x) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(soc,)) for soc in SOCS]
    with custom_ops.simulate("ascend910b") as main:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert main.calls == []
    for soc in SOCS:
        assert len(runs[soc].calls) == 3 and len({c.soc for c in runs[soc].calls}) == 1
        assert all(torch.equal(y, results[soc][0]) for y in results[soc])
    assert len({runs[soc].calls[0].soc for soc in SOCS}) == 3


def test_below_autograd():
    x = sample(dtype=torch.float32).requires_grad_()
    with custom_ops.simulate("ascend910b") as run:
        y = inv_rms(x)
        assert y.requires_grad
        (got,) = torch.autograd.grad(y.sum(), x)
    assert len(run.calls) == 1
    (want,) = torch.autograd.grad(expected(x).sum(), x)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("compiler", ["aot_eager", "inductor"])
@pytest.mark.parametrize("compiled_before", [True, False], ids=["compiled-before", "compiled-inside"])
@pytest.mark.parametrize("grad", [False, True], ids=["no-grad", "grad"])
def test_around_compiled_functions(compiler, compiled_before, grad):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: inv_rms(x + 1) * 2, fullgraph=True, backend=compiler)
    x = sample(dtype=torch.float32).requires_grad_(grad)
    if compiled_before:
        compiled(x)
    with custom_ops.simulate("ascend910b") as run:
        y = compiled(x)
    assert len(run.calls) == 1
    torch.testing.assert_close(y, 2 * expected(x + 1), rtol=1e-5, atol=1e-5)
    assert y.requires_grad == grad


def test_fake_and_meta_tensors_are_left_alone():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with custom_ops.simulate("ascend910b") as run:
        assert inv_rms(torch.empty(3, 4, 16, device="meta")).shape == (3, 1)
        with FakeTensorMode() as mode:
            assert inv_rms(mode.from_tensor(torch.empty(3, 4, 16))).shape == (3, 1)
    assert run.calls == []


def test_refused_arguments_are_refused_in_the_same_words():
    x = torch.ones(3, 4, 16, dtype=torch.int32)
    with pytest.raises(RuntimeError) as native:
        inv_rms(x)
    with custom_ops.simulate("ascend910b"), pytest.raises(RuntimeError) as simulated:
        inv_rms(x)
    assert str(native.value).splitlines()[0] == str(simulated.value).splitlines()[0]


def test_results_do_not_depend_on_threads_checks_or_seed():
    x = sample(tokens=90, hidden=100)
    with custom_ops.simulate("ascend910b"):
        want = inv_rms(x)
    for options in ({"host_threads": 1}, {"host_threads": 2}, {"checks": False}, {"adversarial_seed": 1}, {"adversarial_seed": 2}):
        with custom_ops.simulate("ascend910b", **options):
            assert torch.equal(inv_rms(x), want), options


def test_trace_and_summary(tmp_path):
    with custom_ops.simulate("ascend910b", trace=True) as run:
        inv_rms(sample())
        inv_rms(sample())
    events = json.loads(run.save_trace(tmp_path / "t.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) > 10 and np.isfinite([e["ts"] for e in slices]).all()
    text = run.summary()
    assert "HcPreInvRms" in text and "modelled" in text and "MTE2" in text and text == str(run)


@pytest.mark.parametrize("options, text", [
    (dict(soc="ascend910c"), "soc 'ascend910c' is not known"),
    (dict(ignore=["hazzard"]), "rule 'hazzard' is not known; known are 'hazard'"),
    (dict(soc=None), 'soc must be a name like "ascend910b", got None'),
    (dict(ignore="hazard"), r'ignore must be a sequence of rule names, got .hazard.: give \["hazard"\]'),
    (dict(ignore=[3]), "ignore must be a sequence of rule names"),
    (dict(ignore=None), "ignore must be a sequence of rule names"),
    (dict(host_threads=0), "host_threads must be None for all, or an int from 1 to 2147483647, got 0"),
    (dict(host_threads=1.5), "host_threads must be .*, got 1.5"),
    *((dict(timeout=t), f"timeout must be None or a finite number of seconds above 0, got {t!r}")
      for t in (0, -1, float("inf"), float("nan"), 10**400, "3", True)),
    *((dict(adversarial_seed=s), f"adversarial_seed must be an int from 0 to 18446744073709551615, got {s}")
      for s in (-1, 2**64, 1.0, True)),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_wrong_options(options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        custom_ops.simulate(**options)


def test_leaving_a_block_that_was_not_entered():
    block = custom_ops.simulate("ascend910b")
    for _ in range(2):  # never entered; entered and left already
        with pytest.raises(RuntimeError, match="leaves a block that it has not entered"):
            block.__exit__(None, None, None)
        with block:
            pass
