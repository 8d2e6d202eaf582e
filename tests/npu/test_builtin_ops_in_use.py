"""The built-in operators in what they are for: small models, printing, random numbers, capture; and how their errors come out."""

import copy
import ctypes
import io
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from custom_ops.npu import environment
from torch import nn

NPU = "npu:0"


class Block(nn.Module):
    """Pre-norm attention with rotary positions and a gated MLP, written out as in model code."""

    def __init__(self, hidden=32, heads=4):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.RMSNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(2 * hidden, hidden)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        head = hidden // self.heads
        q, k, v = self.qkv(self.attention_norm(x)).reshape(batch, tokens, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        frequency = 10000.0 ** (-torch.arange(0, head, 2, device=x.device).float() / head)
        angle = torch.outer(torch.arange(tokens, device=x.device).float(), frequency).repeat(1, 2)
        q, k = (y * angle.cos() + torch.cat((-y[..., head // 2 :], y[..., : head // 2]), -1) * angle.sin() for y in (q, k))
        mask = torch.full((tokens, tokens), float("-inf"), device=x.device).triu(1)
        scores = torch.softmax(q @ k.transpose(-1, -2) / head**0.5 + mask, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, tokens, hidden))
        gate, up = self.up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.blocks, self.head = nn.Embedding(50, 32), nn.Sequential(Block(), Block()), nn.Linear(32, 50, bias=False)

    def forward(self, ids):
        return self.head(self.blocks(self.embedding(ids)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model()


@pytest.fixture
def ids():
    return torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(1))


def test_a_small_model_computes_the_same(model, ids):
    on_npu = copy.deepcopy(model).to(NPU)
    torch.testing.assert_close(on_npu(ids.to(NPU)).cpu(), model(ids), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_training_steps_give_the_same_weights(model, ids, optimizer):
    models = {"cpu": model, NPU: copy.deepcopy(model).to(NPU)}
    for device, trained in models.items():
        steps = optimizer(trained.parameters(), lr=1e-3)
        for _ in range(3):
            steps.zero_grad()
            tokens = ids.to(device)
            F.cross_entropy(trained(tokens)[:, :-1].reshape(-1, 50), tokens[:, 1:].reshape(-1)).backward()
            nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
            steps.step()
    for one, other in zip(models[NPU].parameters(), models["cpu"].parameters()):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)


def test_mixed_precision_scales_the_loss():
    layer = nn.Linear(4, 4).to(NPU)
    scaler, steps = torch.amp.GradScaler("npu", init_scale=8.0, growth_interval=2), torch.optim.SGD(layer.parameters(), 0.1)
    scales = []
    for value in (1.0, 1.0, float("inf")):
        with torch.autocast("npu", dtype=torch.float16):
            loss = layer(torch.full((2, 4), value, device=NPU)).float().sum()
        steps.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(steps)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 8.0]


def test_state_dict_travels(model):
    file = io.BytesIO()
    torch.save(copy.deepcopy(model).to(NPU).state_dict(), file)
    file.seek(0)
    assert all(t.device.type == "npu" for t in torch.load(file).values())
    file.seek(0)
    other = Model()
    other.load_state_dict(torch.load(file, map_location="cpu"))
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), model.parameters()))


@pytest.mark.parametrize("tensor", [torch.arange(6).reshape(2, 3), torch.tensor([1.5, float("nan"), float("inf")]), torch.zeros(0, 3), torch.tensor(2.0),
                                    torch.tensor([True, False]), torch.linspace(-1e6, 1e-3, 2000), torch.ones(3, dtype=torch.bfloat16)], ids=str)
def test_prints_like_the_cpu(tensor):
    without_device = re.sub(r",?\s*device='npu:0'", "", str(tensor.to(NPU)))
    assert re.sub(r"\s+", " ", without_device) == re.sub(r"\s+", " ", str(tensor))


def test_assert_close_compares_on_the_device():
    torch.testing.assert_close(torch.ones(3, device=NPU), torch.ones(3, device=NPU))
    with pytest.raises(AssertionError, match="Mismatched elements: 3 / 3"):
        torch.testing.assert_close(torch.ones(3, device=NPU), torch.zeros(3, device=NPU))


def drawn(name):
    one = torch.ones(20000, device=NPU)
    return {
        "randn": lambda: torch.randn_like(one), "rand": lambda: torch.rand_like(one), "randint": lambda: torch.randint(0, 10, (20000,), device=NPU),
        "normal": lambda: torch.normal(1.0, 2.0, (20000,), device=NPU), "uniform_": lambda: torch.empty_like(one).uniform_(-1, 3),
        "bernoulli": lambda: torch.bernoulli(one * 0.3), "dropout": lambda: F.dropout(one, 0.25), "exponential_": lambda: torch.empty_like(one).exponential_(2.0),
        "multinomial": lambda: torch.multinomial(torch.ones(5, device=NPU), 20000, replacement=True), "randperm": lambda: torch.randperm(20000, device=NPU),
    }[name]()


@pytest.mark.parametrize("name, mean, deviation", [
    ("randn", 0, 1), ("rand", 0.5, 12**-0.5), ("randint", 4.5, 8.25**0.5), ("normal", 1, 2), ("uniform_", 1, 4 / 12**0.5), ("bernoulli", 0.3, 0.21**0.5),
    ("dropout", 1, 3**-0.5), ("exponential_", 0.5, 0.5), ("multinomial", 2, 2**0.5), ("randperm", 9999.5, 20000 / 12**0.5)])
def test_random_numbers(name, mean, deviation):
    torch.manual_seed(7)
    first, second = drawn(name).cpu(), drawn(name).cpu()
    torch.manual_seed(7)
    again = drawn(name).cpu()
    assert torch.equal(first, again) and not torch.equal(first, second)
    numbers = first.double()
    assert abs(numbers.mean() - mean) < 5 * deviation / 20000**0.5  # five standard errors
    assert abs(numbers.std() / deviation - 1) < 0.05


def test_dropout_gradient_uses_the_mask_of_the_forward_pass():
    x = torch.ones(1000, device=NPU, requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_a_captured_graph_replays_on_new_values():
    x, graph = torch.zeros(4, device=NPU), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = torch.softmax(x * 2 + 1, 0) + x.sum()
        noise = torch.rand(4, device=NPU)
    seen = []
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        assert y.cpu().tolist() == pytest.approx([0.25 + 4 * value] * 4)
        seen.append(noise.cpu())
    assert not torch.equal(*seen)


def test_time_is_that_of_the_bandwidth():
    x = torch.zeros(1 << 24, device=NPU)
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    x.add_(1)
    end.record()
    torch.npu.synchronize()
    assert 0.02 < start.elapsed_time(end) < 0.5  # 64 MB through hundreds of GB/s, in ms


@pytest.mark.parametrize("call, message", [
    ("x @ x", r"aclnnMatmul: shapes \[5, 6\] and \[5, 6\] cannot be multiplied"),
    ("x.int() @ x.int().t()", "aclnnMatmul: dtype int32 is not supported, use float32, float16 or bfloat16"),
    ("torch.linalg.svd(x)", "Svd.*aclopCompileAndExecute is not modelled"),
], ids=["matmul shapes", "matmul dtype", "graph operator"])
def test_errors_name_the_operator_and_the_next_call_works(simulated, run_script, call, message):
    out = run_script(f"""
        import torch
        x = torch.ones(5, 6, device="npu")
        try:
            {call}
            torch.npu.synchronize()
        except RuntimeError as error:
            print("error:", error)
        print("next:", (x + 1).sum().item())
        """)
    assert re.search(message, out, re.DOTALL) and "next: 60.0" in out


def test_an_index_out_of_range_comes_out_at_the_next_synchronisation(simulated):
    x = torch.ones(5, 6, device=NPU)
    with pytest.raises(RuntimeError, match="507035"):
        x.index_select(0, torch.tensor([9], device=NPU)).cpu()
    assert (x + 1).sum().item() == 60


def test_what_torch_npu_lacks_runs_on_the_cpu_with_a_warning(run_script, simulated):
    out = run_script('import torch; print(torch.lgamma(torch.tensor([5.0], device="npu")).exp().item())')
    assert "aten::lgamma.out" in out and "fall back to run on the CPU" in out and "24.0" in out


def test_attention_of_the_950(run_script, simulated):
    """torch_npu calls another function there, with what the simulator does not have refused by name."""
    out = run_script("""
import torch, torch_npu
import torch.nn.functional as F
q, k, v = torch.randn(2, 3, 16, 32), torch.randn(2, 3, 24, 32), torch.randn(2, 3, 24, 32)
mask = torch.rand(2, 1, 16, 24) > 0.3
n = [t.half().npu() for t in (q, k, v)]
for arguments in {}, {"attn_mask": mask}:
    want = F.scaled_dot_product_attention(*(t.half().float() for t in (q, k, v)), **arguments)
    got = F.scaled_dot_product_attention(*n, **{name: value.npu() for name, value in arguments.items()}).cpu()
    torch.testing.assert_close(got.float(), want, rtol=2e-3, atol=2e-3)
got = torch_npu.npu_fusion_attention(*n, 3, "BNSD", scale=0.25)
want = torch.softmax(n[0].cpu().float() @ n[1].cpu().float().mT * 0.25, -1)
torch.testing.assert_close(got[0].cpu().float(), want @ n[2].cpu().float(), rtol=2e-3, atol=2e-3)
try:
    torch_npu.npu_fusion_attention(*n, 3, "BNSD", scale=0.25, prefix=[5, 6])
    torch.npu.synchronize()
except RuntimeError as error:
    print("refused:", error)
torch.npu.synchronize()
print((n[0] + 1).shape)
""", CUSTOM_OPS_NPU_SOC="ascend950")
    assert "refused:" in out and "prefix, actual_seq_qlen" in out and "torch.Size([2, 3, 16, 32])" in out, out


def test_private_formats_are_refused_by_name(run_script, simulated):
    out = run_script("""
import torch, torch_npu
torch.npu.config.allow_internal_format = True
x = torch.randn(32, 32).half()
nz = torch_npu.npu_format_cast(x.npu(), 29)
try:
    torch.npu.synchronize()
except RuntimeError as error:
    print("refused:", error)
assert torch.equal(x.npu().cpu(), x)
""")
    assert "refused:" in out and "Private formats (torch_npu.npu_format_cast, NZ) are not modelled: use ND" in out, out


def library_names() -> set[str]:
    image = (environment.STAND_INS / "libopapi.so").read_bytes()
    return {name.decode() for name in re.findall(rb"\0aclnn(\w+)GetWorkspaceSize(?=\0)", image)}


def test_the_documentation_lists_what_the_library_has(simulated):
    page = Path(__file__).parents[2] / "docs" / "npu" / "builtin_ops.md"
    listed = re.findall(r"`(\w+)`", page.read_text().partition("## The list")[2])
    assert len(listed) == len(set(listed))
    assert set(listed) == library_names()


def test_handles_that_are_missing_are_refused_by_name(simulated):
    library = ctypes.CDLL("libopapi.so")
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    status = library.aclnnAddGetWorkspaceSize(None, None, None, None, ctypes.byref(size), ctypes.byref(executor))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert status == 161001 and library.aclGetRecentErrMsg() == b"aclnnAdd: self is null"


def test_both_forms_of_gelu():
    x = torch.linspace(-3, 3, 101)
    for approximate in ("none", "tanh"):
        torch.testing.assert_close(torch_npu.npu_gelu(x.to(NPU), approximate=approximate).cpu(), F.gelu(x, approximate=approximate))
