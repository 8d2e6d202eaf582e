// Random numbers. A call is a pure function of (seed, offset): the same pair gives the same numbers on every run and for every
// number of host threads. They are not the numbers of a device, whose Philox rounds are not modelled.
#include <ATen/CPUGeneratorImpl.h>

#include "sim/aclnn/drop_mask.h"
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// splitmix64 of both: neighbouring seeds and offsets give unrelated streams.
at::Generator Numbers(int64_t seed, int64_t offset) {
    uint64_t x = static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(offset);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return at::make_generator<at::CPUGeneratorImpl>(x ^ (x >> 31));
}
// The forms for captured graphs read seed and offset when they run.
at::Generator Numbers(const Tensor& seed, const Tensor& offset, int64_t more) {
    return Numbers(seed.item<int64_t>(), offset.item<int64_t>() + more);
}

// The host's kernels draw in the order of memory; through a contiguous tensor a view gets the numbers of its own order.
template <typename Fill>
void Draw(const Out& out, Fill&& fill) {
    Tensor drawn = at::empty(out.sizes(), out.options());
    fill(drawn);
    out = drawn;
}

Tensor Keep(at::IntArrayRef sizes, double dropped, at::Generator numbers) {
    return at::empty(sizes, at::kBool).bernoulli_(1 - dropped, numbers);
}
Tensor Kept(const Tensor& self, const Tensor& keep, double scale) { return at::where(keep, self * scale, at::zeros({}, self.options())); }
Tensor Dropout(const Tensor& self, const Tensor& keep, double dropped) { return Kept(self, keep, dropped < 1 ? 1 / (1 - dropped) : 0); }
void RefuseNoiseShape(const Optional& shape) { TORCH_CHECK(!shape, "noise_shape is not modelled, dropout draws for every element"); }
void DropoutWithMask(const Tensor& self, double dropped, at::Generator numbers, const Out& out, const Out& mask) {
    const Tensor keep = Keep(self.sizes(), dropped, std::move(numbers));
    out = Dropout(self, keep, dropped);
    PackMask(keep, mask);
}

}  // namespace

ACLNN(InplaceNormal, Any, ((Out)self, (float)mean, (float)deviation, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.normal_(mean, deviation, Numbers(seed, offset)); }))
ACLNN(InplaceNormalTensor, Any, ((Out)self, (float)mean, (float)deviation, (Tensor)seed, (Tensor)offset, (int64_t)more),
      Draw(self, [&](Tensor& x) { x.normal_(mean, deviation, Numbers(seed, offset, more)); }))
ACLNN(NormalFloatFloat, Any, ((float)mean, (float)deviation, (int64_t)seed, (int64_t)offset, (Out)out),
      Draw(out, [&](Tensor& x) { x.normal_(mean, deviation, Numbers(seed, offset)); }))
ACLNN(NormalFloatTensor, Any, ((float)mean, (Tensor)deviation, (int64_t)seed, (int64_t)offset, (Out)out),
      Draw(out, [&](Tensor& x) { x.normal_(0, 1, Numbers(seed, offset)).mul_(deviation).add_(mean); }))
ACLNN(NormalTensorFloat, Any, ((Tensor)mean, (float)deviation, (int64_t)seed, (int64_t)offset, (Out)out),
      Draw(out, [&](Tensor& x) { x.normal_(0, deviation, Numbers(seed, offset)).add_(mean); }))
ACLNN(NormalTensorTensor, Any, ((Tensor)mean, (Tensor)deviation, (int64_t)seed, (int64_t)offset, (Out)out),
      Draw(out, [&](Tensor& x) { x.normal_(0, 1, Numbers(seed, offset)).mul_(deviation).add_(mean); }))
ACLNN(InplaceUniform, Any, ((Out)self, (double)from, (double)to, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.uniform_(from, to, Numbers(seed, offset)); }))
ACLNN(InplaceUniformTensor, Any, ((Out)self, (double)from, (double)to, (Tensor)seed, (Tensor)offset, (int64_t)more),
      Draw(self, [&](Tensor& x) { x.uniform_(from, to, Numbers(seed, offset, more)); }))
