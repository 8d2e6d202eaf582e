// Products of matrices. cubeMathType chooses the precision of the matrix unit; here products of float16 and bfloat16
// accumulate in float32 and float32 stays float32.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {

ACLNN(Matmul, Product, ((Tensor)self, (Tensor)mat2, (Out)out, (int8_t)cubeMathType), out = at::matmul(self, mat2))
ACLNN(Mm, Product, ((Tensor)self, (Tensor)mat2, (Out)out, (int8_t)cubeMathType), out = at::mm(self, mat2))
ACLNN(BatchMatMul, Product, ((Tensor)self, (Tensor)mat2, (Out)out, (int8_t)cubeMathType), out = at::bmm(self, mat2))
ACLNN(Mv, Product, ((Tensor)self, (Tensor)vector, (Out)out, (int8_t)cubeMathType), out = at::mv(self, vector))
ACLNN(Dot, Product, ((Tensor)self, (Tensor)other, (Out)out), out = at::dot(self, other))
ACLNN(Addmm, Product, ((Tensor)self, (Tensor)mat1, (Tensor)mat2, (Scalar)beta, (Scalar)alpha, (Out)out, (int8_t)cubeMathType),
      out = at::addmm(self, mat1, mat2, beta, alpha))
ACLNN(InplaceAddmm, Product, ((Out)self, (Tensor)mat1, (Tensor)mat2, (Scalar)beta, (Scalar)alpha, (int8_t)cubeMathType),
      self = at::addmm(self, mat1, mat2, beta, alpha))
ACLNN(Baddbmm, Product, ((Tensor)self, (Tensor)batch1, (Tensor)batch2, (Scalar)beta, (Scalar)alpha, (Out)out, (int8_t)cubeMathType),
      out = at::baddbmm(self, batch1, batch2, beta, alpha))
ACLNN(Addbmm, Product, ((Tensor)self, (Tensor)batch1, (Tensor)batch2, (Scalar)beta, (Scalar)alpha, (Out)out, (int8_t)cubeMathType),
      out = at::addbmm(self, batch1, batch2, beta, alpha))
ACLNN(Addmv, Product, ((Tensor)self, (Tensor)matrix, (Tensor)vector, (Scalar)alpha, (Scalar)beta, (Out)out, (int8_t)cubeMathType),
      out = at::addmv(self, matrix, vector, beta, alpha))
ACLNN(Addr, Any, ((Tensor)self, (Tensor)vec1, (Tensor)vec2, (Scalar)beta, (Scalar)alpha, (Out)out),
      out = at::addr(self, vec1, vec2, beta, alpha))
ACLNN(InplaceAddr, Any, ((Out)self, (Tensor)vec1, (Tensor)vec2, (Scalar)beta, (Scalar)alpha),
      self = at::addr(self, vec1, vec2, beta, alpha))
ACLNN(Inverse, Any, ((Tensor)self, (Out)out), out = at::inverse(self))
ACLNN(LinalgCross, Any, ((Tensor)self, (Tensor)other, (int64_t)dim, (Out)out), out = at::linalg_cross(self, other, dim))
ACLNN(LinalgCholesky, Any, ((Tensor)self, (bool)upper, (Out)out), out = at::linalg_cholesky(self, upper))
ACLNN(TriangularSolve, Any, ((Tensor)self, (Tensor)a, (bool)upper, (bool)transpose, (bool)unitriangular, (Out)solution, (Out)clone),
      const auto [x, m] = at::triangular_solve(self, a, upper, transpose, unitriangular); solution = x; clone = m)
ACLNN(Cdist, Any, ((Tensor)x1, (Tensor)x2, (float)p, (int64_t)mode, (Out)out), out = at::cdist(x1, x2, p))

}  // namespace sim::aclnn
