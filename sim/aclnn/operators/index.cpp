// Reading and writing at positions that a tensor names.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// torch_npu passes an empty tensor for a dimension that is taken whole.
c10::List<std::optional<at::Tensor>> Positions(const Tensors& indices) {
    c10::List<std::optional<at::Tensor>> positions;
    for (const at::Tensor& index : indices) {
        const bool whole = !index.defined() || index.numel() == 0;
        const at::Tensor position = whole || index.scalar_type() == at::kBool ? index : index.to(at::kLong);
        positions.push_back(whole ? std::nullopt : std::optional<at::Tensor>(position));
    }
    return positions;
}

Tensor Long(const Tensor& index) { return index.to(at::kLong); }

// reduction of Scatter: 0 replaces, 1 adds, 2 multiplies
template <typename Source>
Tensor Scatter(const Tensor& self, int64_t dim, const Tensor& index, const Source& source, int64_t reduction) {
    if (reduction == 0) return at::scatter(self, dim, Long(index), source);
    return at::scatter(self, dim, Long(index), source, reduction == 1 ? "add" : "multiply");
}
// reduction of ScatterReduce
c10::string_view Reduction(int64_t reduction) {
    constexpr const char* names[] = {"", "sum", "prod", "amax", "amin", "mean"};
    TORCH_CHECK(reduction >= 1 && reduction <= 5, "reduction is ", reduction, ", it must be 1 to 5");
    return names[reduction];
}

}  // namespace

ACLNN(Index, Any, ((Tensor)self, (Tensors)indices, (Out)out), if (out.numel() != 0) out = at::index(self, Positions(indices)))
ACLNN(IndexPutImpl, Any, ((Out)self, (Tensors)indices, (Tensor)values, (bool)accumulate, (bool)isUnsafe),
      const auto positions = Positions(indices);  // none is named when the index itself is empty: nothing to write
      if (std::any_of(indices.begin(), indices.end(), [](const Tensor& index) { return index.defined() && index.numel() != 0; }))
          at::_index_put_impl_(self, positions, values.to(self.scalar_type()), accumulate, isUnsafe))
ACLNN(IndexSelect, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Out)out), out = at::index_select(self, dim, Long(index)))
ACLNN(Gather, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Out)out), out = at::gather(self, dim, Long(index)))
ACLNN(Take, Any, ((Tensor)self, (Tensor)index, (Out)out), out = at::take(self, Long(index)))
ACLNN(InplacePut, Any, ((Out)self, (Tensor)index, (Tensor)source, (bool)accumulate), self.put_(Long(index), source, accumulate))
ACLNN(Embedding, Any, ((Tensor)weight, (Tensor)indices, (Out)out), out = at::embedding(weight, Long(indices)))
ACLNN(EmbeddingDenseBackward, Any, ((Tensor)gradOutput, (Tensor)indices, (uint64_t)weights, (uint64_t)paddingIndex, (bool)scaleByFrequency,
                                    (Out)out),
      out = at::embedding_dense_backward(gradOutput, Long(indices), static_cast<int64_t>(weights), static_cast<int64_t>(paddingIndex),
                                         scaleByFrequency))
ACLNN(EmbeddingRenorm, Any, ((Out)self, (Tensor)indices, (double)maxNorm, (double)normType),
      at::embedding_renorm_(self, Long(indices), maxNorm, normType))
ACLNN(EmbeddingBag, Any, ((Tensor)weight, (Tensor)indices, (Tensor)offsets, (bool)scaleByFrequency, (int64_t)mode, (bool)sparse,
                          (Optional)perSample, (bool)includeLast, (int64_t)paddingIndex, (Out)out, (Out)bagOfOffset, (Out)bagSize,
                          (Out)maxIndices),
      const auto [bags, bagOf, size, maximum] = at::_embedding_bag(weight, Long(indices), Long(offsets), scaleByFrequency, mode, sparse,
                                                                   perSample, includeLast, paddingIndex);
      out = bags; if (bagOf.numel() == bagOfOffset.numel()) bagOfOffset = bagOf; if (size.numel() == bagSize.numel()) bagSize = size;
      if (maximum.numel() == maxIndices.numel()) maxIndices = maximum)
ACLNN(Scatter, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (int64_t)reduction, (Out)out),
      out = Scatter(self, dim, index, source, reduction))
ACLNN(InplaceScatter, Any, ((Out)self, (int64_t)dim, (Tensor)index, (Tensor)source, (int64_t)reduction),
      self = Scatter(self, dim, index, source, reduction))
ACLNN(ScatterValue, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Scalar)value, (int64_t)reduction, (Out)out),
      out = Scatter(self, dim, index, value, reduction))
ACLNN(InplaceScatterValue, Any, ((Out)self, (int64_t)dim, (Tensor)index, (Scalar)value, (int64_t)reduction),
      self = Scatter(self, dim, index, value, reduction))
ACLNN(ScatterAdd, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (Out)out),
      out = at::scatter_add(self, dim, Long(index), source))
