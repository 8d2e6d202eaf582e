"""What npu_fused_linear_attention does not accept: one case per check, in the same words on the CPU, on every simulated chip and for fake
tensors; and what only the CPU sees, the values of cu_seqlens and state_indices."""

import pytest
import refusals
import torch
from inputs import refusal
from linear_attention import Layer

import custom_ops

OP = "npu_fused_linear_attention"
B16 = torch.bfloat16


def call(**arguments):
    return custom_ops.fused_linear_attention(**arguments)


def good(tokens=(3,)):
    """B, L = 1, 3 or `tokens`; D = 2 * 2 * 4 + 4 * 6 = 40."""
    batch, length = tokens if len(tokens) == 2 else (1, *tokens)
    layer = Layer(dk=4, dv=6, dtype=B16, bias=True, fold=True, gates=torch.float32)
    return {**layer.tensors(torch.Generator(), batch, length, slots=5), "state_indices": torch.arange(batch),
            "has_initial_state": torch.ones(batch, dtype=torch.bool), **layer.attributes(), "token_major": True}


def short(**changes):
    return dict(dict.fromkeys(("conv_bias", "recurrent_state", "gate_coef", "gate_bias")), attn_type="short_conv", num_k_heads=1, num_v_heads=1,
                head_k_dim=16, head_v_dim=16, gate_fold=False, qkv=Z(1, 3, 48).to(B16), gate=Z(1, 3, 1), beta=Z(1, 3, 1),
                conv_weight=Z(16, 1, 3).to(B16), conv_state=Z(5, 16, 2).to(B16)) | changes


def kda(**changes):
    return dict(attn_type="kda", gate=Z(1, 3, 4, 4), gate_bias=Z(4, 4)) | changes


