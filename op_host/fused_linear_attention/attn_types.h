// The variants of fused_linear_attention, one entry each, and what follows from an entry. A variant that is made of these parts is one
// more line of kAttnTypes: the checks of the front end, shape inference and tiling ask the functions below.
#pragma once

#include <cstdint>
#include <string_view>

namespace custom_ops::linear_attention {

enum class Convolution : uint8_t {
    kSilu,   // over q | k | v, SiLU after it
    kGated,  // over B * x of B | C | x, C times its result, no activation
};

enum class State : uint8_t {
    kNone,
    kDelta,  // S <- decay S + k delta^T, delta = beta (v - (decay S)^T k), out = S^T q
};

enum class Gate : uint8_t {
    kNone,
    kPerHead,     // log decay of a value head and token
    kPerChannel,  // of each of its dk rows of the state
};

struct AttnType {
    const char* name;
    Convolution convolution;
    State state;
    Gate gate;
};

inline constexpr AttnType kAttnTypes[] = {
    {"gated_delta_rule", Convolution::kSilu, State::kDelta, Gate::kPerHead},
    {"kda", Convolution::kSilu, State::kDelta, Gate::kPerChannel},
    {"short_conv", Convolution::kGated, State::kNone, Gate::kNone},
};

// Null: there is none of this name.
constexpr const AttnType* FindAttnType(std::string_view name) {
    for (const AttnType& type : kAttnTypes)
        if (name == type.name) return &type;
    return nullptr;
}

struct Heads {
    int64_t keyHeads;    // Hk, those of q too
    int64_t valueHeads;  // Hv; value head h reads key head h / (Hv / Hk)
    int64_t keyDim;      // dk
    int64_t valueDim;    // dv; of a gated convolution: all its channels
};

constexpr int64_t kMaxHeadDim = 512;  // dk and dv where there is a recurrent state
constexpr int64_t kMaxTaps = 8;       // K

constexpr bool HasState(const AttnType& type) { return type.state != State::kNone; }
constexpr bool HasGate(const AttnType& type) { return type.gate != Gate::kNone; }

// One group of channels per part: no heads. Then Hk = Hv = 1 and dk = dv.
constexpr bool HasHeads(const AttnType& type) { return type.convolution != Convolution::kGated; }

// D: rows of the projection.
constexpr int64_t QkvChannels(const AttnType& type, const Heads& heads) {
    if (type.convolution == Convolution::kGated) return 3 * heads.valueDim;
    return 2 * heads.keyHeads * heads.keyDim + heads.valueHeads * heads.valueDim;
}

// C: channels of the convolution, its weight, bias and state.
constexpr int64_t ConvChannels(const AttnType& type, const Heads& heads) {
    return type.convolution == Convolution::kGated ? heads.valueDim : QkvChannels(type, heads);
}

// gate and beta are [B, L, GateHeads], the gate of kPerChannel [B, L, GateHeads, dk].
constexpr int64_t GateHeads(const AttnType& type, const Heads& heads) { return HasGate(type) ? heads.valueHeads : 1; }

constexpr const char* Name(Convolution convolution) { return convolution == Convolution::kGated ? "gated" : "silu"; }
constexpr const char* Name(State state) { return state == State::kDelta ? "delta" : "none"; }
constexpr const char* Name(Gate gate) {
    return gate == Gate::kPerHead ? "per_head" : gate == Gate::kPerChannel ? "per_channel" : "none";
}

}  // namespace custom_ops::linear_attention
