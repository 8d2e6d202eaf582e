// Attention and what surrounds it. Computed in float32, rounded once.
#include "sim/aclnn/drop_mask.h"
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

struct Attention {
    Optional pse, dropMask, attenMask;
    double scale, keepProb;
    int64_t before, after, heads;  // pre_tockens, next_tockens of the band
    Text layout;
    int64_t sparseMode;
};

// Between the layout of the call and float32 [B, N, S, D].
Tensor ToBnsd(const Tensor& x, const Attention& a, int64_t heads) {
    const Tensor wide = x.to(at::kFloat);
    if (a.layout == "BNSD") return wide;
    if (a.layout == "BSND") return wide.transpose(1, 2);
    if (a.layout == "BSH") return wide.unflatten(2, {heads, -1}).transpose(1, 2);
    if (a.layout == "SBH") return wide.unflatten(2, {heads, -1}).permute({1, 2, 0, 3});
    TORCH_CHECK(false, "input_layout ", a.layout, " is not modelled, use BSH, SBH, BSND or BNSD");
}
Tensor FromBnsd(const Tensor& x, const Attention& a) {
    if (a.layout == "BNSD") return x;
    if (a.layout == "BSND") return x.transpose(1, 2);
    if (a.layout == "BSH") return x.transpose(1, 2).flatten(2);
    return x.permute({2, 0, 1, 3}).flatten(2);
}
// N of a key or value of grouped-query attention: its last dimension over that of a query head
int64_t KeyHeads(const Tensor& q, const Tensor& k, const Attention& a) {
    return a.layout == "BSH" || a.layout == "SBH" ? k.size(2) * a.heads / q.size(2) : a.heads;
}

void RefusePaddingMask(const Optional& mask) { TORCH_CHECK(!mask, "padding_mask is not modelled, use atten_mask"); }

// What FlashAttentionScoreV4 has beside FlashAttentionScore.
struct Extensions {
    std::vector<Optional> tensors;        // rotated parts of query and key, scales of quantised inputs, sinks
    std::vector<OptionalInts> lists;      // prefix, lengths and starts of sequences
    int64_t outDtype, pseType;
    Text softmaxLayout;
};
void RefuseExtensions(const Extensions& e, const Attention& a) {
    for (const Optional& tensor : e.tensors)
        TORCH_CHECK(!tensor, "query_rope, key_rope, quantised inputs and sink are not modelled");
    for (const OptionalInts& list : e.lists)
        TORCH_CHECK(!list || list->empty(), "prefix, actual_seq_qlen, actual_seq_kvlen, q_start_idx and kv_start_idx are not modelled");
    TORCH_CHECK(e.outDtype == 0, "output dtype ", e.outDtype, " is not modelled, use 0: that of the inputs");
    TORCH_CHECK(e.pseType == 1, "pse_type ", e.pseType, " is not modelled, use 1: pse is added before the scale is applied");
    TORCH_CHECK(e.softmaxLayout.empty(), "softmax_layout ", e.softmaxLayout, " is not modelled, use the default");
    TORCH_CHECK(a.keepProb == 1 || a.dropMask, "keep_prob ", a.keepProb, " without a mask, drawn in the kernel, is not modelled: drop before "
                "or after the attention");
}

// True where a score is dropped.
Optional Dropped(const Attention& a, int64_t sq, int64_t skv) {
    if (!a.attenMask) return std::nullopt;
    const Tensor row = at::arange(sq).unsqueeze(1), column = at::arange(skv);
    switch (a.sparseMode) {
        case 0:
        case 1: return a.attenMask->to(at::kBool);
        case 2: return column > row;
        case 3: return column > row + (skv - sq);
        case 4: return at::logical_or(column > row + (skv - sq) + a.after, column < row + (skv - sq) - a.before);
        default: TORCH_CHECK(false, "sparse_mode ", a.sparseMode, " is not modelled, use 0 to 4");
    }
}