case = refusals.cases(OP, good)
Z = torch.zeros
D = "2 * num_k_heads * head_k_dim + num_v_heads * head_v_dim = 40"
REFUSED = {
    "attn_type": case("attn_type 'mamba' is not known, use gated_delta_rule, kda or short_conv", attn_type="mamba"),
    "num_k_heads0": case("num_k_heads must be 1 to 2147483647, got 0", num_k_heads=0),
    "num_v_heads0": case("num_v_heads must be 1 to 2147483647, got 0", num_v_heads=0),
    "head_k_dim0": case("head_k_dim must be 1 to 512, got 0", head_k_dim=0),
    "head_k_dim513": case("head_k_dim must be 1 to 512, got 513", head_k_dim=513),
    "head_v_dim513": case("head_v_dim must be 1 to 512, got 513", head_v_dim=513),
    "groups": case("num_v_heads must be a multiple of num_k_heads, got 4 and 3", num_k_heads=3),
    "fewer_values": case("num_v_heads must be a multiple of num_k_heads, got 2 and 4", num_k_heads=4, num_v_heads=2),
    "short_heads": case("attn_type short_conv takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim, got 2, 2, 16 and 16",
                        **short(num_k_heads=2, num_v_heads=2)),
    "short_dims": case("attn_type short_conv takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim, got 1, 1, 8 and 16",
                       **short(head_k_dim=8)),
    "short_fold": case("attn_type short_conv takes no gate_fold", **short(gate_fold=True)),
    "short_channels": case("qkv must be [B, L, D] with D = 3 * head_v_dim = 48, got [1, 3, 47]", **short(qkv=Z(1, 3, 47).to(B16))),
    "short_weight": case("conv_weight must be [C, 1, K] with C = 16 and K 1 to 8, got [48, 1, 3]", **short(conv_weight=Z(48, 1, 3).to(B16))),
    "short_gate": case("gate must be [B, L, 1] = [1, 3, 1] to match qkv [1, 3, 48], got [1, 3, 4]", **short(gate=Z(1, 3, 4))),
    "short_state": case("attn_type short_conv has no recurrent_state", **short(recurrent_state=Z(5, 1, 16, 16))),
    "coef_missing": case("gate_fold needs gate_coef", gate_coef=None),
    "bias_missing": case("gate_fold needs gate_bias", gate_bias=None),
    "coef_alone": case("gate_coef is only taken with gate_fold", gate_fold=False, gate_bias=None),
    "bias_alone": case("gate_bias is only taken with gate_fold", gate_fold=False, gate_coef=None),
    "qkv_rank": case(f"qkv must be [B, L, D] with D = {D}, got [3, 40]", qkv=Z(3, 40).to(B16)),
    "qkv_channels": case(f"qkv must be [B, L, D] with D = {D}, got [1, 3, 41]", qkv=Z(1, 3, 41).to(B16)),
    "qkv_layout": case(f"qkv must be [B, D, L] with D = {D}, got [1, 3, 40]", token_major=False),
    "qkv_dtype": case("qkv dtype float64 is not supported, use bfloat16, float16 or float32", qkv=Z(1, 3, 40).double()),
    "weight_dtype": case("conv_weight must have the dtype of qkv, bfloat16, got float32", conv_weight=Z(40, 1, 4)),
    "weight_rank": case("conv_weight must be [C, 1, K] with C = 40 and K 1 to 8, got [40, 4]", conv_weight=Z(40, 4).to(B16)),
    "weight_group": case("conv_weight must be [C, 1, K] with C = 40 and K 1 to 8, got [40, 2, 4]", conv_weight=Z(40, 2, 4).to(B16)),
    "taps9": case("conv_weight must be [C, 1, K] with C = 40 and K 1 to 8, got [40, 1, 9]", conv_weight=Z(40, 1, 9).to(B16)),
    "taps0": case("conv_weight must be [C, 1, K] with C = 40 and K 1 to 8, got [40, 1, 0]", conv_weight=Z(40, 1, 0).to(B16)),
    "conv_bias_dtype": case("conv_bias must have the dtype of qkv, bfloat16, got float16", conv_bias=Z(40).half()),
    "conv_bias_size": case("conv_bias must be [C] = [40], got [39]", conv_bias=Z(39).to(B16)),
    "gate_dtype": case("gate dtype float16 is not supported, use bfloat16 or float32", gate=Z(1, 3, 4).half()),
    "gate_dtype_of_float32": case("gate dtype bfloat16 is not supported, use float32", qkv=Z(1, 3, 40), conv_weight=Z(40, 1, 4), conv_bias=None,
                                  gate=Z(1, 3, 4).to(B16)),
    "gate_heads": case("gate must be [B, L, num_v_heads] = [1, 3, 4] to match qkv [1, 3, 40], got [1, 3, 2]", gate=Z(1, 3, 2)),
    "gate_length": case("gate must be [B, L, num_v_heads] = [1, 3, 4] to match qkv [1, 3, 40], got [1, 2, 4]", gate=Z(1, 2, 4)),
    "kda_gate": case("gate must be [B, L, num_v_heads, head_k_dim] = [1, 3, 4, 4] to match qkv [1, 3, 40], got [1, 3, 4]",
                     **kda(gate=Z(1, 3, 4))),
    "kda_gate_bias": case("gate_bias must be [num_v_heads, head_k_dim] = [4, 4], got [4]", **kda(gate_bias=Z(4))),
    "beta_dtype": case("beta dtype float64 is not supported, use bfloat16 or float32", beta=Z(1, 3, 4).double()),
    "beta_heads": case("beta must be [B, L, num_v_heads] = [1, 3, 4] to match qkv [1, 3, 40], got [1, 3, 5]", beta=Z(1, 3, 5)),
    "coef_dtype": case("gate_coef dtype bfloat16 is not supported, use float32", gate_coef=Z(4).to(B16)),
    "coef_size": case("gate_coef must be [num_v_heads] = [4], got [2]", gate_coef=Z(2)),
    "gate_bias_size": case("gate_bias must be [num_v_heads] = [4], got [4, 1]", gate_bias=Z(4, 1)),
    "cu_dtype": case("cu_seqlens dtype float32 is not supported, use int32 or int64", cu_seqlens=torch.tensor([0.0, 3.0])),
    "cu_size": case("cu_seqlens must be [N + 1] with N at least 1, got [1]", cu_seqlens=torch.tensor([3])),
    "cu_batch": case("B must be 1 with cu_seqlens, got qkv [2, 3, 40]", (2, 3), cu_seqlens=torch.tensor([0, 3])),
    "indices_dtype": case("state_indices dtype int16 is not supported, use int32 or int64", state_indices=torch.tensor([0], dtype=torch.int16)),
    "indices_size": case("state_indices must be [N] = [1], got [2]", state_indices=torch.tensor([0, 1])),
    "initial_dtype": case("has_initial_state dtype int32 is not supported, use bool", has_initial_state=torch.tensor([1], dtype=torch.int32)),
    "initial_size": case("has_initial_state must be [N] = [2], got [1]", has_initial_state=torch.tensor([True]), state_indices=torch.tensor([0, 1]),
                         cu_seqlens=torch.tensor([0, 1, 3])),
    "conv_state_dtype": case("conv_state must have the dtype of qkv, bfloat16, got float32", conv_state=Z(5, 40, 3)),
    "conv_state_taps": case("conv_state must be [slots, C, K - 1] = [5, 40, 3], got [5, 40, 4]", conv_state=Z(5, 40, 4).to(B16)),
    "conv_state_rank": case("conv_state must be [slots, C, K - 1] = [40, 40, 3], got [40, 3]", conv_state=Z(40, 3).to(B16)),
    "conv_state_slots": case("conv_state must be [N, C, K - 1] = [1, 40, 3], got [5, 40, 3]", state_indices=None),
    "conv_state_strided": case("conv_state must be contiguous, it is written in place", conv_state=Z(5, 3, 40).to(B16).transpose(1, 2)),
    "state_dtype": case("recurrent_state dtype bfloat16 is not supported, use float32", recurrent_state=Z(5, 4, 4, 6).to(B16)),
    "state_layout": case("recurrent_state must be [slots, num_v_heads, head_k_dim, head_v_dim] = [5, 4, 4, 6], got [5, 4, 6, 4]",
                         recurrent_state=Z(5, 4, 6, 4)),
    "state_strided": case("recurrent_state must be contiguous, it is written in place", recurrent_state=Z(5, 4, 6, 4).transpose(2, 3)),
    "slots_differ": case("conv_state and recurrent_state must have the same number of slots, got 5 and 4", recurrent_state=Z(4, 4, 4, 6)),
}

