// Reductions, scans and order statistics.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// An empty list of dimensions means all of them.
Ints Dims(const Tensor& self, Ints dims) {
    if (dims.empty())
        for (int64_t axis = 0; axis < self.dim(); ++axis) dims.push_back(axis);
    return dims;
}
at::OptionalIntArrayRef All(const Ints& dims) { return dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims); }

}  // namespace

ACLNN(ReduceSum, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Dtype)dtype, (Out)out), out = at::sum(self, dims, keepDims, dtype))
ACLNN(ReduceNansum, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Dtype)dtype, (Out)out),
      out = at::nansum(self, All(dims), keepDims, dtype))
ACLNN(Mean, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Dtype)dtype, (Out)out), out = at::mean(self, dims, keepDims, dtype))
ACLNN(Prod, Any, ((Tensor)self, (Dtype)dtype, (Out)out), out = at::prod(self, dtype))
ACLNN(ProdDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Dtype)dtype, (Out)out), out = at::prod(self, dim, keepDims, dtype))
ACLNN(All, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)out), out = at::all(self, All(dims), keepDims))
ACLNN(Any, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)out), out = at::any(self, All(dims), keepDims))
ACLNN(Amax, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)out), out = at::amax(self, dims, keepDims))
ACLNN(Amin, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)out), out = at::amin(self, dims, keepDims))
ACLNN(Aminmax, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)minimum, (Out)maximum), minimum = at::amin(self, dims, keepDims);
      maximum = at::amax(self, dims, keepDims))
ACLNN(AminmaxAll, Any, ((Tensor)self, (Out)minimum, (Out)maximum), minimum = at::min(self); maximum = at::max(self))
ACLNN(AminmaxDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)minimum, (Out)maximum), minimum = at::amin(self, dim, keepDims);
      maximum = at::amax(self, dim, keepDims))
ACLNN(Max, Any, ((Tensor)self, (Out)out), out = at::max(self))
ACLNN(Min, Any, ((Tensor)self, (Out)out), out = at::min(self))
ACLNN(MaxDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)values, (Out)indices),
      std::tie(values, indices) = at::max(self, dim, keepDims))
ACLNN(MinDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)values, (Out)indices),
      std::tie(values, indices) = at::min(self, dim, keepDims))
ACLNN(ArgMax, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)out), out = at::argmax(self, dim, keepDims))
ACLNN(ArgMin, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)out), out = at::argmin(self, dim, keepDims))
ACLNN(VarCorrection, Any, ((Tensor)self, (Ints)dims, (int64_t)correction, (bool)keepDims, (Out)out),
      out = at::var(self, All(dims), Scalar(correction), keepDims))
ACLNN(Std, Any, ((Tensor)self, (Ints)dims, (int64_t)correction, (bool)keepDims, (Out)out),
      out = at::std(self, All(dims), Scalar(correction), keepDims))
ACLNN(VarMean, Any, ((Tensor)self, (Ints)dims, (int64_t)correction, (bool)keepDims, (Out)variance, (Out)mean),
      std::tie(variance, mean) = at::var_mean(self, All(dims), Scalar(correction), keepDims))
ACLNN(StdMeanCorrection, Any, ((Tensor)self, (Ints)dims, (int64_t)correction, (bool)keepDims, (Out)deviation, (Out)mean),
      std::tie(deviation, mean) = at::std_mean(self, All(dims), Scalar(correction), keepDims))
ACLNN(Norm, Any, ((Tensor)self, (Scalar)p, (Ints)dims, (bool)keepDims, (Out)out),
      out = at::linalg_vector_norm(self, p, All(dims), keepDims))
ACLNN(LinalgVectorNorm, Any, ((Tensor)self, (Scalar)order, (Ints)dims, (bool)keepDims, (Dtype)dtype, (Out)out),
      out = at::linalg_vector_norm(self.to(dtype), order, All(dims), keepDims))
ACLNN(LogSumExp, Any, ((Tensor)self, (Ints)dims, (bool)keepDims, (Out)out), out = at::logsumexp(self, Dims(self, dims), keepDims))
ACLNN(Median, Any, ((Tensor)self, (Out)out), out = at::median(self))
ACLNN(NanMedian, Any, ((Tensor)self, (Out)out), out = at::nanmedian(self))
ACLNN(MedianDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)values, (Out)indices),
      std::tie(values, indices) = at::median(self, dim, keepDims))
ACLNN(NanMedianDim, Any, ((Tensor)self, (int64_t)dim, (bool)keepDims, (Out)values, (Out)indices),
      std::tie(values, indices) = at::nanmedian(self, dim, keepDims))
ACLNN(Kthvalue, Any, ((Tensor)self, (int64_t)k, (int64_t)dim, (bool)keepDims, (Out)values, (Out)indices),
      std::tie(values, indices) = at::kthvalue(self, k, dim, keepDims))
ACLNN(Sort, Any, ((Tensor)self, (bool)stable, (int64_t)dim, (bool)descending, (Out)values, (Out)indices),
      std::tie(values, indices) = at::sort(self, std::optional<bool>(stable), dim, descending))
ACLNN(Topk, Any, ((Tensor)self, (int64_t)k, (int64_t)dim, (bool)largest, (bool)sorted, (Out)values, (Out)indices),
      std::tie(values, indices) = at::topk(self, k, dim, largest, sorted))
ACLNN(TopkV2, Any, ((Tensor)self, (int64_t)k, (int64_t)dim, (bool)largest, (bool)sorted, (int64_t)sortPolicy, (Out)values, (Out)indices),
      std::tie(values, indices) = at::topk(self, k, dim, largest, sorted))
ACLNN(Cumsum, Any, ((Tensor)self, (int64_t)dim, (Dtype)dtype, (Out)out), out = at::cumsum(self, dim, dtype))
ACLNN(Cumprod, Any, ((Tensor)self, (Scalar)dim, (Dtype)dtype, (Out)out), out = at::cumprod(self, dim.toLong(), dtype))
ACLNN(Cummax, Any, ((Tensor)self, (int64_t)dim, (Out)values, (Out)indices), std::tie(values, indices) = at::cummax(self, dim))
ACLNN(Cummin, Any, ((Tensor)self, (int64_t)dim, (Out)values, (Out)indices), std::tie(values, indices) = at::cummin(self, dim))
ACLNN(Trace, Any, ((Tensor)self, (Out)out), out = at::trace(self))
ACLNN(Histc, Any, ((Tensor)self, (int64_t)bins, (Scalar)minimum, (Scalar)maximum, (Out)out),
      out = at::histc(self.to(at::kFloat), bins, minimum, maximum))
ACLNN(Bincount, Any, ((Tensor)self, (Optional)weights, (int64_t)minLength, (Out)out), out = at::bincount(self, weights, minLength))

}  // namespace sim::aclnn
