// How a product is cut: the tiling, checked against the memories, and the order of its base matrices.
#pragma once

#include "ascendc/matmul/problem.h"

namespace sim::matmul {

inline const char* const kTilingCall = "REGIST_MATMUL_OBJ";

template <typename T>
struct Plan {
    int64_t baseM = 0, baseN = 0, baseK = 0;
    int64_t stepM = 1, stepN = 1, stepKa = 1, stepKb = 1;
    int64_t buffersA = 1, buffersB = 1, buffersL0 = 1, buffersL0C = 1;
    bool nFirst = false;         // blocks follow each other along n
    bool withBias = false;

    static constexpr int64_t kSize = sizeof(typename T::A);
    static constexpr int64_t kBiasSize = sizeof(typename T::Bias);
    static int64_t Side(int64_t value) { return matmul::AlignUp(value, PieceLayout<typename T::A>::kSide); }
    int64_t PieceA() const { return Side(stepM * baseM) * Side(stepKa * baseK) * kSize; }
    int64_t PieceB() const { return Side(stepN * baseN) * Side(stepKb * baseK) * kSize; }
    int64_t TileA() const { return matmul::AlignUp(baseM, kRows) * Side(baseK) * kSize; }
    int64_t TileB() const { return Side(baseN) * Side(baseK) * kSize; }
    int64_t TileC() const { return matmul::AlignUp(baseM, kRows) * matmul::AlignUp(baseN, kRows) * int64_t(sizeof(typename T::L0C)); }
    int64_t BiasBytes() const { return withBias ? matmul::AlignUp(baseN * kBiasSize, kRow) : 0; }
    int64_t TableBytes() const { return withBias ? matmul::AlignUp(baseN, kRows) * int64_t(sizeof(typename T::L0C)) : 0; }
    Need Memory(bool aInL1, bool bInL1) const {
        return {(aInL1 ? 0 : buffersA * PieceA()) + (bInL1 ? 0 : buffersB * PieceB()) + BiasBytes(), buffersL0 * TileA(),
                buffersL0 * TileB(), buffersL0C * TileC(), TableBytes()};
    }
};

inline void CheckField(const char* name, int64_t value, int64_t low, int64_t high, Location where) {
    if (value < low || value > high)
        Refuse(Rule::Argument, kTilingCall, name, std::string("TCubeTiling: ") + name + " is " + std::to_string(value) + ", it must be " +
               std::to_string(low) + " to " + std::to_string(high), where);
}

// Depth: as many base matrices as L1 holds; steps of several at once in MDL, one in NORM.
template <typename T>
Plan<T> PlanOf(const TCubeTiling& t, Location where) {
    constexpr int64_t kMost = 4080;   // of m, n and k of one Mmad (12 bits), in whole fractals
    const int64_t kC = kC0<typename T::A>;
    CheckField("baseM", t.baseM, 1, kMost, where);
    CheckField("baseN", t.baseN, 1, kMost, where);
    CheckField("baseK", t.baseK, 1, kMost, where);
    for (const auto& [name, value] : {std::pair{"singleCoreM", t.singleCoreM}, {"singleCoreN", t.singleCoreN},
                                      {"singleCoreK", t.singleCoreK}, {"M", t.M}, {"N", t.N}, {"Ka", t.Ka}, {"Kb", t.Kb},
                                      {"depthA1", t.depthA1}, {"depthB1", t.depthB1}, {"stepM", t.stepM}, {"stepN", t.stepN},
                                      {"stepKa", t.stepKa}, {"stepKb", t.stepKb}})
        CheckField(name, value, 1, INT32_MAX, where);
    for (const auto& [name, value] : {std::pair{"dbL0A", t.dbL0A}, {"dbL0B", t.dbL0B}, {"dbL0C", t.dbL0C}})
        CheckField(name, value, 1, kBuffers, where);
    CheckField("iterateOrder", t.iterateOrder, 0, 1, where);
    const auto whole = [&](const char* name, int64_t value, int64_t unit, int64_t single) {
        if (value % unit != 0 && value < single)
            Refuse(Rule::Argument, kTilingCall, name, std::string("TCubeTiling: ") + name + " is " + std::to_string(value) +
                   ", it must be a multiple of " + std::to_string(unit) + " unless one base matrix holds all", where);
    };
    whole("baseM", t.baseM, kRows, t.singleCoreM);
    whole("baseN", t.baseN, kC > kRows ? kC : kRows, t.singleCoreN);
    whole("baseK", t.baseK, kC > kRows ? kC : kRows, t.singleCoreK);
    Plan<T> p;
    p.baseM = t.baseM, p.baseN = t.baseN, p.baseK = t.baseK;
    p.stepM = t.stepM, p.stepN = t.stepN, p.stepKa = t.stepKa, p.stepKb = t.stepKb;
    const auto buffers = [&](const char* depthName, int64_t depth, int64_t step, const char* stepName) {
        if (depth < step)
            Refuse(Rule::Argument, kTilingCall, depthName, std::string("TCubeTiling: ") + depthName + " is " + std::to_string(depth) +
                   ", fewer base matrices than the " + std::to_string(step) + " of one copy (" + stepName + ")", where);
        return std::min<int64_t>(depth / step, kBuffers);
    };
    p.buffersA = buffers("depthA1", t.depthA1, p.stepM * p.stepKa, "stepM * stepKa");
    p.buffersB = buffers("depthB1", t.depthB1, p.stepN * p.stepKb, "stepN * stepKb");
    p.buffersL0 = std::min(t.dbL0A, t.dbL0B), p.buffersL0C = t.dbL0C;
    p.nFirst = t.iterateOrder == 1;
    p.withBias = t.isBias != 0;
    return p;
}

template <typename T>
void CheckMemory(const Plan<T>& p, bool aInL1, bool bInL1, Location where) {
    Core& core = Core::Current();
    const Need need = p.Memory(aInL1, bInL1);
    const auto fits = [&](sim::Memory memory, int64_t bytes, const std::string& what) {
        const int64_t have = int64_t(core.LocalBytes(memory));
        if (bytes > have)
            Refuse(Rule::LocalMemoryOverflow, kTilingCall, "tiling", std::string("TCubeTiling does not fit ") + MemoryName(memory) + ": " +
                   what + " need " + std::to_string(bytes) + " bytes, " + core.Soc().name + " has " + std::to_string(have), where);
    };
    const auto times = [](int64_t a, int64_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    const std::string two = std::to_string(p.buffersL0) + " base matrices of ";
    fits(Memory::L0A, need.l0a, two + times(p.baseM, p.baseK));
    fits(Memory::L0B, need.l0b, two + times(p.baseK, p.baseN));
    fits(Memory::L0C, need.l0c, std::to_string(p.buffersL0C) + " base matrices of " + times(p.baseM, p.baseN));
    fits(Memory::L1, need.l1, std::to_string(p.buffersA) + " x " + times(p.stepM * p.baseM, p.stepKa * p.baseK) + " of A and " +
         std::to_string(p.buffersB) + " x " + times(p.stepKb * p.baseK, p.stepN * p.baseN) + " of B");
    fits(Memory::BT, need.table, "the bias of baseN " + std::to_string(p.baseN));
}

// The base matrices of C one after the other.
struct Walk {
    int64_t mBlocks = 0, nBlocks = 0;
    bool nFirst = false;
    int64_t Count() const { return mBlocks * nBlocks; }
    int64_t M(int64_t at) const { return nFirst ? at / nBlocks : at % mBlocks; }
    int64_t N(int64_t at) const { return nFirst ? at % nBlocks : at / mBlocks; }
};

template <typename T>
Walk WalkOf(const Plan<T>& plan, const Problem<T>& problem) {
    return {CeilDiv(problem.m, plan.baseM), CeilDiv(problem.n, plan.baseN), plan.nFirst};
}

}  // namespace sim::matmul
