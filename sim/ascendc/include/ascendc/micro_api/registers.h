// Registers of a vector function (facts 6.2) and the enums of the register API.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ascendc/types.h"
#include "sim/core/vector_function.h"

namespace AscendC {

inline constexpr uint32_t VECTOR_REG_WIDTH = 256;   // bytes
constexpr uint32_t GetVecLen() { return VECTOR_REG_WIDTH; }

namespace Reg {

struct DefaultType {};   // a template argument left to be deduced

enum class MaskMergeMode : uint8_t { UNKNOWN, MERGING, ZEROING };
enum class MaskPattern : uint8_t { ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, M3, M4, H, Q, ALLF };
enum class HighLowPart : uint8_t { LOWEST, HIGHEST };
enum class RegLayout : int8_t { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode : int8_t { UNKNOWN = -1, NO_SAT, SAT };
enum class PostLiteral : uint8_t { POST_MODE_NORMAL, POST_MODE_UPDATE };
enum class DataCopyMode : uint8_t { NORM, DATA_BLOCK_COPY, DATA_BLOCK_LOAD = DATA_BLOCK_COPY };
enum class MemType : uint8_t { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class IndexOrder : uint8_t { INCREASE_ORDER, DECREASE_ORDER };
enum class GatherMaskMode : uint8_t { NO_STORE_REG, STORE_REG };
enum class PairReduce : uint8_t { SUM };
enum class SpecialPurposeReg : uint8_t { AR };
enum class MaskDist : uint8_t { DIST_NORM, DIST_US, DIST_DS, DIST_PACK };

enum class LoadDist : uint8_t {
    DIST_NORM, DIST_BRC_B8, DIST_BRC_B16, DIST_BRC_B32, DIST_US_B8, DIST_US_B16, DIST_DS_B8, DIST_DS_B16,
    DIST_UNPACK_B8, DIST_UNPACK_B16, DIST_UNPACK_B32, DIST_UNPACK4_B8, DIST_BLK, DIST_E2B_B16, DIST_E2B_B32,
    DIST_BDINTLV, DIST_DINTLV_B8, DIST_DINTLV_B16, DIST_DINTLV_B32, DIST_SPLT4CHN_B8, DIST_SPLT2CHN_B8, DIST_SPLT2CHN_B16
};
enum class StoreDist : uint8_t {
    DIST_NORM, DIST_NORM_B8, DIST_NORM_B16, DIST_NORM_B32, DIST_FIRST_ELEMENT_B8, DIST_FIRST_ELEMENT_B16,
    DIST_FIRST_ELEMENT_B32, DIST_PACK_B16, DIST_PACK_B32, DIST_PACK_B64, DIST_PACK4_B32, DIST_INTLV_B8, DIST_INTLV_B16,
    DIST_INTLV_B32, DIST_MRG4CHN_B8, DIST_MRG2CHN_B8, DIST_MRG2CHN_B16
};

struct RegTrait { int REG_NUM = 1; };
inline constexpr RegTrait RegTraitNumOne{1};
inline constexpr RegTrait RegTraitNumTwo{2};   // b64: 64 lanes in a pair of registers

struct CastTrait {
    RegLayout layoutMode = RegLayout::UNKNOWN;
    SatMode satMode = SatMode::UNKNOWN;
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    RoundMode roundMode = RoundMode::UNKNOWN;
};
inline constexpr CastTrait castTrait{};

// Algorithms of the functions that have a choice; all are computed with at most one ulp here.
enum class ExpAlgo : uint8_t { INTRINSIC, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class LnAlgo : uint8_t { INTRINSIC, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class LogAlgo : uint8_t { INTRINSIC, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class SqrtAlgo : uint8_t {
    INTRINSIC, FAST_INVERSE, PRECISION_0ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE, PRECISION_1ULP_FTZ_TRUE,
    PRECISION_1ULP_FTZ_FALSE
};
enum class DivAlgo : uint8_t {
    INTRINSIC, DIFF_COMPENSATION, PRECISION_0ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE, PRECISION_1ULP_FTZ_TRUE,
    PRECISION_1ULP_FTZ_FALSE
};
struct ExpSpecificMode { MaskMergeMode mrgMode = MaskMergeMode::ZEROING; ExpAlgo algo = ExpAlgo::INTRINSIC; };
struct LnSpecificMode { MaskMergeMode mrgMode = MaskMergeMode::ZEROING; LnAlgo algo = LnAlgo::INTRINSIC; };
struct LogSpecificMode { MaskMergeMode mrgMode = MaskMergeMode::ZEROING; LogAlgo algo = LogAlgo::INTRINSIC; };
struct SqrtSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    bool precisionMode = false;
    SqrtAlgo algo = SqrtAlgo::INTRINSIC;
};
struct DivSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    bool precisionMode = false;
    DivAlgo algo = DivAlgo::INTRINSIC;
};

// Predicate of 256 bits, one per register byte. A lane is on when the bit of its first byte is: a mask made for b32
// switches on the even lanes of a b16 operation.
class MaskReg {
public:
    uint64_t word[4] = {0, 0, 0, 0};

    bool Bit(uint32_t bit) const { return word[bit / 64] >> (bit % 64) & 1; }
    void SetBit(uint32_t bit, bool on) {
        word[bit / 64] = (word[bit / 64] & ~(1ull << (bit % 64))) | uint64_t(on) << (bit % 64);
    }
};

// 256 bytes (512 for a pair), and which lanes must not be used; see VectorFunction.
template <typename T, const RegTrait& regTrait = RegTraitNumOne>
class RegTensor {
public:
    using ActualT = T;
    static constexpr uint32_t kBytes = VECTOR_REG_WIDTH * uint32_t(regTrait.REG_NUM);
    static constexpr uint32_t kLanes = kBytes / sizeof(T);
    static constexpr uint32_t kMaskStep = VECTOR_REG_WIDTH / kLanes;   // mask bits of a lane
    static_assert(regTrait.REG_NUM == 1 || sizeof(T) == 8, "RegTraitNumTwo is for 64-bit types");

    RegTensor() {}   // holds nothing: `taint` says so
    void print() const {}

    alignas(64) T lane[kLanes];
    sim::Taint taint{{~0ull, ~0ull, ~0ull, ~0ull}, sim::VectorFunction::kUnwrittenRegister};
};

// Staging of unaligned loads: the 32-byte block that LoadUnAlignPre or the previous load has fetched.
class UnalignRegForLoad {
public:
    const void* block = nullptr;
};
// Staging of unaligned stores: the bytes behind the last full 32-byte block. Lost without StoreUnAlignPost.
class UnalignRegForStore {
public:
    uint8_t pending[32];
    uint32_t count = 0;
    uint8_t* next = nullptr;   // where the following byte goes
};
// One object serves both directions in the older spelling.
class UnalignReg : public UnalignRegForLoad, public UnalignRegForStore {};

// Element offset of up to four loop levels.
class AddrReg {
public:
    uint32_t elements = 0;
};

template <typename T>
struct IsRegister : std::false_type {};
template <typename T, const RegTrait& trait>
struct IsRegister<RegTensor<T, trait>> : std::true_type {};
template <typename... Regs>
using IfRegisters = std::enable_if_t<(IsRegister<Regs>::value && ...)>;
template <typename T>
using IfScalar = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>>;

}  // namespace Reg
namespace MicroAPI = Reg;
}  // namespace AscendC

using vector_bool = AscendC::Reg::MaskReg;
using vector_align = AscendC::Reg::UnalignRegForLoad;
using vector_address = AscendC::Reg::AddrReg;
