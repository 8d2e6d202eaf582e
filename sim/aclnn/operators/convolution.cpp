// Convolutions, pooling, interpolation.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// The window's divisor; 0 stands for none.
std::optional<int64_t> Divisor(int64_t divisor) { return divisor == 0 ? std::nullopt : std::optional<int64_t>(divisor); }
std::optional<double> Scale(double scale) { return scale > 0 ? std::optional<double>(scale) : std::nullopt; }

}  // namespace

ACLNN(Convolution, Cube, ((Tensor)input, (Tensor)weight, (Optional)bias, (Ints)stride, (Ints)padding, (Ints)dilation, (bool)transposed,
                          (Ints)outputPadding, (int64_t)groups, (Out)out, (int8_t)cubeMathType),
      out = at::convolution(input, weight, bias ? Optional(bias->to(input.scalar_type())) : bias, stride, padding, dilation, transposed,
                            outputPadding, groups))
ACLNN(ConvolutionBackward, Any, ((Tensor)grad, (Tensor)input, (Tensor)weight, (OptionalInts)biasSizes, (Ints)stride, (Ints)padding,
                                 (Ints)dilation, (bool)transposed, (Ints)outputPadding, (int32_t)groups, (Bools)mask, (int8_t)cubeMathType,
                                 (OptionalOut)gradInput, (OptionalOut)gradWeight, (OptionalOut)gradBias),
      const auto wanted = mask.Array<3>();
      const auto [forInput, forWeight, forBias] = at::convolution_backward(
          grad, input, weight, biasSizes ? at::OptionalIntArrayRef(*biasSizes) : at::OptionalIntArrayRef(), stride, padding, dilation,
          transposed, outputPadding, groups, wanted);
      if (wanted[0]) gradInput = forInput; if (wanted[1]) gradWeight = forWeight; if (wanted[2]) gradBias = forBias)
ACLNN(ConvDepthwise2d, Cube, ((Tensor)self, (Tensor)weight, (Ints)kernel, (Optional)bias, (Ints)stride, (Ints)padding, (Ints)dilation,
                              (Out)out, (int8_t)cubeMathType),
      out = at::conv2d(self, weight, bias, stride, padding, dilation, self.size(1)))
ACLNN(ConvTbc, Cube, ((Tensor)self, (Tensor)weight, (Tensor)bias, (int64_t)pad, (Out)out, (int8_t)cubeMathType),
      out = at::conv_tbc(self, weight, bias, pad))

ACLNN(AvgPool2d, Any, ((Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (bool)ceilMode, (bool)countPad, (int64_t)divisor,
                       (int8_t)cubeMathType, (Out)out),
      out = at::avg_pool2d(self, kernel, stride, padding, ceilMode, countPad, Divisor(divisor)))
ACLNN(AvgPool2dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (bool)ceilMode, (bool)countPad,
                               (int64_t)divisor, (int8_t)cubeMathType, (Out)out),
      out = at::avg_pool2d_backward(grad, self, kernel, stride, padding, ceilMode, countPad, Divisor(divisor)))
ACLNN(AvgPool3d, Any, ((Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (bool)ceilMode, (bool)countPad, (int64_t)divisor, (Out)out),
      out = at::avg_pool3d(self, kernel, stride, padding, ceilMode, countPad, Divisor(divisor)))
ACLNN(AvgPool3dBackward, Any, ((Tensor)grad, (Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (bool)ceilMode, (bool)countPad,
                               (int64_t)divisor, (Out)out),
      out = at::avg_pool3d_backward(grad, self, kernel, stride, padding, ceilMode, countPad, Divisor(divisor)))
ACLNN(AdaptiveAvgPool2d, Any, ((Tensor)self, (Ints)size, (Out)out), out = at::_adaptive_avg_pool2d(self, size))
ACLNN(AdaptiveAvgPool2dBackward, Any, ((Tensor)grad, (Tensor)self, (Out)out), out = at::_adaptive_avg_pool2d_backward(grad, self))
ACLNN(AdaptiveAvgPool3d, Any, ((Tensor)self, (Ints)size, (Out)out), out = at::_adaptive_avg_pool3d(self, size))
ACLNN(AdaptiveAvgPool3dBackward, Any, ((Tensor)grad, (Tensor)self, (Out)out), out = at::_adaptive_avg_pool3d_backward(grad, self))
ACLNN(AdaptiveMaxPool2d, Any, ((Tensor)self, (Ints)size, (Out)out, (Out)indices),
      std::tie(out, indices) = at::adaptive_max_pool2d(self, size))
ACLNN(AdaptiveMaxPool2dBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)indices, (Out)out),
      out = at::adaptive_max_pool2d_backward(grad, self, indices.to(at::kLong)))