globals().update(refusals.tests(OP, call, good, REFUSED, first="qkv"))

VALUES = {
    "cu_begin": ("cu_seqlens must begin with 0, got 1", {"cu_seqlens": [1, 3]}),
    "cu_order": ("cu_seqlens must not go down, got 2 and 1 (entry 2)", {"cu_seqlens": [0, 2, 1, 3], "state_indices": [0, 1, 2]}),
    "cu_end": ("cu_seqlens must end with L = 3, got 2", {"cu_seqlens": [0, 2]}),
    "slot_high": ("state_indices must be -1 or 0 to 4, got 5 (entry 0)", {"state_indices": [5]}),
    "slot_low": ("state_indices must be -1 or 0 to 4, got -2 (entry 0)", {"state_indices": [-2]}),
    "slot_low_stateless": ("state_indices must be -1 or a slot, got -2 (entry 0)",
                           {"state_indices": [-2], "conv_state": None, "recurrent_state": None}),
    "slot_of_none": ("state_indices must be -1 without any slot, got 0 (entry 0)",
                     {"state_indices": [0], "conv_state": Z(0, 40, 3).to(B16), "recurrent_state": Z(0, 4, 4, 6)}),
    "slot_twice": ("state_indices must name a slot once, got 3 twice", {"cu_seqlens": [0, 1, 2, 3], "state_indices": [3, 0, 3]}),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("name", VALUES)
def test_cpu_refuses_values(name, dtype):
    message, changes = VALUES[name]
    arguments = good() | {name: torch.tensor(given, dtype=dtype) if isinstance(given, list) else given for name, given in changes.items()}
    arguments["has_initial_state"] = None
    states = [arguments[state] for state in ("conv_state", "recurrent_state") if arguments[state] is not None]
    before = [state.clone() for state in states]
    assert refusal(lambda: call(**arguments)) == f"{OP}: {message}"
    assert all(map(torch.equal, states, before))


# Behind a state in one memory, or in its last 8 bytes: all the others.
BESIDE = [name for name, value in good().items() if isinstance(value, torch.Tensor)] + ["cu_seqlens"]


@pytest.mark.parametrize("written, argument", [(state, argument) for state in ("conv_state", "recurrent_state") for argument in BESIDE
                                               if argument != state and (state, argument) != ("conv_state", "recurrent_state")])
def test_a_state_in_the_memory_of_another_tensor(written, argument, backend):
    arguments = good() | {"cu_seqlens": torch.tensor([0, 3], dtype=torch.int32)}
    state, other = arguments[written], arguments[argument]
    state_bytes, bytes_ = (tensor.numel() * tensor.element_size() for tensor in (state, other))
    memory = torch.zeros(state_bytes + bytes_, dtype=torch.uint8)

    def beside(first):
        return {written: memory[:state_bytes].view(state.dtype).view(state.shape),
                argument: memory[first : first + bytes_].view(other.dtype).view(other.shape).copy_(other)}

    if not backend.simulated:
        call(**arguments | beside(state_bytes))
    shared = arguments | beside(state_bytes - 8)
    before = memory.clone()
    with backend:
        assert refusal(lambda: call(**shared)) == f"{OP}: {written} is written and must not share memory with {argument}"
    assert torch.equal(memory, before)


@pytest.mark.parametrize("view, touches", [
    pytest.param(lambda memory: memory[:120].view(1, 40, 3).transpose(1, 2), True, id="transposed"),
    pytest.param(lambda memory: memory[460:500].view(1, 1, 40).expand(1, 3, 40), True, id="expanded"),
    pytest.param(lambda memory: memory[478:718].view(1, 3, 80)[..., ::2], True, id="every second"),
    pytest.param(lambda memory: memory[479:719].view(1, 3, 80)[..., 1::2], False, id="every second, behind")])
def test_a_state_between_the_elements_of_another_tensor(view, touches):
    memory = Z(4000)
    arguments = good() | {"conv_weight": Z(40, 1, 4), "conv_bias": Z(40), "conv_state": None, "beta": Z(1, 3, 4),
                          "recurrent_state": memory[:480].view(5, 4, 4, 6), "qkv": view(memory)}
    if touches:
        assert refusal(lambda: call(**arguments)) == f"{OP}: recurrent_state is written and must not share memory with qkv"
    else:
        call(**arguments)


def test_a_state_in_the_gap_between_two_rows():
    memory = Z(2000)
    arguments = good((2, 3)) | {"conv_weight": Z(40, 1, 4), "conv_bias": Z(40), "conv_state": None, "beta": Z(2, 3, 4)}
    gap = {"qkv": memory.as_strided((2, 3, 40), (1000, 40, 1)), "recurrent_state": memory[120:600].view(5, 4, 4, 6)}
    call(**arguments | gap)
    assert refusal(lambda: call(**arguments | gap | {"recurrent_state": memory[521:1001].view(5, 4, 4, 6)})) == (
        f"{OP}: recurrent_state is written and must not share memory with qkv")


@pytest.mark.parametrize("tokens, why", [(2**45, "can't allocate memory.*140737488355328 bytes"), (2**61, "calculation overflowed")])
def test_no_result(tokens, why):
    """What torch says where it gives no tensor."""
    arguments = {"qkv": Z(1, 1, 3).expand(1, tokens, 3), "gate": Z(1, 1, 1).expand(1, tokens, 1), "beta": Z(1, 1, 1).expand(1, tokens, 1)}
    with pytest.raises(RuntimeError, match=rf"custom_ops: no tensor \[1, {tokens}, 1, 1\] of float32: .*{why}"):
        call(**arguments, conv_weight=Z(3, 1, 4), attn_type="gated_delta_rule", num_k_heads=1, num_v_heads=1, head_k_dim=1, head_v_dim=1,
             token_major=True)