ACLNN(InplaceRandom, Any, ((Out)self, (int64_t)from, (int64_t)to, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.random_(from, to, Numbers(seed, offset)); }))
ACLNN(InplaceRandomTensor, Any, ((Out)self, (int64_t)from, (int64_t)to, (Tensor)seed, (Tensor)offset, (int64_t)more),
      Draw(self, [&](Tensor& x) { x.random_(from, to, Numbers(seed, offset, more)); }))
ACLNN(InplaceRandomWithoutFromTo, Any, ((Out)self, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.random_(Numbers(seed, offset)); }))
ACLNN(InplaceRandomWithoutFromToTensor, Any, ((Out)self, (Tensor)seed, (Tensor)offset, (int64_t)more),
      Draw(self, [&](Tensor& x) { x.random_(Numbers(seed, offset, more)); }))
ACLNN(InplaceBernoulli, Any, ((Out)self, (Scalar)p, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.bernoulli_(p.toDouble(), Numbers(seed, offset)); }))
ACLNN(InplaceBernoulliTensor, Any, ((Out)self, (Tensor)p, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.bernoulli_(p, Numbers(seed, offset)); }))
ACLNN(Multinomial, Any, ((Tensor)self, (int64_t)samples, (bool)replacement, (int64_t)seed, (int64_t)offset, (Out)out),
      out = at::multinomial(self, samples, replacement, Numbers(seed, offset)))
ACLNN(MultinomialTensor, Any, ((Tensor)self, (int64_t)samples, (bool)replacement, (Tensor)seed, (Tensor)offset, (int64_t)more, (Out)out),
      out = at::multinomial(self, samples, replacement, Numbers(seed, offset, more)))
ACLNN(Randperm, Any, ((int64_t)n, (int64_t)seed, (int64_t)offset, (Out)out), out = at::randperm(n, Numbers(seed, offset), at::kLong))
ACLNN(SimThreadExponential, Any, ((Out)self, (int64_t)count, (double)lambda, (int64_t)seed, (int64_t)offset),
      Draw(self, [&](Tensor& x) { x.exponential_(lambda, Numbers(seed, offset)); }))
ACLNN(DropoutV3, Any, ((Tensor)self, (Optional)noiseShape, (double)p, (int64_t)seed, (int64_t)offset, (Out)out, (Out)mask),
      RefuseNoiseShape(noiseShape); DropoutWithMask(self, p, Numbers(seed, offset), out, mask))
ACLNN(DropoutV3Tensor, Any, ((Tensor)self, (Optional)noiseShape, (double)p, (Tensor)seed, (Tensor)offset, (int64_t)more, (Out)out,
                             (Out)mask),
      RefuseNoiseShape(noiseShape); DropoutWithMask(self, p, Numbers(seed, offset, more), out, mask))
ACLNN(DropoutV3Grad, Any, ((Tensor)grad, (Tensor)mask, (double)scale, (Out)out), out = Kept(grad, UnpackMask(mask, grad.sizes()), scale))
ACLNN(DropoutGenMask, Any, ((Ints)shape, (double)p, (int64_t)seed, (int64_t)offset, (Out)mask),
      PackMask(Keep(shape, p, Numbers(seed, offset)), mask))
ACLNN(DropoutGenMaskV2, Any, ((Ints)shape, (double)p, (int64_t)seed, (int64_t)offset, (int32_t)probabilityType, (Out)mask),
      PackMask(Keep(shape, p, Numbers(seed, offset)), mask))
ACLNN(DropoutGenMaskV2Tensor, Any, ((Ints)shape, (double)p, (Tensor)seed, (Tensor)offset, (int64_t)more, (int32_t)probabilityType,
                                    (Out)mask),
      PackMask(Keep(shape, p, Numbers(seed, offset, more)), mask))
ACLNN(DropoutDoMask, Any, ((Tensor)self, (Tensor)mask, (double)p, (Out)out), out = Dropout(self, UnpackMask(mask, self.sizes()), p))

}  // namespace sim::aclnn
