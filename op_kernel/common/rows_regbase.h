// Rows of UB as registers of 64 floats on the 950.
#pragma once

#include "rows_copy.h"

namespace hc {

namespace reg = AscendC::MicroAPI;

using FloatReg = reg::RegTensor<float>;

constexpr reg::CastTrait kToFloat = {reg::RegLayout::ZERO, reg::SatMode::UNKNOWN, reg::MaskMergeMode::ZEROING,
                                     AscendC::RoundMode::UNKNOWN};
// Nearest even; overflow of float16 becomes infinity.
constexpr reg::CastTrait kFromFloat = {reg::RegLayout::ZERO, reg::SatMode::NO_SAT, reg::MaskMergeMode::ZEROING,
                                       AscendC::RoundMode::CAST_RINT};

// The 64 elements from `source` on as float.
template <typename T>
__aicore__ inline void LoadFloats(FloatReg& value, __ubuf__ T* source, reg::MaskReg& mask) {
    if constexpr (sizeof(T) == 4) {
        reg::DataCopy(value, source);
    } else {
        reg::RegTensor<T> narrow;
        reg::DataCopy<T, reg::LoadDist::DIST_UNPACK_B16>(narrow, source);
        reg::Cast<float, T, kToFloat>(value, narrow, mask);
    }
}

template <typename T>
__aicore__ inline void StoreFloats(__ubuf__ T* target, FloatReg& value, reg::MaskReg& mask) {
    if constexpr (sizeof(T) == 4) {
        reg::DataCopy(target, value, mask);
    } else {
        reg::RegTensor<T> narrow;
        reg::Cast<T, float, kFromFloat>(narrow, value, mask);
        reg::DataCopy<T, reg::StoreDist::DIST_PACK_B32>(target, narrow, mask);
    }
}

// One float in all lanes.
__aicore__ inline void LoadScalar(FloatReg& value, __ubuf__ float* source) {
    reg::DataCopy<float, reg::LoadDist::DIST_BRC_B32>(value, source);
}

template <typename T>
__aicore__ inline __ubuf__ T* Pointer(const AscendC::LocalTensor<T>& tensor) {
    return reinterpret_cast<__ubuf__ T*>(tensor.GetPhyAddr());
}

}  // namespace hc