ACLNN(MaxPool2dWithIndices, Any, ((Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (Ints)dilation, (bool)ceilMode, (Out)out,
                                  (Out)indices),
      std::tie(out, indices) = at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceilMode))
ACLNN(MaxPool2dWithIndicesBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)indices, (Ints)kernel, (Ints)stride, (Ints)padding,
                                          (Ints)dilation, (bool)ceilMode, (Out)out),
      out = at::max_pool2d_with_indices_backward(grad, self, kernel, stride, padding, dilation, ceilMode, indices.to(at::kLong)))
// The mask is a private note from forward to backward, whose input says as much: it stays zero here.
ACLNN(MaxPool2dWithMask, Any, ((Tensor)self, (Ints)kernel, (Ints)stride, (Ints)padding, (Ints)dilation, (bool)ceilMode, (Out)out,
                               (Out)mask),
      out = at::max_pool2d(self, kernel, stride, padding, dilation, ceilMode); mask.zero_())
ACLNN(MaxPool2dWithMaskBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)mask, (Ints)kernel, (Ints)stride, (Ints)padding, (Ints)dilation,
                                       (bool)ceilMode, (Out)out),
      const auto [pooled, indices] = at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceilMode);
      out = at::max_pool2d_with_indices_backward(grad, self, kernel, stride, padding, dilation, ceilMode, indices))

ACLNN(UpsampleNearest1d, Any, ((Tensor)self, (Ints)size, (Out)out), out = at::upsample_nearest1d(self, size))
ACLNN(UpsampleNearest2d, Any, ((Tensor)self, (Ints)size, (Out)out), out = at::upsample_nearest2d(self, size))
ACLNN(UpsampleNearest2dV2, Any, ((Tensor)self, (Ints)size, (float)scaleH, (float)scaleW, (Out)out),
      out = at::upsample_nearest2d(self, size))
ACLNN(UpsampleNearest2dBackward, Any, ((Tensor)grad, (Ints)size, (Ints)inputSize, (double)scaleH, (double)scaleW, (Out)out),
      out = at::upsample_nearest2d_backward(grad, size, inputSize, Scale(scaleH), Scale(scaleW)))
ACLNN(UpsampleBilinear2d, Any, ((Tensor)self, (Ints)size, (bool)alignCorners, (double)scaleH, (double)scaleW, (Out)out),
      out = at::upsample_bilinear2d(self, size, alignCorners, Scale(scaleH), Scale(scaleW)))
ACLNN(UpsampleBilinear2dBackward, Any, ((Tensor)grad, (Ints)size, (Ints)inputSize, (bool)alignCorners, (double)scaleH, (double)scaleW,
                                        (Out)out),
      out = at::upsample_bilinear2d_backward(grad, size, inputSize, alignCorners, Scale(scaleH), Scale(scaleW)))
ACLNN(UpsampleBicubic2d, Any, ((Tensor)self, (Ints)size, (bool)alignCorners, (double)scaleH, (double)scaleW, (Out)out),
      out = at::upsample_bicubic2d(self, size, alignCorners, Scale(scaleH), Scale(scaleW)))

}  // namespace sim::aclnn
