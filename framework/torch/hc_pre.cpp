// npu_hc_pre: inverse RMS, projection, Sinkhorn and weighted sum of the streams in one call.
#include "hc_pre.h"

#include <memory>
#include <tuple>

#include "op_support.h"

namespace custom_ops {

HcMixingShape CheckHcPre(const HcPreInputs& in, const HcPreAttributes& attributes) {
    constexpr const char* kOp = "npu_hc_pre";
    const int64_t hcMult = attributes.hcMult;
    CheckMixingAttributes(kOp, hcMult, attributes.iterations, attributes.hcEps);
    CheckFiniteNonNegative(kOp, "norm_eps", attributes.normEps);
    CheckGiven(kOp, {{"x", &in.x}, {"hc_fn", &in.hcFn}, {"hc_scale", &in.hcScale}, {"hc_base", &in.hcBase}});
    const HcMixingShape shape = CheckStreams(kOp, in.x, hcMult);
    CheckBeside(kOp, "hc_fn", in.hcFn, "[(2 + hc_mult) * hc_mult, hc_mult * d]", Shape({}, {MixesPerToken(hcMult), hcMult * shape.hidden}), in.x);
    CheckScaleAndBase(kOp, in.hcScale, in.hcBase, in.x, hcMult);
    CheckDevice(kOp, "hc_fn", in.hcFn, in.x);
    CheckDevice(kOp, "hc_scale", in.hcScale, in.x);
    CheckDevice(kOp, "hc_base", in.hcBase, in.x);
    return shape;
}

namespace {

// Of x, between its two readings: half of a second-level cache of 2 MiB, the other half is for fn.
constexpr int64_t kBlockBytes = 1 << 20;
// Up to here all tokens together read fn once and its rows are split over the threads; with more tokens x is the larger one.
constexpr int64_t kRowSplitTokens = 32;
constexpr int64_t kSerialBytes = 256 << 10;  // of fn

// raw [T, rows]; the order of every sum is the same as without the split.
std::unique_ptr<float[]> ProjectBeforehand(const native::ProjectionArgs& args, int64_t tokens) {
    const int64_t threads = torch::stable::get_num_threads();
    if (tokens == 0 || tokens > kRowSplitTokens || threads <= 1 || args.rows * args.elementsPerToken * 4 < kSerialBytes) return nullptr;
    std::unique_ptr<float[]> raw(new float[tokens * args.rows]);
    native::ProjectionArgs into = args;
    into.raw = raw.get();
    const int64_t perThread = (args.rows + threads - 1) / threads;
    torch::stable::parallel_for(0, args.rows, perThread, [&](int64_t first, int64_t last) {
        native::HostKernels().project(into, tokens, first, last);
    });
    return raw;
}

// By tiles from here on, where the host has them: making fn's terms and reading them has then paid off (two threads; a token's bits may
// not depend on how many there are).
constexpr int64_t kManyTokens = 128;
// A chunk of fn's terms is read once for so many tokens.
constexpr int64_t kTileBlock = 256;
// fn's terms: on a huge page from here on, of which less than half is wasted and which is then found again.
constexpr int64_t kLargeTermBytes = (1 << 20) + 1;

// By tiles; false: nothing has been done, fn is not for them.
bool PreByTiles(const native::TileKernels& tiles, const native::ProjectionArgs& projection, native::PreArgs args, const Tensor& like,
                int64_t tokens, int64_t bytes) {
    Tensor weights = NewEmpty(like, Shape({}, {tiles.weightBytes(projection)}), ScalarType::Byte, kLargeTermBytes);
    void* const data = weights.mutable_data_ptr();
    const int64_t chunks = (projection.elementsPerToken + tiles.chunkElements - 1) / tiles.chunkElements;
    std::atomic<bool> tame{true};
    torch::stable::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
        if (!tiles.splitWeights(projection, first, last, data)) tame.store(false, std::memory_order_relaxed);
    });
    if (!tame) return false;
    args.tokensPerBlock = kTileBlock;
    ForTokens(tokens, bytes, [&](int64_t first, int64_t last) { tiles.pre(args, data, first, last); }, kTileBlock);
    return true;
}

std::tuple<Tensor, Tensor, Tensor> HcPreCpu(const Tensor& x, const Tensor& hcFn, const Tensor& hcScale, const Tensor& hcBase, int64_t hcMult,
                                            int64_t iterations, double normEps, double hcEps) {
    const HcMixingShape shape = CheckHcPre({x, hcFn, hcScale, hcBase}, {hcMult, iterations, normEps, hcEps});
    Contiguous in;
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    const int64_t yBytes = shape.tokens * shape.hidden * static_cast<int64_t>(x.element_size());
    const int64_t tokenBytes = hcMult * shape.hidden * static_cast<int64_t>(x.element_size());
    const int64_t perBlock = std::clamp<int64_t>(kBlockBytes / tokenBytes / native::kTokensPerBlock, 1, 4) * native::kTokensPerBlock;
    const native::Element element = ElementOf(x);
    const native::ProjectionArgs projection{in.Data(x), in.Floats(hcFn), nullptr, element, hcMult * shape.hidden,
                                            static_cast<int32_t>(MixesPerToken(hcMult))};
    const native::Kernels& kernels = native::HostKernels();
    native::PreArgs args{{nullptr, nullptr, in.Floats(hcScale), in.Floats(hcBase), projection.x, y.mutable_data_ptr(),
                          static_cast<float*>(post.mutable_data_ptr()), static_cast<float*>(comb.mutable_data_ptr()), element,
                          static_cast<int32_t>(hcMult), shape.hidden, iterations, static_cast<float>(hcEps), yBytes >= kLargeResultBytes},
                         projection.fn, normEps, perBlock};
    // Every byte of x is multiplied MixesPerToken times: threads pay much earlier than for one that is only read.
    const int64_t bytes = yBytes * (hcMult + 1);
    if (kernels.tiles && element == native::Element::kBfloat16 && shape.tokens >= kManyTokens &&
        PreByTiles(*kernels.tiles, projection, args, x, shape.tokens, bytes * projection.rows))
        return {std::move(y), std::move(post), std::move(comb)};
    const std::unique_ptr<float[]> raw = ProjectBeforehand(projection, shape.tokens);
    args.mixing.mixes = raw.get();
    ForTokens(shape.tokens, bytes * (raw ? 1 : projection.rows),
              [&](int64_t first, int64_t last) { kernels.pre(args, first, last); }, perBlock);
    return {std::move(y), std::move(post), std::move(comb)};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_hc_pre(Tensor x, Tensor hc_fn, Tensor hc_scale, Tensor hc_base, *, int hc_mult=4, int hc_sinkhorn_iters=20, "
          "float norm_eps=1e-6, float hc_eps=1e-6) -> (Tensor y, Tensor post, Tensor comb_frag)");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("npu_hc_pre", TORCH_BOX(&HcPreCpu)); }

}  // namespace custom_ops
