// What the kernels about Matmul share: 16 x 16 floats in one base matrix, A in the first half of x, B in the second.
#pragma once

#include "lib/matmul_intf.h"
#include "rule_kernel.h"

constexpr uint32_t kSide = 16, kMatrix = kSide * kSide;
using Plain = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using OnCube = MatmulImpl<Plain, Plain, Plain>;

inline TCubeTiling Tiling(int32_t baseK = kSide) {
    TCubeTiling t{};
    t.M = t.N = t.Ka = t.Kb = t.singleCoreM = t.singleCoreN = t.singleCoreK = t.baseM = t.baseN = kSide;
    t.baseK = baseK;
    t.depthA1 = t.depthB1 = 2;
    t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
    t.dbL0A = t.dbL0B = 2;
    t.dbL0C = 1;
    return t;
}
template <typename Object>
void Give(Object& mm, GM_ADDR x) {
    mm.SetTensorA(Gm(x));
    mm.SetTensorB(Gm(x)[kMatrix]);
}
