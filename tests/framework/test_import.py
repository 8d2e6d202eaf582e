"""Importing the package and choosing the instruction set, each in a fresh interpreter."""

import os
import subprocess
import sys

import pytest
from custom_ops._paths import LIBRARY_DIR


def python(code: str, **environment) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def test_import_needs_torch_alone():
    code = """
import sys, torch
for name in ("numpy", "click", "rich", "platformdirs", "hypothesis"):
    sys.modules[name] = None  # an import of it fails from here on
before = set(sys.modules)
import custom_ops
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
assert loaded <= {"custom_ops"}, loaded
assert not any(name.startswith(("custom_ops.sim", "custom_ops.converter")) for name in sys.modules)
print(custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 8)).shape)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "torch.Size([2, 1])"


def test_simulate_is_the_function():
    done = python("import custom_ops.simulate, custom_ops; assert callable(custom_ops.simulate), custom_ops.simulate")
    assert done.returncode == 0, done.stderr


GRADIENT = """
import torch, custom_ops
assert custom_ops._autograd.HAS_GATE == {gate}
x = torch.randn(3, 4, 16, requires_grad=True)
y = custom_ops.hc_pre_inv_rms(x, epsilon=1e-6)
(grad,) = torch.autograd.grad(y.sum(), x)
(want,) = torch.autograd.grad(torch.rsqrt((x * x).mean((1, 2)) + 1e-6).sum(), x)
torch.testing.assert_close(grad, want)
with torch.no_grad():
    assert not custom_ops.hc_pre_inv_rms(x).requires_grad
assert not custom_ops.hc_pre_inv_rms(x.detach()).requires_grad
compiled = torch.compile(lambda v: custom_ops.hc_pre_inv_rms(v, epsilon=1e-6), fullgraph=True, backend="aot_eager")
(grad,) = torch.autograd.grad(compiled(x).sum(), x)
torch.testing.assert_close(grad, want)
torch.library.opcheck(torch.ops.custom.npu_hc_pre_inv_rms.default, (x,), {{"epsilon": 1e-6}})
state = torch.zeros(1, 4, 2)
custom_ops.fused_linear_attention(x[:1, :1, :12], x[:1, :1, :1], x[:1, :1, :1], torch.ones(4, 1, 3), None, state, attn_type="short_conv",
                                  num_k_heads=1, num_v_heads=1, head_k_dim=4, head_v_dim=4, token_major=True)
assert state._version == 1 and state.any()
with torch.no_grad():
    custom_ops.fused_linear_attention(x[:1, :1, :12], x[:1, :1, :1], x[:1, :1, :1], torch.ones(4, 1, 3), conv_state=state,
                                      attn_type="short_conv", num_k_heads=1, num_v_heads=1, head_k_dim=4, head_v_dim=4, token_major=True)
assert state._version == 2
print("ok")
"""


@pytest.mark.parametrize("gate", [True, False], ids=["gate", "other torch version"])
def test_gradients_with_and_without_the_gate(gate, tmp_path):
    """The C++ gate before autograd is loaded only by the torch version it was built with."""
    (tmp_path / "libcustom_ops_torch.so").symlink_to(LIBRARY_DIR / "libcustom_ops_torch.so")
    if gate:
        for library in LIBRARY_DIR.glob("libcustom_ops_torch_gate-*.so"):
            (tmp_path / library.name).symlink_to(library)
    done = python(GRADIENT.format(gate=gate), CUSTOM_OPS_LIB_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "ok"


def test_unknown_attribute():
    done = python("import custom_ops; custom_ops.nothing")
    assert "module 'custom_ops' has no attribute 'nothing'" in done.stderr


def test_missing_library_says_how_to_build_it(tmp_path):
    done = python("import custom_ops", CUSTOM_OPS_LIB_DIR=str(tmp_path))
    assert done.returncode and "libcustom_ops_torch.so is missing" in done.stderr


SELFTEST = """
import sys; sys.path.insert(0, {tests!r})
import torch, custom_ops
from torch import inf, nan
from custom_ops import reference
from compare import assert_matches, assert_post_matches, assert_pre_matches, to_numpy
from inputs import DTYPES, post_inputs, pre_inputs, sinkhorn_inputs, x_of
for dtype in DTYPES.values():
    for law in ("rows", "subnormal", "saturated"):
        for n, d in ((4, 100), (3, 17), (16, 40)):
            rng = torch.Generator().manual_seed(5)
            inputs = sinkhorn_inputs(law, rng, (19,), n, d, dtype)
            inputs["x"][0, 0, 0], inputs["x"][1, 1, 1], inputs["x"][2, 0, 2] = torch.nan, torch.inf, 6e4
            got = custom_ops.hc_pre_sinkhorn(**inputs, hc_mult=n)
            arrays, streams = {{name: to_numpy(tensor) for name, tensor in inputs.items()}}, inputs["x"]
            want = reference.hc_pre_sinkhorn(**arrays, hc_mult=n)
            x = abs(arrays.pop("x"))
            magnitude = (reference.pre_weights(**arrays, hc_mult=n)[..., None] * x).sum(-2)
            assert_matches("y", got[0], want[0], magnitude=magnitude)
            assert_matches("post", got[1], want[1])
            assert_matches("comb", got[2], want[2])
            for weights in DTYPES.values():
                inputs = post_inputs(law.replace("saturated", "cancel"), rng, (19,), n, d, dtype, weights)
                inputs["x"][0, 0], inputs["residual"][1, 1, 1], inputs["comb"][2, 0, 2], inputs["post"][3, 2] = nan, inf, nan, -inf
                assert_post_matches(custom_ops.hc_post(**inputs), inputs)
            assert_matches("rms", custom_ops.hc_pre_inv_rms(streams), reference.hc_pre_inv_rms(streams))
        for tokens, d in ((3, 100), (200, 530)):
            inputs = pre_inputs(law, torch.Generator().manual_seed(5), (tokens,), 4, d, dtype)
            assert_pre_matches(custom_ops.hc_pre(**inputs), inputs, 4)
# every 16-bit value through the conversions: n = 1 with pre = 1 gives back x
for dtype in (torch.bfloat16, torch.float16):
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(dtype).reshape(1, 1, -1)
    y = custom_ops.hc_pre_sinkhorn(torch.zeros(1, 3), torch.ones(1), torch.ones(3), torch.full((3,), 60.0), x, 1, 1, 0.0)[0]
    assert torch.equal(y.isnan(), x[0].isnan()) and torch.equal(y.nan_to_num(7), x[0].nan_to_num(7)), dtype
print("ok")
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "amx"])
def test_every_instruction_set(isa):
    tests = os.path.dirname(os.path.dirname(__file__))
    done = python(SELFTEST.format(tests=tests), CUSTOM_OPS_CPU=isa)
    if "this host has:" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "ok"


def test_unknown_instruction_set_names_those_there_are():
    done = python("import torch, custom_ops; custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 8))", CUSTOM_OPS_CPU="avx1024")
    assert "CUSTOM_OPS_CPU is 'avx1024', this host has: baseline" in done.stderr
