#include "sim/aclnn/drop_mask.h"

namespace sim::aclnn {
namespace {

constexpr int64_t kWordBits = 128;
// The mask's tensor may have any dtype: its bytes count.
Tensor Bytes(const Tensor& mask) { return at::from_blob(mask.data_ptr(), {static_cast<int64_t>(mask.nbytes())}, at::kByte); }

}  // namespace

void PackMask(const Tensor& keep, const Out& mask) {
    const Tensor bits = at::zeros({(keep.numel() + kWordBits - 1) / kWordBits * kWordBits}, at::kByte);
    bits.narrow(0, 0, keep.numel()).copy_(keep.flatten());
    const Tensor packed = (bits.view({-1, 8}) * at::tensor({1, 2, 4, 8, 16, 32, 64, 128}, at::kByte)).sum(1).to(at::kByte);
    const Tensor bytes = Bytes(mask);
    TORCH_CHECK(packed.numel() <= bytes.numel(), "the mask has ", bytes.numel(), " bytes, ", packed.numel(), " are needed");
    bytes.zero_().narrow(0, 0, packed.numel()).copy_(packed);
}

Tensor UnpackMask(const Tensor& mask, at::IntArrayRef sizes) {
    const int64_t count = c10::multiply_integers(sizes);
    const Tensor bits = at::bitwise_right_shift(Bytes(mask).unsqueeze(1), at::arange(8, at::kByte)).bitwise_and(1).flatten();
    TORCH_CHECK(count <= bits.numel(), "the mask has ", bits.numel(), " bits, the tensor ", count, " elements");
    return bits.narrow(0, 0, count).view(sizes).to(at::kBool);
}

}  // namespace sim::aclnn