struct Forward {
    Tensor scores, p, keep, output;  // p: softmax, keep: dropout as a factor
};
Forward Run(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& a) {
    Forward f;
    f.scores = at::matmul(q, k.transpose(-1, -2));
    if (a.pse) f.scores = f.scores + a.pse->to(at::kFloat);
    f.scores = f.scores * a.scale;
    if (const Optional dropped = Dropped(a, q.size(2), k.size(2)))
        f.scores = f.scores.masked_fill(*dropped, -std::numeric_limits<float>::infinity());
    const Tensor empty = at::isneginf(f.scores).all(-1, true);  // a row without any score gives zeros
    f.p = at::softmax(f.scores, -1).masked_fill(empty, 0);
    f.keep = a.dropMask ? UnpackMask(*a.dropMask, f.p.sizes()).to(at::kFloat) / a.keepProb : at::ones({}, f.p.options());
    f.output = at::matmul(f.p * f.keep, v);
    return f;
}
Tensor EachHead(const Tensor& x, int64_t heads) { return x.repeat_interleave(heads / x.size(1), 1); }
Tensor PerGroup(const Tensor& grad, int64_t heads) { return grad.unflatten(1, {heads, -1}).sum(2); }

void Score(const Tensor& query, const Tensor& key, const Tensor& value, const Attention& a, const OptionalOut& maximum,
           const OptionalOut& sum, const Out& out) {
    const int64_t groups = KeyHeads(query, key, a);
    const Tensor q = ToBnsd(query, a, a.heads);
    const Forward f = Run(q, EachHead(ToBnsd(key, a, groups), a.heads), EachHead(ToBnsd(value, a, groups), a.heads), a);
    out = FromBnsd(f.output, a);
    const Tensor rowMax = f.scores.amax(-1, true);
    if (maximum.defined()) maximum = rowMax.expand(maximum.sizes());
    if (sum.defined()) sum = at::exp(f.scores - rowMax).sum(-1, true).expand(sum.sizes());
}
void ScoreGrad(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& dy, const Attention& a, const Out& dq,
               const Out& dk, const Out& dv, const OptionalOut& dpse) {
    const int64_t groups = KeyHeads(query, key, a);
    const Tensor q = ToBnsd(query, a, a.heads), k = EachHead(ToBnsd(key, a, groups), a.heads);
    const Tensor v = EachHead(ToBnsd(value, a, groups), a.heads);
    const Tensor grad = ToBnsd(dy, a, a.heads);
    const Forward f = Run(q, k, v, a);
    const Tensor dp = at::matmul(grad, v.transpose(-1, -2)) * f.keep;
    const Tensor ds = f.p * (dp - (dp * f.p).sum(-1, true)) * a.scale;
    const int64_t keyHeads = ToBnsd(key, a, groups).size(1);
    dq = FromBnsd(at::matmul(ds, k), a);
    dk = FromBnsd(PerGroup(at::matmul(ds.transpose(-1, -2), q), keyHeads), a);
    dv = FromBnsd(PerGroup(at::matmul((f.p * f.keep).transpose(-1, -2), grad), keyHeads), a);
    if (a.pse && dpse.defined()) dpse = ds.sum_to_size(a.pse->sizes());
}

// mode 0: the halves of the head rotate, mode 1: neighbours rotate
Tensor Rotated(const Tensor& x, int64_t mode) {
    if (mode == 0) {
        const auto halves = x.chunk(2, -1);
        return at::cat({-halves[1], halves[0]}, -1);
    }
    const Tensor pairs = x.unflatten(-1, {-1, 2});
    return at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
}
Tensor Rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t mode) {
    TORCH_CHECK(mode == 0 || mode == 1, "rotary mode ", mode, " is not modelled, use 0 (half) or 1 (interleave)");
    const Tensor wide = x.to(at::kFloat);
    return wide * cos + Rotated(wide, mode) * sin;
}

}  // namespace

