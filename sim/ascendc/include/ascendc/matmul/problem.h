// One product as the setters of a high-level object describe it, and the checks on it.
#pragma once

#include "ascendc/matmul/load.h"

namespace sim::matmul {

// Types of the operands, and how each may be given.
template <typename AType, typename BType, typename CType, typename BiasType>
struct Types {
    using A = typename AType::T;
    using B = typename BType::T;
    using C = typename CType::T;
    using Bias = typename BiasType::T;
    using L0C = Sum<A>;
    static_assert(std::is_same_v<A, B>, "Matmul multiplies matrices of one type");
    static_assert(cube::kFloatOperand<A> || std::is_same_v<A, int8_t>, "Matmul takes half, bfloat16_t, float and int8_t");
    static_assert(AType::format == CubeFormat::ND || AType::format == CubeFormat::NZ || AType::format == CubeFormat::VECTOR,
                  "A is modelled in the formats ND, NZ and VECTOR");
    static_assert(BType::format == CubeFormat::ND || BType::format == CubeFormat::NZ, "B is modelled in the formats ND and NZ");
    static_assert(CType::format == CubeFormat::ND || CType::format == CubeFormat::ND_ALIGN || CType::format == CubeFormat::NZ,
                  "C is modelled in the formats ND, ND_ALIGN and NZ");
    static_assert(AType::layout == AscendC::LayoutMode::NONE && BType::layout == AscendC::LayoutMode::NONE &&
                  CType::layout == AscendC::LayoutMode::NONE, "batches (LayoutMode) are not modelled");
    static constexpr bool kBiasFits = std::is_same_v<Bias, L0C> || (!std::is_same_v<A, int8_t> &&
                                                                    (std::is_same_v<Bias, half> || std::is_same_v<Bias, bfloat16_t>));
    static_assert(!(AType::isTransposable && std::is_same_v<A, int8_t>),
                  "a transposed A of int8_t is not modelled: L0A takes it as [m, k]");
    static constexpr bool kNzC = CType::format == CubeFormat::NZ;
    static constexpr bool kFromInt = std::is_same_v<L0C, int32_t>;
    static constexpr bool kByteC = std::is_same_v<C, int8_t> || std::is_same_v<C, uint8_t>;
    static_assert(std::is_same_v<C, L0C> || std::is_same_v<C, half> || kByteC || (!kFromInt && std::is_same_v<C, bfloat16_t>),
                  "Matmul does not convert the sums to the type of C");
    static constexpr AscendC::QuantMode_t kQuant = std::is_same_v<C, L0C> ? AscendC::NoQuant
                                                 : kByteC ? (kFromInt ? AscendC::REQ8 : AscendC::QF322B8_PRE)
                                                 : kFromInt ? AscendC::DEQF16
                                                 : std::is_same_v<C, half> ? AscendC::F322F16 : AscendC::F322BF16;
    static constexpr bool kNeedsScale = kQuant == AscendC::REQ8 || kQuant == AscendC::QF322B8_PRE || kQuant == AscendC::DEQF16;
};

template <typename T>
struct Problem {
    Stored<typename T::A> a;
    Stored<typename T::B> b;
    GlobalTensor<typename T::Bias> bias;
    bool hasA = false, hasB = false, hasBias = false;
    bool hf32 = false, hf32Truncates = false;
    uint64_t scale = 0;               // bits of a float
    bool hasScale = false;
    int64_t orgM = 0, orgN = 0, orgKa = 0, orgKb = 0, orgKc = 0;   // of the matrices in GM; orgKc: row pitch of C, 0: orgN
    int64_t m = 0, n = 0, k = 0;      // this product
    int64_t PitchOfC() const { return orgKc > 0 ? orgKc : orgN; }
    void Prepare() {                  // the sizes of the stored matrices
        a.outer = orgM, a.k = orgKa, b.outer = orgN, b.k = orgKb;
    }
};

// Elements of GM from the start of a tile of rows x columns, row pitch `pitch`, to its end.
inline int64_t Extent(int64_t rows, int64_t columns, int64_t pitch) { return (rows - 1) * pitch + columns; }

template <typename T>
void CheckExtent(const char* call, const char* name, const Stored<T>& s, int64_t outer, int64_t k, Location where) {
    const int64_t rows = s.transposed ? k : outer, columns = s.transposed ? outer : k;
    const int64_t need = s.nz ? 0 : Extent(rows, columns, s.Pitch()), have = int64_t(s.gm.GetSize());
    if (have != 0 && need > have)
        Refuse(Rule::OutOfRange, call, name, std::string(name) + " is read as " + std::to_string(rows) + " x " + std::to_string(columns) +
               " with " + std::to_string(s.Pitch()) + " elements from row to row: " + std::to_string(need) +
               " elements from the address given, its GlobalTensor has " + std::to_string(have) +
               " (SetOrgShape, SetSingleShape and SetTail say the sizes)", where);
}

template <typename T>
void CheckProblem(const char* call, const Problem<T>& p, bool withBias, bool wideRows, Location where) {
    const auto given = [&](bool has, const char* setter) {
        if (!has) Refuse(Rule::Argument, call, "", std::string(call) + " without " + setter + ": the object has no such matrix", where);
    };
    given(p.hasA, "SetTensorA");
    given(p.hasB, "SetTensorB");
    if (T::kNeedsScale && !p.hasScale)
        Refuse(Rule::Argument, call, "", std::string(call) + " without SetQuantScalar: C of " + DtypeName<typename T::C>() + " is scaled",
               where);
    const auto within = [&](const char* name, int64_t value, int64_t whole) {
        if (whole < 1)
            Refuse(Rule::Argument, call, name, std::string("the matrices have ") + name + " = " + std::to_string(whole) +
                   " (SetOrgShape), it must be at least 1", where);
        if (value < 1 || value > whole)
            Refuse(Rule::Argument, call, name, std::string(name) + " of this product is " + std::to_string(value) + ", it must be 1 to " +
                   std::to_string(whole) + " (SetOrgShape, else the tiling)", where);
    };
    within("m", p.m, p.orgM);
    within("n", p.n, p.orgN);
    within("k", p.k, std::min(p.orgKa, p.orgKb));
    if (!T::kNzC && p.PitchOfC() < p.n)
        Refuse(Rule::Argument, call, "orgKc", "C has rows of " + std::to_string(p.n) + " elements " + std::to_string(p.PitchOfC()) +
               " apart (orgKc of SetOrgShape): they overlap", where);
    if (p.hasBias && !withBias)
        Refuse(Rule::Argument, call, "", "SetBias, but the tiling has isBias 0: EnableBias(true) on the host", where);
    const auto pitch = [&](const char* name, bool inGm, bool nz, int64_t elements) {
        if (inGm && !nz && elements > kWidestPitch && !wideRows)
            Refuse(Rule::StrideLimit, call, name, std::string(name) + " has rows of " + std::to_string(elements) +
                   " elements; more than 65535 need a MatmulConfig with intrinsicsCheck, GetNormalConfig(true)", where);
    };
    pitch("A", !p.a.inL1, p.a.nz, p.a.Pitch());
    pitch("B", !p.b.inL1, p.b.nz, p.b.Pitch());
    if (!p.a.inL1) CheckExtent(call, "A", p.a, p.m, p.k, where);
    if (!p.b.inL1) CheckExtent(call, "B", p.b, p.n, p.k, where);
}

// Which way a matrix is given is checked against its MatmulType.
template <typename Type>
void CheckTranspose(const char* call, bool transposed, Location where) {
    if (transposed && !Type::isTransposable)
        Refuse(Rule::Argument, call, "isTranspose", std::string(call) +
               " is given a transposed matrix, but its MatmulType has isTrans false", where);
}

}  // namespace sim::matmul
