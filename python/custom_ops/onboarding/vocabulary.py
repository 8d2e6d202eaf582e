"""Every key and trait a family map may use, in one place: a name that is not here is refused.

Keys:    `unified name = "source path"`, by level. A module or parameter key is a path in the checkpoint, relative to the object of
         its level (model, one decoder block, its attention, linear attention or MLP); a number key is a path in config.json.
Traits:  what names alone cannot say about a family.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import ACTIVATION_NAMES, RESIDUAL_MODES, ROUTINGS

MODULE = "module"        # a path of tensor names: "q_proj" has q_proj.weight, perhaps q_proj.bias; or a bare parameter
ATTRIBUTE = "attribute"  # a module or value without tensors, known to Python code only: kept, never looked for in a checkpoint
COUNT = "count"          # config.json: an integer >= 1
SIZE = "size"            # config.json: an integer >= 0
NUMBER = "number"        # config.json: a number that float32 holds
POSITIVE = "positive"    # config.json: such a number above 0
EPSILON = "epsilon"      # config.json: such a number from 0
FLAG = "flag"            # config.json: true or false
NAME = "name"            # config.json: a string
ACTIVATION = "activation"  # config.json: the name of an activation that LlmModel has
ANY = "any"              # config.json: whatever stands there (token ids, per-layer lists, rope dicts)

ATTENTION_TYPES = ("full_attention", "sliding_attention", "chunked_attention")  # of blocks with self_attn
LINEAR_TYPES = ("linear_attention", "conv")  # of blocks with linear_attn
LAYER_TYPES = (*ATTENTION_TYPES, *LINEAR_TYPES)


@dataclass(frozen=True)
class Key:
    kind: str
    sentence: str


def _keys(kind: str, **sentences: str) -> dict[str, Key]:
    return {name: Key(kind, sentence) for name, sentence in sentences.items()}


CONFIG = {
    **_keys(
        COUNT,
        hidden_size="d, the width of the residual stream",
        head_dim="size of one attention head; hidden_size / num_attention_heads when config.json has none",
        num_attention_heads="query heads",
        num_hidden_layers="decoder blocks",
        num_key_value_heads="key and value heads; num_attention_heads when config.json has none",
        intermediate_size="width of the dense MLP",
        moe_intermediate_size="width of one expert",
        shared_expert_intermediate_size="width of the expert every token passes",
        max_position_embeddings="longest sequence the model was made for",
        vocab_size="rows of the embedding",
        sliding_window="tokens a sliding_attention layer sees, the current one included",
        attention_chunk_size="tokens of a chunk of chunked_attention layers",
        conv_L_cache="W, taps of the short convolution",
        linear_conv_kernel_dim="W, taps of the convolution before the delta rule",
        linear_key_head_dim="K of the delta rule",
        linear_num_key_heads="H of the delta rule",
        linear_num_value_heads="HV of the delta rule",
        linear_value_head_dim="V of the delta rule",
        rotary_dim="elements of a head that rotate, when config.json counts them",
        global_head_dim="head_dim of full_attention layers, where per_layer_config does not say it (gemma4)",
        num_global_key_value_heads="their key and value heads, with attention_k_eq_v (gemma4)",
        image_size="vision", num_channels="vision", patch_size="vision",
    ),
    **_keys(
        SIZE,
        num_kv_shared_layers="so many last blocks use the keys and values of the last earlier block of their type (gemma4)",
        hidden_size_per_layer_input="width of an input of every block; 0: there is none (gemma4)",
    ),
    **_keys(
        NUMBER,
        rope_theta="base of the rotary embedding, where it stands outside rope_parameters",
        rope_local_theta="base of the sliding layers' rotary embedding, where it stands outside rope_parameters",
        rope_ratio="factor on the rotary base (chatglm2)",
        partial_rotary_factor="share of a head that rotates",
        scale_emb="factor on the embedding (minicpm)",
        dim_model_base="hidden size the head was tuned for (minicpm)",
        attn_scale="a of the temperature of blocks that do not rotate, 1 + a log(1 + floor((position + 1) / n)) (llama4)",
        swiglu_alpha="alpha of x * sigmoid(alpha * x) (gpt_oss)",
        swiglu_limit="bound of gate and up before the product (gpt_oss)",
    ),
    **_keys(POSITIVE, floor_scale="n of that temperature (llama4)"),
    **_keys(EPSILON, rms_norm_eps="epsilon of every norm of the decoder"),
    **_keys(
        FLAG,
        tie_word_embeddings="the head is the embedding, no lm tensor of its own",
        attention_k_eq_v="full_attention layers have no v_proj: the value is the projected key (gemma4)",
        enable_moe_block="experts beside the dense MLP (gemma4)",
    ),
    **_keys(NAME, model_type="id of the family"),
    **_keys(
        ANY,
        rope_parameters="theta, rope_type and the numbers of the scaling; may be one dict per layer type",
        rope_scaling="older name of rope_parameters, without theta",
        per_layer_config="head_dim and num_key_value_heads of single blocks that differ from the rest, by number (gemma4)",
        use_bidirectional_attention='tokens see later ones: all with true or "all", those of one image with "vision" (gemma)',
        layer_types="one name per block: full_attention, sliding_attention, chunked_attention, linear_attention, conv",
        attn_temperature_tuning="whether blocks that do not rotate have a temperature (llama4)",
        bos_token_id="token id", eos_token_id="token id or list", pad_token_id="token id",
        image_token_index="token id", boi_token_index="token id", eoi_token_index="token id",
    ),
}

MODEL = {
    **_keys(
        MODULE,
        lm="head; absent where it is tied to the embedding",
        embed="token embedding",
        blocks="the list of decoder blocks",
        final_layernorm="norm before the head",
        visual="vision tower", vision_tower="vision tower with its wrapper", multi_modal_projector="vision or audio to text",
        audio="audio tower", audio_adapter="audio to text", talker="speech generator", token2wav="speech decoder",
        mtp="blocks that predict further tokens", mtp1="first of them", mtp2="second of them",
        embed_vision="vision tokens to text width", embed_audio="audio tokens to text width",
        embed_tokens_per_layer="embedding of every block (gemma4)",
        per_layer_model_projection="hidden state to per-block width (gemma4)",
        per_layer_projection_norm="norm of the former (gemma4)",
        **{"visual.mlp1": "projector of internvl", "visual.connector": "projector of idefics3", "visual.mm_projector": "projector of llava",
           "visual.resampler": "projector of minicpmv", "audio.multi_modal_projector": "projector of an audio model",
           "audio.audio_tower": "second audio tower", "audio.audio_invert_tower": "audio output tower"},
    ),
    **_keys(ATTRIBUTE, rotary_emb="rotary tables", rotary_emb_local="rotary tables of sliding layers",
            **{"visual.select_layer": "which vision layer feeds the text"}),
}

DECODER = {
    **_keys(
        MODULE,
        self_attn="softmax attention", linear_attn="short convolution or delta rule", mlp="dense MLP or experts",
        input_layernorm="norm before attention",
        post_attention_layernorm="norm before the MLP; with residual four_norm and post_norm the norm of attention's output",
        pre_feedforward_layernorm="four_norm: norm before the MLP",
        post_feedforward_layernorm="four_norm, post_norm: norm of the MLP's output",
        pre_feedforward_layernorm_2="gemma4: norm before the experts",
        post_feedforward_layernorm_1="gemma4: norm of the dense branch",
        post_feedforward_layernorm_2="gemma4: norm of the experts' branch",
        layer_scalar="gemma4: factor on the block's output",
        per_layer_input_gate="gemma4", per_layer_projection="gemma4", post_per_layer_input_norm="gemma4",
        router="gemma4: router beside the dense MLP", experts="gemma4: experts beside the dense MLP",
        router_scale="gemma4: weight of the norm before that router, times sqrt(hidden_size)",
        expert_scale="gemma4: factor of each expert on its weight",
    ),
    **_keys(ATTRIBUTE, act_fn="activation of the per-layer gate (gemma4)"),
    **_keys(NUMBER, scale_depth="depth_scaled: a branch is multiplied by scale_depth / sqrt(num_hidden_layers)"),
}

ATTENTION = {
    **_keys(
        MODULE,
        qkv_proj="query, key and value in one matrix; see trait qkv_layout",
        q_proj="query; with output_gate [query | gate] per head", k_proj="key", v_proj="value", o_proj="output",
        q_norm="norm of the query", k_norm="norm of the key", sinks="one extra logit per head (gpt_oss)",
    ),
    **_keys(ATTRIBUTE, v_norm="norm of the value without weight (gemma4)", qk_norm="norm of query and key without weight (llama4)",
            k_eq_v="the value is the key (gemma4)"),
}

MLP = {
    **_keys(
        MODULE,
        gate="router of the experts", router="router of the experts with its own bias (gpt_oss)", experts="the experts",
        expert_bias="added to the router's scores for the choice only", shared_expert="expert every token passes",
        shared_expert_gate="sigmoid gate of the shared expert",
    ),
    **_keys(COUNT, num_experts="experts", top_k="experts per token"),
    **_keys(NUMBER, routed_scaling_factor="factor on the routed sum"),
    **_keys(FLAG, norm_topk_prob="the chosen experts' weights are divided by their sum"),
}

LINEAR_ATTENTION = {
    **_keys(
        MODULE,
        in_proj="short_conv: B, C and x in thirds", conv="short_conv: depthwise taps [d, 1, W]", out_proj="output",
        in_proj_qkv="delta rule: query, key and value before the convolution", in_proj_z="delta rule: output gate z",
        in_proj_b="delta rule: beta before the sigmoid", in_proj_a="delta rule: decay before softplus",
        in_proj_qkvz="delta rule, grouped by key head: q, k, v, z", in_proj_ba="delta rule, grouped by key head: b, a",
        conv1d="delta rule: depthwise taps [2HK + HV*V, 1, W]", norm="delta rule: norm of the output, weight used as it is",
        dt_bias="delta rule: added to a", A_log="delta rule: decay rate, g = -exp(A_log) softplus(a + dt_bias)",
    ),
    **_keys(ATTRIBUTE, act="activation after the convolution, SiLU in every family"),
}

LEVELS = {"config": CONFIG, "model": MODEL, "decoder": DECODER, "attention": ATTENTION, "mlp": MLP, "linear_attention": LINEAR_ATTENTION}


@dataclass(frozen=True)
class Trait:
    """default None: not there. choices (): any value of `type`. path: a string that is no choice is a path in config.json, whose value
    is of this kind."""

    type: type | tuple[type, ...]
    default: object
    sentence: str
    choices: tuple[str, ...] = ()
    path: str = ""


def _choice(sentence: str, *choices: str) -> Trait:
    return Trait(str, choices[0], sentence, choices)


TRAITS = {
    "residual": _choice("how a block's branches join the residual stream",
                        *RESIDUAL_MODES),
    "norm": _choice("norms of the decoder", "rms", "layer"),
    "norm_offset": Trait(bool, False, "norm weights are stored w and used as 1 + w"),
    "qk_norm": _choice("norm of query and key, where the checkpoint has their weights", "none", "before_rope", "after_rope"),
    "qk_norm_offset": Trait(bool, False, "the same for the norms of query and key"),
    "qk_norm_over": _choice("what that norm runs over: each head, or all heads at once", "head", "projection"),
    "qk_norm_plain": Trait(bool, False, "these norms have no weights, and blocks that do not rotate have none"),
    "qk_norm_flag": Trait(str, None, "path of the flag without which there are none of them", path=FLAG),
    "rope_flags": Trait(str, None, "path of a list of one flag per block: whether it rotates", path=ANY),
    "rope_interval": Trait(str, None, "path of n: every n-th block does not rotate; where rope_flags is absent or empty", path=COUNT),
    "rope_pairing": _choice("pairs that rotate: (i, i + dims/2) or (2i, 2i + 1)", "half", "interleaved"),
    "rope_default_theta": Trait((int, float), None, "base where config.json states none; only where the family documents it"),
    "value_norm": Trait(bool, False, "every head of the value is normed, without weight"),
    "output_gate": Trait(bool, False, "q_proj holds query and gate per head; attention's output is multiplied by sigmoid(gate)"),
    "sinks": Trait(bool, False, "one learned logit per head that takes weight and gives nothing"),
    "qkv_layout": _choice("rows of qkv_proj: all q, all k, all v; or q, k, v of each head", "stacked", "per_head"),
    "attention_softcap": Trait(str, None, "logits become cap tanh(logits / cap)", path=POSITIVE),
    "final_softcap": Trait(str, None, "the same for the head's logits", path=POSITIVE),
    "attention_scale": Trait(str, "head_dim", "logits are multiplied by this number to the power -1/2", ("head_dim", "one"), path=POSITIVE),
    "embed_scale": Trait(str, "none", "factor on the embedding", ("none", "sqrt_hidden"), path=NUMBER),
    "logit_scale": Trait(str, "none", "factor on the head's logits; base_over_hidden is dim_model_base / hidden_size",
                         ("none", "base_over_hidden"), path=NUMBER),
    "activation": Trait(str, "hidden_act", "path of the activation's name", path=ACTIVATION),
    "mlp": _choice("down(act(gate) * up), or down(act(up))", "gated", "plain"),
    "mlp_names": Trait(dict, {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"},
                       "children of a dense MLP: gate, up, down; or gate_up (rows of gate first), down"),
    "expert_names": Trait(dict, None, "children of one expert, as mlp_names; those of mlp_names when absent"),
    "experts_layout": _choice("fused experts: gate_up_proj [E, 2I, d], gate rows first; [E, d, 2I], gate columns first; whichever of the "
                              "two the shape is; [E, d, 2I], gate columns even", "halves", "columns", "by_shape", "interleaved"),
    "routing": _choice("how the experts of a token are chosen and weighed", *ROUTINGS),
    "linear": _choice("what the linear_attn blocks are", "none", "short_conv", "gated_delta_rule"),
    "layer_pattern": Trait(list, None, "layer types where config.json has none: repeated over the blocks"),
    "attention_interval": Trait(str, None, "path of n: every n-th block is full attention, the others layer_other", path=COUNT),
    "attention_layers": Trait(str, None, "path of the list of full-attention blocks, the others layer_other", path=ANY),
    "layer_last": Trait(str, None, "layer type of the last block, whatever config.json says", LAYER_TYPES),
    "layer_other": _choice("layer type of the other blocks", "linear_attention", "sliding_attention", "conv"),
    "window_flag": Trait(str, None, "path of the flag without which nothing slides", path=FLAG),
    "window_from": Trait(str, None, "path of n: blocks from n on slide", path=NUMBER),
}

_FLOAT32 = 3.4028234663852886e38  # the largest
ROLES = ("gate", "up", "down", "gate_up")  # keys of mlp_names and expert_names


def is_number(value) -> bool:
    """Whether float32 holds it; a flag is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _FLOAT32


def wrong_kind(kind: str, value) -> str:
    """What a value of this kind must be, empty when it is."""
    if kind == COUNT:
        return "" if is_number(value) and isinstance(value, int) and 1 <= value < 2**31 else "an integer >= 1"
    if kind == SIZE:
        return "" if is_number(value) and isinstance(value, int) and 0 <= value < 2**31 else "an integer >= 0"
    if kind == NUMBER:
        return "" if is_number(value) else "a finite number"
    if kind == POSITIVE:
        return "" if is_number(value) and value > 0 else "a finite number above 0"
    if kind == EPSILON:
        return "" if is_number(value) and value >= 0 else "a finite number >= 0"
    if kind == ACTIVATION:
        return "" if value in ACTIVATION_NAMES else f"one of {', '.join(ACTIVATION_NAMES)}"
    if kind == FLAG:
        return "" if isinstance(value, bool) else "true or false"
    if kind == NAME:
        return "" if isinstance(value, str) else "a name"
    return ""
