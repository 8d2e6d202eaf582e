// The native CPU kernels, one table of functions per instruction set. Every function works on a half-open range of tokens and touches
// nothing outside it: the caller may split the tokens over threads in any way without changing a bit of the result.
#pragma once

#include <cstdint>

namespace custom_ops::native {

enum class Element : int32_t { kFloat32, kFloat16, kBfloat16 };
enum class Activation : int32_t { kSilu, kGeluTanh };

constexpr int32_t kMaxStreams = 16;    // hc_mult
constexpr int64_t kTokensPerBlock = 16;  // a whole number of SIMD lanes on every instruction set
constexpr int64_t kMixedPerBlock = 128;  // tokens of a sinkhorn call: streaming x hides the weights of all but the first few
constexpr int64_t kRowsPerBlock = 8;     // a whole number of cpu_linear's tiles on every instruction set

struct InvRmsArgs {
    const void* x;      // [T, elementsPerToken]
    float* y;           // [T]
    Element element;    // of x
    int64_t elementsPerToken;  // hc_mult * d
    double epsilon;
};

struct SinkhornArgs {
    const float* mixes;  // [T, (2 + n) * n]
    const float* rsqrt;  // [T]
    const float* scale;  // [3]
    const float* base;   // [(2 + n) * n]
    const void* x;       // [T, n, d]
    void* y;             // [T, d]
    float* post;         // [T, n]
    float* comb;         // [T, n, n]
    Element element;     // of x and y
    int32_t streams;     // n = hc_mult
    int64_t hidden;      // d
    int64_t iterations;
    float eps;
    bool bypassCache;    // y is larger than the caches: store it past them
};

struct ProjectionArgs {
    const void* x;    // [T, elementsPerToken]
    const float* fn;  // [rows, elementsPerToken]
    float* raw;       // [T, rows]
    Element element;  // of x
    int64_t elementsPerToken;  // hc_mult * d
    int32_t rows;     // (2 + hc_mult) * hc_mult
};

struct PreArgs {
    SinkhornArgs mixing;  // mixes: null, or the projection that `project` has made; rsqrt: not used
    const float* fn;      // [(2 + n) * n, n * d]
    double normEpsilon;
    int64_t tokensPerBlock;  // as many as stay in the cache between the projection and the weighted sum
};

struct PostArgs {
    const void* x;         // [T, d]
    const void* residual;  // [T, n, d]
    const void* post;      // [T, n]
    const void* comb;      // [T, n, n]
    void* y;               // [T, n, d]
    Element element;       // of x, residual and y
    Element weightElement; // of post and comb
    int32_t streams;       // n = hc_mult
    int64_t hidden;        // d
    bool bypassCache;      // y is larger than the caches: store it past them
};

// The convolution of npu_fused_linear_attention. Element (token, channel) of a sequence is at qkv + token * tokenStride + channel * channelStride.
struct ConvArgs {
    int64_t tokenStride, channelStride;  // in elements; one of them is 1
    const void* weight;  // [C, K]
    const void* bias;    // [C] or null
    Element element;     // of qkv, weight, bias, state and out
    int64_t channels;    // C
    int32_t taps;        // K
    void* out;           // [tokens, Hv, dv]
    bool bypassCache;    // out is larger than the caches: store it past them
};

struct DeltaRuleArgs {
    ConvArgs conv;
    const void *gate, *beta;         // [tokens, Hv] (gate per channel: [tokens, Hv, dk]), [tokens, Hv]
    Element gateElement, betaElement;
    const float *gateCoef, *gateBias;  // null: gate and beta are ready
    int64_t keyHeads, valueHeads, keyDim, valueDim;
    bool useL2norm, gatePerChannel;
};

// A sequence of at least one token. The states before it may lie where those after it go.
struct Sequence {
    const void* qkv;
    int64_t firstToken, tokens;  // rows of gate, beta and out
    const void* windowBefore;    // [C, K - 1]; null: zeros
    void* window;                // null: not kept
    const float* stateBefore;    // [Hv, dk, dv]; null: zeros
    float* state;                // null: not kept
};

// y[t, r] = residual[t, r] + sum_k x[t, k] * weight[r, k] + bias[r]
struct LinearMatrix {
    const void* weight;    // [rows, columns]
    const void* bias;      // [rows] or null
    const void* residual;  // [tokens, rows] or null
    void* y;               // [tokens, rows]
    int64_t rows;
};

struct LinearArgs {
    const float* x;   // as Kernels::widen makes it
    Element element;  // of weight, bias, residual and y
    int64_t tokens, columns;
};

// One token of every row: norm and rotation of q and k, k and v into the memory, softmax(q k^T scale) v over its slots.
struct AttentionStepArgs {
    const void *q, *k, *v;        // [rows, heads, dim], with outputGate [rows, heads, 2, dim]: a query, then its gate; [rows, kvHeads, dim]
    const float *qNorm, *kNorm;   // [dim] or null
    const void *cosines, *sines;  // [pairs]
    void *keys, *values;          // [rows, kvHeads, capacity, dim]: slot `slot` is written, first .. slot are read
    void* out;                    // [rows, heads, dim]
    Element element;              // of all but the norms
    int64_t heads, kvHeads, dim, pairs, capacity, first, slot;
    bool interleaved, outputGate;
    double epsilon;
    float scale;
};

struct RmsNormArgs {
    const void* x;        // [tokens, columns]
    const float* weight;  // [columns]
    void* y;              // [tokens, columns]
    Element element;      // of x and y
    int64_t columns;
    double epsilon;
};

// hc_pre with bfloat16 x by matrix tiles (hc_pre_amx_kernel.h).
struct TileKernels {
    int64_t chunkElements;  // of K
    int64_t (*weightBytes)(const ProjectionArgs& args);
    // Chunks [firstChunk, lastChunk) of fn into `weights`, aligned to 64 bytes. False: fn has an element there that is not finite or is
    // beyond 2^40, and is not for tiles.
    bool (*splitWeights)(const ProjectionArgs& args, int64_t firstChunk, int64_t lastChunk, void* weights);
    void (*pre)(const PreArgs& args, const void* weights, int64_t firstToken, int64_t lastToken);
};

struct Kernels {
    const char* name;
    void (*invRms)(const InvRmsArgs& args, int64_t firstToken, int64_t lastToken);
    void (*sinkhorn)(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken);
    // Rows [firstRow, lastRow) of raw, for all tokens.
    void (*project)(const ProjectionArgs& args, int64_t tokens, int64_t firstRow, int64_t lastRow);
    void (*pre)(const PreArgs& args, int64_t firstToken, int64_t lastToken);
    void (*post)(const PostArgs& args, int64_t firstToken, int64_t lastToken);
    // Tokens [firstToken, lastToken) of a sequence; the last of them writes the window, which none may still have to read.
    void (*shortConv)(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken);
    // Strips [firstStrip, lastStrip) of the value heads of a key head, numbered over all of these; the convolution of q and k goes with
    // strip 0, which writes their window. Nothing else is written by two calls.
    void (*deltaRule)(const DeltaRuleArgs& args, const Sequence& sequence, int64_t keyHead, int64_t firstStrip, int64_t lastStrip);
    int64_t stripColumns;  // of dv; the last strip of a head may have fewer
    // Rows [firstRow, lastRow) of y, for all tokens. What a row is does not depend on the others of a call.
    void (*linear)(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t lastRow);
    // x [tokens, columns] as float32 in the order in which a row of the same element is loaded; every token is filled up with zeros to a
    // multiple of wideColumns.
    void (*widen)(Element element, const void* x, int64_t tokens, int64_t columns, float* wide);
    int64_t wideColumns;
    // gate = act(gate) * up, rounded once
    void (*gate)(Element element, Activation activation, void* gate, const void* up, int64_t elements);
    // Key head `task` of all rows, numbered through.
    void (*attentionStep)(const AttentionStepArgs& args, int64_t task);
    void (*rmsNorm)(const RmsNormArgs& args, int64_t firstToken, int64_t lastToken);
    const TileKernels* tiles;  // null: the host has none
};

// The table for this host: the widest instruction set it has, or the one named by CUSTOM_OPS_CPU
// (baseline, avx2, avx512, amx). Chosen once.
const Kernels& HostKernels();

}  // namespace custom_ops::native
