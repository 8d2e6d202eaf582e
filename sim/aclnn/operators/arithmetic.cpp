// Functions of two and more tensors, element by element.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// mode of DivMod: 0 true division, 1 towards zero, 2 towards minus infinity
std::optional<c10::string_view> Rounding(int32_t mode) {
    if (mode == 0) return std::nullopt;
    return mode == 1 ? "trunc" : "floor";
}

}  // namespace

ACLNN_BOTH(Add, ((Tensor)other, (Scalar)alpha), at::add(self, other, alpha))
ACLNN_BOTH(Adds, ((Scalar)other, (Scalar)alpha), at::add(self, other, alpha))
ACLNN(AddV3, Elementwise, ((Scalar)self, (Tensor)other, (Scalar)alpha, (Out)out), out = at::add(other * alpha, self))
ACLNN_BOTH(AddRelu, ((Tensor)other, (Scalar)alpha), at::relu(at::add(self, other, alpha)))
ACLNN_BOTH(Sub, ((Tensor)other, (Scalar)alpha), at::sub(self, other, alpha))
ACLNN_BOTH(Subs, ((Scalar)other, (Scalar)alpha), at::sub(self, other, alpha))
ACLNN_OUT(Rsub, ((Tensor)other, (Scalar)alpha), at::rsub(self, other, alpha))
ACLNN_OUT(Rsubs, ((Scalar)other, (Scalar)alpha), at::rsub(self, other, alpha))
ACLNN_BOTH(Mul, ((Tensor)other), at::mul(self, other))
ACLNN_BOTH(Muls, ((Scalar)other), at::mul(self, other))
ACLNN_BOTH(Div, ((Tensor)other), at::div(self, other))
ACLNN_BOTH(Divs, ((Scalar)other), at::div(self, other))
ACLNN_BOTH(DivMod, ((Tensor)other, (int32_t)mode), at::div(self, other, Rounding(mode)))
ACLNN_BOTH(DivMods, ((Scalar)other, (int32_t)mode), at::div(self, other, Rounding(mode)))
ACLNN_BOTH(FloorDivide, ((Tensor)other), at::floor_divide(self, other))
ACLNN_BOTH(FloorDivides, ((Scalar)other), at::floor_divide(self, other))
ACLNN_BOTH(FmodTensor, ((Tensor)other), at::fmod(self, other))
ACLNN_BOTH(FmodScalar, ((Scalar)other), at::fmod(self, other))
ACLNN_BOTH(RemainderTensorTensor, ((Tensor)other), at::remainder(self, other))
ACLNN_BOTH(RemainderTensorScalar, ((Scalar)other), at::remainder(self, other))
ACLNN(RemainderScalarTensor, Elementwise, ((Scalar)self, (Tensor)other, (Out)out), out = at::remainder(self, other))
ACLNN_BOTH(PowTensorTensor, ((Tensor)exponent), at::pow(self, exponent))
ACLNN_BOTH(PowTensorScalar, ((Scalar)exponent), at::pow(self, exponent))
ACLNN(PowScalarTensor, Elementwise, ((Scalar)self, (Tensor)exponent, (Out)out), out = at::pow(self, exponent))
ACLNN_OUT(Maximum, ((Tensor)other), at::maximum(self, other))
ACLNN_OUT(Minimum, ((Tensor)other), at::minimum(self, other))
ACLNN_BOTH(Atan2, ((Tensor)other), at::atan2(self, other))
ACLNN_OUT(Gcd, ((Tensor)other), at::gcd(self, other))
ACLNN_OUT(LogAddExp, ((Tensor)other), at::logaddexp(self, other))
ACLNN_OUT(LogAddExp2, ((Tensor)other), at::logaddexp2(self, other))
ACLNN_OUT(XLogYTensor, ((Tensor)other), at::xlogy(self, other))
ACLNN_BOTH(XLogYScalarOther, ((Scalar)other), at::xlogy(self, other))
ACLNN(XLogYScalarSelf, Elementwise, ((Scalar)self, (Tensor)other, (Out)out), out = at::xlogy(self, other))
ACLNN_BOTH(Addcmul, ((Tensor)tensor1, (Tensor)tensor2, (Scalar)value), at::addcmul(self, tensor1, tensor2, value))
ACLNN_BOTH(Addcdiv, ((Tensor)tensor1, (Tensor)tensor2, (Scalar)value), at::addcdiv(self, tensor1, tensor2, value))
ACLNN_BOTH(Lerp, ((Tensor)end, (Tensor)weight), at::lerp(self, end, weight))
ACLNN_BOTH(Lerps, ((Tensor)end, (Scalar)weight), at::lerp(self, end, weight))

