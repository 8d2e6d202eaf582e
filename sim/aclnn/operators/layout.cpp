// Moving elements: joining, splitting, repeating, padding.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {

ACLNN(Cat, Any, ((Tensors)tensors, (int64_t)dim, (Out)out), out = at::cat(tensors, dim))
ACLNN(Stack, Any, ((Tensors)tensors, (int64_t)dim, (Out)out), out = at::stack(tensors, dim))
ACLNN(SplitWithSize, Any, ((Tensor)self, (Ints)sizes, (int64_t)dim, (Outs)out), const auto parts = self.split_with_sizes(sizes, dim);
      for (size_t i = 0; i < out.size(); ++i) out[i] = parts[i])
ACLNN(Repeat, Any, ((Tensor)self, (Ints)repeats, (Out)out), out = self.repeat(repeats))
ACLNN(Flip, Any, ((Tensor)self, (Ints)dims, (Out)out), out = at::flip(self, dims))
ACLNN(Roll, Any, ((Tensor)self, (Ints)shifts, (Ints)dims, (Out)out), out = at::roll(self, shifts, dims))
ACLNN_BOTH(Tril, ((int64_t)diagonal), at::tril(self, diagonal))
ACLNN_BOTH(Triu, ((int64_t)diagonal), at::triu(self, diagonal))
ACLNN(RepeatInterleave, Any, ((Tensor)self, (Tensor)repeats, (int64_t)outputSize, (Out)out),
      out = at::repeat_interleave(self.flatten(), repeats, 0))
ACLNN(RepeatInterleaveWithDim, Any, ((Tensor)self, (Tensor)repeats, (int64_t)dim, (int64_t)outputSize, (Out)out),
      out = at::repeat_interleave(self, repeats, dim))
ACLNN(RepeatInterleaveInt, Any, ((Tensor)self, (int64_t)repeats, (int64_t)outputSize, (Out)out),
      out = at::repeat_interleave(self.flatten(), repeats, 0))
ACLNN(RepeatInterleaveIntWithDim, Any, ((Tensor)self, (int64_t)repeats, (int64_t)dim, (int64_t)outputSize, (Out)out),
      out = at::repeat_interleave(self, repeats, dim))
ACLNN(RepeatInterleaveTensor, Any, ((Tensor)repeats, (int64_t)outputSize, (Out)out), out = at::repeat_interleave(repeats))
ACLNN(RepeatInterleaveGrad, Any, ((Tensor)grad, (Tensor)repeats, (int64_t)dim, (Out)out),
      const Tensor owner = at::repeat_interleave(repeats.numel() == 1 ? repeats.expand({out.size(dim)}) : repeats);
      out = at::zeros(out.sizes(), grad.options()).index_add(dim, owner, grad))
ACLNN(ConstantPadNd, Any, ((Tensor)self, (Ints)pad, (Scalar)value, (Out)out), out = at::constant_pad_nd(self, pad, value))
ACLNN(ReflectionPad1d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad1d(self, pad))
ACLNN(ReflectionPad2d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad2d(self, pad))
ACLNN(ReflectionPad3d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad3d(self, pad))
ACLNN(ReplicationPad1d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::replication_pad1d(self, pad))
ACLNN(ReplicationPad2d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::replication_pad2d(self, pad))
ACLNN(ReplicationPad3d, Any, ((Tensor)self, (Ints)pad, (Out)out), out = at::replication_pad3d(self, pad))
ACLNN(ReflectionPad1dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad1d_backward(grad, self, pad))
ACLNN(ReflectionPad2dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad2d_backward(grad, self, pad))
ACLNN(ReflectionPad3dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out), out = at::reflection_pad3d_backward(grad, self, pad))
ACLNN(ReplicationPad1dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out),
      out = at::replication_pad1d_backward(grad, self, pad))
ACLNN(ReplicationPad2dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out),
      out = at::replication_pad2d_backward(grad, self, pad))
ACLNN(ReplicationPad3dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)pad, (Out)out),
      out = at::replication_pad3d_backward(grad, self, pad))
ACLNN(ChannelShuffle, Any, ((Tensor)self, (int64_t)groups, (Out)out), out = at::channel_shuffle(self, groups))
ACLNN(Im2col, Any, ((Tensor)self, (Ints)kernel, (Ints)dilation, (Ints)padding, (Ints)stride, (Out)out),
      out = at::im2col(self, kernel, dilation, padding, stride))
ACLNN(Im2colBackward, Any, ((Tensor)self, (Ints)size, (Ints)kernel, (Ints)dilation, (Ints)padding, (Ints)stride, (Out)out),
      out = at::col2im(self, size, kernel, dilation, padding, stride))
ACLNN(UnfoldGrad, Any, ((Tensor)grad, (Ints)sizes, (int64_t)dim, (int64_t)size, (int64_t)step, (Out)out),
      out = at::unfold_backward(grad, sizes, dim, size, step))

}  // namespace sim::aclnn
