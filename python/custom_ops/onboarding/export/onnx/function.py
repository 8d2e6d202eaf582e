"""What a node FusedLinearAttention means, in operators of ONNX: a function of the model, for runtimes that lack the node."""

from __future__ import annotations

from dataclasses import astuple, replace

from ...errors import OnboardingError
from .node import DOMAIN, OP, LinearAttentionNode
from .package import load


def add_function(proto, nodes: list[LinearAttentionNode], taps: list[int]) -> None:
    """taps: of each node's convolution. Raises OnboardingError where nodes need different functions: a model has one of a name."""
    kinds = {astuple(replace(node, name="", gates=None)) + (node.gates is not None, tap) for node, tap in zip(nodes, taps)}
    if len(kinds) > 1:
        raise OnboardingError("linear layers of several kinds or sizes need several functions, and an ONNX model has one of a name; "
                              "write it without the function (--no-function)")
    proto.functions.append(_function(nodes[0], taps[0], {entry.domain: entry.version for entry in proto.opset_import}[""]))


def _function(node: LinearAttentionNode, taps: int, opset: int):
    body = _SHORT_CONV if node.attn_type == "short_conv" else _delta_rule(node)
    h, keys, values = node.head_v_dim, node.num_k_heads * node.head_k_dim, node.num_v_heads * node.head_v_dim
    text = body.format(K1=taps - 1, H=h, D=2 * keys + values, keys=keys, values=values, Hk=node.num_k_heads, Hv=node.num_v_heads,
                       each=node.num_v_heads // node.num_k_heads, dk=node.head_k_dim, dv=h, scale=node.head_k_dim**-0.5)
    return load("onnx.parser").parse_function(
        f'<opset_import: ["" : {opset}], domain: "{DOMAIN}">\n{OP} <{", ".join(node.attributes())}> (qkv, gate, beta, weight) => (out)\n'
        f"{{{text}}}")


def _delta_rule(node: LinearAttentionNode) -> str:
    return (_FOLDED_GATES if node.gates is not None else _GATES) + _CONVOLUTION + (_UNIT if node.use_qk_l2norm else _AS_IS) + _RECURRENCE


# out = C conv(B x)
_SHORT_CONV = """
    sizes = Constant <value_ints = [{H}, {H}, {H}]> ()
    b, c, x = Split <axis = 1> (qkv, sizes)
    bx = Mul (b, x)
    conv = Conv <group = {H}, pads = [{K1}, 0]> (bx, weight)
    product = Mul (c, conv)
    tokens = Transpose <perm = [0, 2, 1]> (product)
    axis = Constant <value_ints = [2]> ()
    out = Unsqueeze (tokens, axis)
"""

_GATES = """
    g = Identity (gate)
    write = Identity (beta)
"""

# gate_coef softplus(a + gate_bias), sigmoid(b)
_FOLDED_GATES = """
    coef = Constant <value_floats: floats = @gate_coef> ()
    bias = Constant <value_floats: floats = @gate_bias> ()
    biased = Add (gate, bias)
    soft = Softplus (biased)
    g = Mul (coef, soft)
    write = Sigmoid (beta)
"""

# time first, for Scan; key heads repeated for their value heads
_CONVOLUTION = """
    conv = Conv <group = {D}, pads = [{K1}, 0]> (qkv, weight)
    sigmoid = Sigmoid (conv)
    active = Mul (conv, sigmoid)
    mixed = Transpose <perm = [2, 0, 1]> (active)
    sizes = Constant <value_ints = [{keys}, {keys}, {values}]> ()
    q_flat, k_flat, v_flat = Split <axis = 2> (mixed, sizes)
    by_key_head = Constant <value_ints = [0, 0, {Hk}, 1, {dk}]> ()
    by_value_head = Constant <value_ints = [0, 0, {Hv}, {dk}]> ()
    v_heads = Constant <value_ints = [0, 0, {Hv}, {dv}]> ()
    copies = Constant <value_ints = [1, 1, 1, {each}, 1]> ()
    q_grouped = Reshape (q_flat, by_key_head)
    k_grouped = Reshape (k_flat, by_key_head)
    q_copied = Expand (q_grouped, copies)
    k_copied = Expand (k_grouped, copies)
    q_raw = Reshape (q_copied, by_value_head)
    k_raw = Reshape (k_copied, by_value_head)
    v = Reshape (v_flat, v_heads)
"""

_UNIT = """
    last = Constant <value_ints = [-1]> ()
    epsilon = Constant <value_float = 1e-6> ()
    qq = Mul (q_raw, q_raw)
    q_sum = ReduceSum (qq, last)
    q_eps = Add (q_sum, epsilon)
    q_norm = Sqrt (q_eps)
    q_unit = Div (q_raw, q_norm)
    kk = Mul (k_raw, k_raw)
    k_sum = ReduceSum (kk, last)
    k_eps = Add (k_sum, epsilon)
    k_norm = Sqrt (k_eps)
    k = Div (k_raw, k_norm)
"""

_AS_IS = """
    q_unit = Identity (q_raw)
    k = Identity (k_raw)
"""

# S = exp(g) S; d = beta (v - k S); S = S + k^T d; o = q S, with vectors as rows
_RECURRENCE = """
    scale = Constant <value_float = {scale}> ()
    q = Mul (q_unit, scale)
    decay_heads = Exp (g)
    pair = Constant <value_ints = [-1, -2]> ()
    decay_wide = Unsqueeze (decay_heads, pair)
    write_wide = Unsqueeze (write, pair)
    decay = Transpose <perm = [1, 0, 2, 3, 4]> (decay_wide)
    strength = Transpose <perm = [1, 0, 2, 3, 4]> (write_wide)
    row = Constant <value_ints = [-2]> ()
    q_rows = Unsqueeze (q, row)
    k_rows = Unsqueeze (k, row)
    v_rows = Unsqueeze (v, row)
    batch = Shape <start = 0, end = 1> (qkv)
    state_sizes = Constant <value_ints = [{Hv}, {dk}, {dv}]> ()
    state_shape = Concat <axis = 0> (batch, state_sizes)
    start = ConstantOfShape (state_shape)
    end, rows = Scan <num_scan_inputs = 5, body = step (
        float[B, {Hv}, {dk}, {dv}] state, float[B, {Hv}, 1, {dk}] q_t, float[B, {Hv}, 1, {dk}] k_t, float[B, {Hv}, 1, {dv}] v_t,
        float[B, {Hv}, 1, 1] decay_t, float[B, {Hv}, 1, 1] strength_t
    ) => (float[B, {Hv}, {dk}, {dv}] next, float[B, {Hv}, 1, {dv}] o_t) {{
        decayed = Mul (state, decay_t)
        known = MatMul (k_t, decayed)
        missing = Sub (v_t, known)
        delta = Mul (missing, strength_t)
        k_column = Transpose <perm = [0, 1, 3, 2]> (k_t)
        outer = MatMul (k_column, delta)
        next = Add (decayed, outer)
        o_t = MatMul (q_t, next)
    }}> (start, q_rows, k_rows, v_rows, decay, strength)
    tokens = Transpose <perm = [1, 0, 2, 3, 4]> (rows)
    out = Squeeze (tokens, row)
"""
