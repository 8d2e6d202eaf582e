// Copies, casts, constants and sequences.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {

ACLNN(InplaceCopy, Elementwise, ((Out)self, (Tensor)source), self.copy_(source))
ACLNN(Cast, Elementwise, ((Tensor)self, (Dtype)dtype, (Out)out), out = self.to(dtype))
ACLNN(InplaceZero, Any, ((Out)self), self.zero_())
ACLNN(InplaceOne, Any, ((Out)self), self.fill_(1))
ACLNN(InplaceFillScalar, Any, ((Out)self, (Scalar)value), self.fill_(value))
ACLNN(InplaceFillTensor, Any, ((Out)self, (Tensor)value), self.fill_(value.reshape({})))
ACLNN(InplaceFillDiagonal, Any, ((Out)self, (Scalar)value, (bool)wrap), self.fill_diagonal_(value, wrap))
ACLNN(Arange, Any, ((Scalar)start, (Scalar)end, (Scalar)step, (Out)out), out = at::arange(start, end, step, out.options()))
ACLNN(Range, Any, ((Scalar)start, (Scalar)end, (Scalar)step, (Out)out), out = at::range(start, end, step, out.options()))
ACLNN(Linspace, Any, ((Scalar)start, (Scalar)end, (int64_t)steps, (Out)out), out = at::linspace(start, end, steps, out.options()))
ACLNN(LogSpace, Any, ((Scalar)start, (Scalar)end, (int64_t)steps, (double)base, (Out)out),
      out = at::logspace(start, end, steps, base, out.options()))
ACLNN(Eye, Any, ((int64_t)rows, (int64_t)columns, (Out)out), out = at::eye(rows, columns, out.options()))
ACLNN(Complex, Elementwise, ((Tensor)real, (Tensor)imaginary, (Out)out), out = at::complex(real, imaginary))
ACLNN(Polar, Elementwise, ((Tensor)abs, (Tensor)angle, (Out)out), out = at::polar(abs, angle))
ACLNN(OneHot, Any, ((Tensor)self, (int64_t)depth, (Tensor)on, (Tensor)off, (int64_t)axis, (Out)out),
      const Tensor hot = at::arange(depth, self.options()).eq(self.unsqueeze(-1));
      out = at::where(hot, on.reshape({}), off.reshape({})).movedim(-1, axis))

}  // namespace sim::aclnn