ACLNN(ScatterReduce, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (int64_t)reduction, (bool)includeSelf, (Out)out),
      out = at::scatter_reduce(self, dim, Long(index), source, Reduction(reduction), includeSelf))
ACLNN(InplaceScatterReduce, Any, ((Out)self, (int64_t)dim, (Tensor)index, (Tensor)source, (int64_t)reduction, (bool)includeSelf),
      self = at::scatter_reduce(self, dim, Long(index), source, Reduction(reduction), includeSelf))
ACLNN(IndexAdd, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (Scalar)alpha, (Out)out),
      out = at::index_add(self, dim, Long(index), source, alpha))
ACLNN(IndexAddV2, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (Scalar)alpha, (int64_t)mode, (Out)out),
      out = at::index_add(self, dim, Long(index), source, alpha))
ACLNN(IndexCopy, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Tensor)source, (Out)out),
      out = at::index_copy(self, dim, Long(index), source))
ACLNN(InplaceIndexCopy, Any, ((Out)self, (int64_t)dim, (Tensor)index, (Tensor)source),
      self = at::index_copy(self, dim, Long(index), source))
ACLNN(IndexFill, Any, ((Tensor)self, (int64_t)dim, (Tensor)index, (Scalar)value, (Out)out),
      out = at::index_fill(self, dim, Long(index), value))
ACLNN(InplaceIndexFill, Any, ((Out)self, (int64_t)dim, (Tensor)index, (Scalar)value), self = at::index_fill(self, dim, Long(index), value))
ACLNN(IndexFillTensor, Any, ((Tensor)self, (int64_t)dim, (Ints)index, (Scalar)value, (Out)out),
      out = at::index_fill(self, dim, at::tensor(index), value))
ACLNN(InplaceIndexFillTensor, Any, ((Out)self, (int64_t)dim, (Ints)index, (Scalar)value),
      self = at::index_fill(self, dim, at::tensor(index), value))
ACLNN(InplaceMaskedScatter, Any, ((Out)self, (Tensor)mask, (Tensor)source), self = at::masked_scatter(self, mask.to(at::kBool), source))
ACLNN(ScatterNdUpdate, Any, ((Out)self, (Tensor)indices, (Tensor)updates), self.index_put_(Positions(Long(indices).unbind(-1)), updates))
ACLNN(SearchSorted, Any, ((Tensor)sorted, (Tensor)self, (bool)outInt32, (bool)right, (Optional)sorter, (Out)out),
      out = at::searchsorted(sorted, self, outInt32, right, std::nullopt, sorter))
ACLNN(SearchSorteds, Any, ((Tensor)sorted, (Scalar)self, (bool)outInt32, (bool)right, (Optional)sorter, (Out)out),
      out = at::searchsorted(sorted, self, outInt32, right, std::nullopt, sorter))
ACLNN(Bucketize, Any, ((Tensor)self, (Tensor)boundaries, (bool)outInt32, (bool)right, (Out)out),
      out = at::bucketize(self, boundaries, outInt32, right))

// The data decides the size of the results.
ACLNN(MaskedSelect, Any, ((Tensor)self, (Tensor)mask, (DynamicOut)out), out = at::masked_select(self, mask.to(at::kBool)))
ACLNN(Nonzero, Any, ((Tensor)self, (DynamicOut)out), out = at::nonzero(self))
ACLNN(NonzeroV2, Any, ((Tensor)self, (DynamicOut)out), out = at::nonzero(self).t().contiguous())
ACLNN(Unique, Any, ((Tensor)self, (bool)sorted, (bool)wantsInverse, (DynamicOut)values, (OptionalDynamicOut)inverse),
      const auto [y, i] = at::_unique(self, sorted, wantsInverse); values = y; if (wantsInverse) *inverse = i)
ACLNN(Unique2, Any, ((Tensor)self, (bool)sorted, (bool)wantsInverse, (bool)wantsCounts, (DynamicOut)values, (OptionalDynamicOut)inverse,
                     (OptionalDynamicOut)counts),
      const auto [y, i, n] = at::_unique2(self, sorted, wantsInverse, wantsCounts); values = y;
      if (wantsInverse) *inverse = i;
      if (wantsCounts) *counts = n)
ACLNN(UniqueConsecutive, Any, ((Tensor)self, (bool)wantsInverse, (bool)wantsCounts, (int64_t)dim, (DynamicOut)values,
                               (OptionalDynamicOut)inverse, (OptionalDynamicOut)counts),
      const auto along = dim >= self.dim() ? std::nullopt : std::optional<int64_t>(dim);
      const auto [y, i, n] = at::unique_consecutive(self, wantsInverse, wantsCounts, along);
      values = y; if (wantsInverse) *inverse = i; if (wantsCounts) *counts = n)
ACLNN(UniqueDim, Any, ((Tensor)self, (bool)sorted, (bool)wantsInverse, (int64_t)dim, (DynamicOut)values, (OptionalDynamicOut)inverse,
                       (OptionalDynamicOut)counts),
      const auto [y, i, n] = at::unique_dim(self, dim, sorted, true, true); values = y; if (inverse) *inverse = i; if (counts) *counts = n)

}  // namespace sim::aclnn