ACLNN(FlashAttentionScore, Any, ((Tensor)query, (Tensor)key, (Tensor)value, (Optional)pse, (Optional)dropMask, (Optional)paddingMask,
                                 (Optional)attenMask, (OptionalInts)prefix, (double)scale, (double)keepProb, (int64_t)before,
                                 (int64_t)after, (int64_t)heads, (Text)layout, (int64_t)innerPrecise, (int64_t)sparseMode,
                                 (OptionalOut)softmaxMax, (OptionalOut)softmaxSum, (OptionalOut)softmax, (Out)out),
      RefusePaddingMask(paddingMask);
      const Attention attention{pse, dropMask, attenMask, scale, keepProb, before, after, heads, layout, sparseMode};
      Score(query, key, value, attention, softmaxMax, softmaxSum, out))
// On the 950.
ACLNN(FlashAttentionScoreV4, Any, ((Tensor)query, (Tensor)key, (Tensor)value, (Optional)pse, (Optional)dropMask, (Optional)paddingMask,
                                   (Optional)attenMask, (Optional)queryRope, (Optional)keyRope, (Optional)scaleQuery, (Optional)scaleKey,
                                   (Optional)scaleValue, (Optional)sink, (OptionalInts)prefix, (OptionalInts)queryLengths,
                                   (OptionalInts)keyLengths, (OptionalInts)queryStarts, (OptionalInts)keyStarts, (double)scale,
                                   (double)keepProb, (int64_t)before, (int64_t)after, (int64_t)heads, (Text)layout,
                                   (int64_t)innerPrecise, (int64_t)sparseMode, (int64_t)outDtype, (int64_t)pseType, (Text)softmaxLayout,
                                   (int64_t)seed, (int64_t)offset, (OptionalOut)softmaxMax, (OptionalOut)softmaxSum,
                                   (OptionalOut)softmax, (Out)out),
      RefusePaddingMask(paddingMask);
      const Attention attention{pse, dropMask, attenMask, scale, keepProb, before, after, heads, layout, sparseMode};
      RefuseExtensions({{queryRope, keyRope, scaleQuery, scaleKey, scaleValue, sink},
                        {prefix, queryLengths, keyLengths, queryStarts, keyStarts}, outDtype, pseType, softmaxLayout}, attention);
      Score(query, key, value, attention, softmaxMax, softmaxSum, out))
ACLNN(FlashAttentionScoreGrad, Any, ((Tensor)query, (Tensor)key, (Tensor)value, (Tensor)dy, (Optional)pse, (Optional)dropMask,
                                     (Optional)paddingMask, (Optional)attenMask, (Optional)softmaxMax, (Optional)softmaxSum,
                                     (Optional)softmax, (Optional)attention, (OptionalInts)prefix, (double)scale, (double)keepProb,
                                     (int64_t)before, (int64_t)after, (int64_t)heads, (Text)layout, (int64_t)innerPrecise,
                                     (int64_t)sparseMode, (Out)dq, (Out)dk, (Out)dv, (OptionalOut)dpse),
      RefusePaddingMask(paddingMask);
      const Attention given{pse, dropMask, attenMask, scale, keepProb, before, after, heads, layout, sparseMode};
      ScoreGrad(query, key, value, dy, given, dq, dk, dv, dpse))
ACLNN(RotaryPositionEmbedding, Any, ((Tensor)x, (Tensor)cos, (Tensor)sin, (int64_t)mode, (Out)out), out = Rotary(x, cos, sin, mode))
ACLNN(ScaledMaskedSoftmax, Any, ((Tensor)x, (Optional)mask, (double)scale, (bool)triangular, (Out)out),
      Tensor scores = x.to(at::kFloat) * scale;
      if (mask) scores = scores.masked_fill(mask->to(at::kBool), -10000.0); out = at::softmax(scores, -1))

}  // namespace sim::aclnn