ACLNN_BOTH(BitwiseAndTensor, ((Tensor)other), at::bitwise_and(self, other))
ACLNN_BOTH(BitwiseAndScalar, ((Scalar)other), at::bitwise_and(self, other))
ACLNN_BOTH(BitwiseOrTensor, ((Tensor)other), at::bitwise_or(self, other))
ACLNN_BOTH(BitwiseOrScalar, ((Scalar)other), at::bitwise_or(self, other))
ACLNN_BOTH(BitwiseXorTensor, ((Tensor)other), at::bitwise_xor(self, other))
ACLNN_BOTH(BitwiseXorScalar, ((Scalar)other), at::bitwise_xor(self, other))
ACLNN_OUT(LeftShift, ((Tensor)other), at::bitwise_left_shift(self, other))
ACLNN_OUT(LeftShifts, ((Scalar)other), at::bitwise_left_shift(self, other))
ACLNN_OUT(RightShift, ((Tensor)other), at::bitwise_right_shift(self, other))
ACLNN_BOTH(LogicalAnd, ((Tensor)other), at::logical_and(self, other))
ACLNN_BOTH(LogicalOr, ((Tensor)other), at::logical_or(self, other))
ACLNN_OUT(LogicalXor, ((Tensor)other), at::logical_xor(self, other))

ACLNN_BOTH(EqTensor, ((Tensor)other), at::eq(self, other))
ACLNN_BOTH(EqScalar, ((Scalar)other), at::eq(self, other))
ACLNN_BOTH(NeTensor, ((Tensor)other), at::ne(self, other))
ACLNN_BOTH(NeScalar, ((Scalar)other), at::ne(self, other))
ACLNN_BOTH(GtTensor, ((Tensor)other), at::gt(self, other))
ACLNN_BOTH(GtScalar, ((Scalar)other), at::gt(self, other))
ACLNN_BOTH(GeTensor, ((Tensor)other), at::ge(self, other))
ACLNN_BOTH(GeScalar, ((Scalar)other), at::ge(self, other))
ACLNN_BOTH(LtTensor, ((Tensor)other), at::lt(self, other))
ACLNN_BOTH(LtScalar, ((Scalar)other), at::lt(self, other))
ACLNN_BOTH(LeTensor, ((Tensor)other), at::le(self, other))
ACLNN_BOTH(LeScalar, ((Scalar)other), at::le(self, other))
ACLNN_OUT(LessScalar, ((Scalar)other), at::lt(self, other))
ACLNN(Equal, Any, ((Tensor)self, (Tensor)other, (Out)out), out.fill_(at::equal(self, other)))
ACLNN_OUT(IsClose, ((Tensor)other, (double)rtol, (double)atol, (bool)equalNan), at::isclose(self, other, rtol, atol, equalNan))
ACLNN(IsInScalarTensor, Any, ((Scalar)element, (Tensor)tests, (bool)assumeUnique, (bool)invert, (Out)out),
      out = at::isin(element, tests, assumeUnique, invert))
ACLNN(IsInTensorScalar, Any, ((Tensor)elements, (Scalar)test, (bool)assumeUnique, (bool)invert, (Out)out),
      out = at::isin(elements, test, assumeUnique, invert))
ACLNN(SWhere, Elementwise, ((Tensor)condition, (Tensor)self, (Tensor)other, (Out)out),
      out = at::where(condition.to(at::kBool), self, other))
ACLNN_INPLACE(MaskedFillScalar, ((Tensor)mask, (Scalar)value), at::masked_fill(self, mask.to(at::kBool), value))
ACLNN(InplaceMaskedFillTensor, Any, ((Out)self, (Tensor)mask, (Tensor)value), self.masked_fill_(mask.to(at::kBool), value.reshape({})))
ACLNN(MaskedScale, Elementwise, ((Tensor)self, (Tensor)mask, (float)scale, (Out)out), out = self * mask.to(self.scalar_type()) * scale)

}  // namespace sim::aclnn
