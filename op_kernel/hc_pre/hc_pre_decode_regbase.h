// Projection on the vector cores of the 950: as hc_pre_decode_membase.h, the sums of four mixes in registers over a tile.
#pragma once

#include "../common/rows_regbase.h"
#include "hc_pre_project.h"

namespace hc {

__aicore__ inline void LoadFour(FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, __ubuf__ float* from) {
    reg::DataCopy(a, from);
    reg::DataCopy(b, from + kLanes);
    reg::DataCopy(c, from + 2 * kLanes);
    reg::DataCopy(d, from + 3 * kLanes);
}
__aicore__ inline void StoreFour(__ubuf__ float* to, FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, reg::MaskReg& full) {
    reg::DataCopy(to, a, full);
    reg::DataCopy(to + kLanes, b, full);
    reg::DataCopy(to + 2 * kLanes, c, full);
    reg::DataCopy(to + 3 * kLanes, d, full);
}
__aicore__ inline void AddProduct(FloatReg& sum, __ubuf__ float* fn, FloatReg& x, reg::MaskReg& full) {
    FloatReg value;
    reg::DataCopy(value, fn);
    reg::MulAddDst(sum, value, x, full);
}
__aicore__ inline void AddTailProduct(FloatReg& sum, __ubuf__ float* fn, FloatReg& x, reg::MaskReg& tail, reg::MaskReg& full) {
    FloatReg value;
    reg::DataCopy(value, fn);
    reg::Mul(value, value, x, tail);  // 0 in the other lanes
    reg::Add(sum, sum, value, full);
}

template <typename T>
class ProjectDecode : public ProjectRows<ProjectDecode<T>, T> {
    using Rows = ProjectRows<ProjectDecode<T>, T>;
    friend Rows;
    using Rows::fnQue_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::sumBuf_;
    using Rows::xQue_;

    __aicore__ inline void InitWork(AscendC::TPipe*) {}

    __aicore__ inline void StartSums(uint32_t tokens) {
        AscendC::Duplicate(sumBuf_.template Get<float>(), 0.0f, static_cast<int32_t>(tokens * (plan_.mix + 1) * kLanes));
    }

    __aicore__ inline void Accumulate(uint32_t tokens, uint32_t columns) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        AscendC::LocalTensor<float> fn = fnQue_.template DeQue<float>();
        __ubuf__ float* sums = Pointer(sumBuf_.template Get<float>());
        for (uint32_t t = 0; t < tokens; ++t)
            AddToken(sums + t * (plan_.mix + 1) * kLanes, Pointer(x) + t * RowPitch<T>(columns), Pointer(fn), plan_.mix, columns,
                     RowPitch<float>(columns));
        fnQue_.FreeTensor(fn);
        xQue_.FreeTensor(x);
    }

    // sums[m] += x * fn[m], sums[mix] += x * x, lane by lane.
    static __aicore__ inline void AddToken(__ubuf__ float* sums, __ubuf__ T* x, __ubuf__ float* fn, uint32_t mix, uint32_t columns,
                                           uint32_t pitch) {
        const uint16_t quads = static_cast<uint16_t>(mix / 4), singles = static_cast<uint16_t>(mix % 4);
        const uint16_t vectors = static_cast<uint16_t>(columns / kLanes), tails = columns % kLanes != 0 ? 1 : 0;
        const uint32_t rest = columns % kLanes;
        __VEC_SCOPE__ {
            FloatReg a, b, c, d, value;
            reg::MaskReg full = reg::CreateMask<float, reg::MaskPattern::ALL>();
            uint32_t lanes = rest;
            reg::MaskReg tail = reg::UpdateMask<float>(lanes);
            for (uint16_t quad = 0; quad < quads; ++quad) {
                __ubuf__ float* row = fn + quad * 4 * pitch;
                LoadFour(a, b, c, d, sums + quad * 4 * kLanes);
                for (uint16_t vector = 0; vector < vectors; ++vector) {
                    LoadFloats<T>(value, x + vector * kLanes, full);
                    AddProduct(a, row + vector * kLanes, value, full);
                    AddProduct(b, row + pitch + vector * kLanes, value, full);
                    AddProduct(c, row + 2 * pitch + vector * kLanes, value, full);
                    AddProduct(d, row + 3 * pitch + vector * kLanes, value, full);
                }
                for (uint16_t i = 0; i < tails; ++i) {
                    LoadFloats<T>(value, x + vectors * kLanes, tail);
                    AddTailProduct(a, row + vectors * kLanes, value, tail, full);
                    AddTailProduct(b, row + pitch + vectors * kLanes, value, tail, full);
                    AddTailProduct(c, row + 2 * pitch + vectors * kLanes, value, tail, full);
                    AddTailProduct(d, row + 3 * pitch + vectors * kLanes, value, tail, full);
                }
                StoreFour(sums + quad * 4 * kLanes, a, b, c, d, full);
            }
            for (uint16_t single = 0; single < singles; ++single) {
                const uint32_t m = quads * 4 + single;
                reg::DataCopy(a, sums + m * kLanes);
                for (uint16_t vector = 0; vector < vectors; ++vector) {
                    LoadFloats<T>(value, x + vector * kLanes, full);
                    AddProduct(a, fn + m * pitch + vector * kLanes, value, full);
                }
                for (uint16_t i = 0; i < tails; ++i) {
                    LoadFloats<T>(value, x + vectors * kLanes, tail);
                    AddTailProduct(a, fn + m * pitch + vectors * kLanes, value, tail, full);
                }
                reg::DataCopy(sums + m * kLanes, a, full);
            }
            reg::DataCopy(a, sums + mix * kLanes);
            for (uint16_t vector = 0; vector < vectors; ++vector) {
                LoadFloats<T>(value, x + vector * kLanes, full);
                reg::MulAddDst(a, value, value, full);
            }
            for (uint16_t i = 0; i < tails; ++i) {
                LoadFloats<T>(value, x + vectors * kLanes, tail);
                reg::Mul(value, value, value, tail);
                reg::Add(a, a, value, full);
            }
            reg::DataCopy(sums + mix * kLanes, a, full);
        }
    }

    // out[t][m] = sum of the 64 lanes, columns after mix: zeros
    __aicore__ inline void Reduce(uint32_t tokens) {
        AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
        AscendC::Duplicate(out, 0.0f, static_cast<int32_t>(tokens * plan_.partialPitch));
        AddLanes(Pointer(out), Pointer(sumBuf_.template Get<float>()), static_cast<uint16_t>(tokens), static_cast<uint16_t>(plan_.mix + 1),
                 plan_.partialPitch);
        outQue_.EnQue(out);
    }
    static __aicore__ inline void AddLanes(__ubuf__ float* out, __ubuf__ float* sums, uint16_t tokens, uint16_t rows, uint32_t pitch) {
        __VEC_SCOPE__ {
            FloatReg value;
            reg::MaskReg full = reg::CreateMask<float, reg::MaskPattern::ALL>();
            reg::MaskReg first = reg::CreateMask<float, reg::MaskPattern::VL1>();
            for (uint16_t t = 0; t < tokens; ++t)
                for (uint16_t m = 0; m < rows; ++m) {
                    reg::DataCopy(value, sums + (t * rows + m) * kLanes);
                    reg::ReduceSum(value, value, full);
                    reg::DataCopy<float, reg::StoreDist::DIST_FIRST_ELEMENT_B32>(out + t * pitch + m, value, first);
                }
        }
    }
};

}  // namespace hc
