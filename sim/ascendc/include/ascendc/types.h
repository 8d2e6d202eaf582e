// Vocabulary of the kernel-side API: keywords, scalar types, enums with their public values, dtype codes.
// Parameter structs are in params.h.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "ascendc/float_bits.h"
#include "sim/core/types.h"

// --- compiler keywords: address spaces and function kinds mean nothing to a host compiler ------------------------
#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __local_mem__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __vector__
#define __cube__
#define __mix__(cube, vector)
#define __schedmode__(mode)
#define __simd_vf__
#define __simd_callee__
#define __no_simd_vf_fusion__
#define GM_ADDR __gm__ uint8_t*

// --- dtype and format codes: macros, because kernels compare ORIG_DTYPE_X == DT_BF16 in the preprocessor -----------
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27
#define DT_INT4 29
#define DT_HIFLOAT8 34
#define DT_FLOAT8_E5M2 35
#define DT_FLOAT8_E4M3FN 36
#define FORMAT_NCHW 0
#define FORMAT_NHWC 1
#define FORMAT_ND 2
#define FORMAT_NC1HWC0 3
#define FORMAT_FRACTAL_Z 4
#define FORMAT_FRACTAL_NZ 29

// --- scalar types ---------------------------------------------------------------------------------------------------
using half = _Float16;

struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number> || std::is_same_v<Number, half>>>
    constexpr explicit bfloat16_t(Number value) : bits(sim::Bfloat16OfFloat(static_cast<float>(value))) {}

    constexpr explicit operator float() const { return sim::FloatOfBfloat16(bits); }
    constexpr explicit operator half() const { return static_cast<half>(static_cast<float>(*this)); }
    constexpr explicit operator int32_t() const { return static_cast<int32_t>(static_cast<float>(*this)); }

    static constexpr bfloat16_t FromBits(uint16_t bits) { return __builtin_bit_cast(bfloat16_t, bits); }
};
constexpr bool operator==(bfloat16_t a, bfloat16_t b) { return static_cast<float>(a) == static_cast<float>(b); }
constexpr bool operator!=(bfloat16_t a, bfloat16_t b) { return !(a == b); }

// Types of the API's vocabulary without a model: they have a name, so that dtype dispatch compiles, and no values.
struct int4b_t;
struct hifloat8_t;
struct fp8_e5m2_t;
struct fp8_e4m3fn_t;
struct fp8_e8m0_t;
struct fp4x2_e2m1_t;
struct fp4x2_e1m2_t;

enum pipe_t : uint8_t {
    PIPE_S = 0, PIPE_V = 1, PIPE_M = 2, PIPE_MTE1 = 3, PIPE_MTE2 = 4, PIPE_MTE3 = 5, PIPE_ALL = 6, PIPE_FIX = 10
};
enum event_t : uint8_t {
    EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7
};

namespace AscendC {

using TEventID = int8_t;

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, C2PIPE2GM,
    C2PIPE2LOCAL, MAX
};
using QuePosition = TPosition;
enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

enum class HardEvent : uint8_t {
    MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3, MTE1_V,
    MTE2_M, M_MTE2, V_MTE1, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MTE2_FIX,
    FIX_MTE2, FIX_S, M_S, FIX_MTE3, MTE1_FIX, FIX_MTE1, FIX_FIX, MAX
};

enum class RoundMode : uint8_t {
    CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD, CAST_HYBRID, UNKNOWN = 0xff
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType : uint8_t { SUM, MAX, MIN, OTHERS };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class MemDsbT : uint8_t { ALL, DDR, UB, SEQ };
enum class PaddingMode : uint8_t { Normal, Compact };
enum class DataCopyMVType : uint8_t { UB_TO_OUT, OUT_TO_UB };
enum class DataFormat : uint8_t { ND, NZ, NCHW, NC1HWC0, NHWC };

// --- constants --------------------------------------------------------------------------------------------------------
inline constexpr int32_t ONE_BLK_SIZE = 32;             // bytes of a data block
inline constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;    // bytes of one vector repeat
inline constexpr int32_t DEFAULT_C0_SIZE = 32;
inline constexpr int32_t ONE_BYTE_BIT_SIZE = 8;
inline constexpr int32_t DEFAULT_BLK_NUM = 8;           // data blocks of one repeat
inline constexpr int32_t DEFAULT_BLK_STRIDE = 1;
inline constexpr int32_t DEFAULT_REPEAT_STRIDE = 8;
inline constexpr uint64_t MASK_PLACEHOLDER = 0;
inline constexpr int32_t BLOCK_CUBE = 16;
inline constexpr int32_t MAX_REPEAT_TIMES = 255;
inline constexpr int32_t QUE_MAX_EVENT = 8;             // event ids of one pair of pipes
inline constexpr int32_t QBUF_MAX_LEN = 64;             // buffers of one TPipe
inline constexpr int32_t TBUF_POOL_MAX = 16;
inline constexpr uint64_t RESERVED_WORKSPACE = 16 * 1024 * 1024;

inline constexpr int32_t MIX = 0, AIC = 1, AIV = 2;   // kinds of core

inline float ToFloat(bfloat16_t value) { return static_cast<float>(value); }
inline bfloat16_t ToBfloat16(float value) { return bfloat16_t(value); }

namespace Std {
using std::bool_constant;
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::get;
using std::integral_constant;
using std::is_convertible;
using std::is_convertible_v;
using std::is_floating_point;
using std::is_integral;
using std::is_integral_v;
using std::is_same;
using std::is_same_v;
using std::make_tuple;
using std::remove_cv_t;
using std::remove_reference_t;
using std::true_type;
using std::tuple;
template <typename T, typename U>
constexpr T min(T a, U b) { return static_cast<T>(b) < a ? static_cast<T>(b) : a; }
template <typename T, typename U>
constexpr T max(T a, U b) { return a < static_cast<T>(b) ? static_cast<T>(b) : a; }
}  // namespace Std

}  // namespace AscendC

// The device compiles a kernel once for each kind of core; here one compilation serves both, so the kind is a run-time value.
#define g_coreType (::sim::CoreType())
#define ASCEND_IS_AIV (::sim::CoreType() == ::AscendC::AIV)
#define ASCEND_IS_AIC (::sim::CoreType() == ::AscendC::AIC)

namespace sim {

inline int32_t CoreType();   // block.h

// DT_* code and the name used in messages.
template <typename T> inline constexpr int kDtype = -1;
template <> inline constexpr int kDtype<float> = DT_FLOAT;
template <> inline constexpr int kDtype<half> = DT_FLOAT16;
template <> inline constexpr int kDtype<bfloat16_t> = DT_BF16;
template <> inline constexpr int kDtype<double> = DT_DOUBLE;
template <> inline constexpr int kDtype<bool> = DT_BOOL;
template <> inline constexpr int kDtype<int8_t> = DT_INT8;
template <> inline constexpr int kDtype<uint8_t> = DT_UINT8;
template <> inline constexpr int kDtype<int16_t> = DT_INT16;
template <> inline constexpr int kDtype<uint16_t> = DT_UINT16;
template <> inline constexpr int kDtype<int32_t> = DT_INT32;
template <> inline constexpr int kDtype<uint32_t> = DT_UINT32;
template <> inline constexpr int kDtype<int64_t> = DT_INT64;
template <> inline constexpr int kDtype<uint64_t> = DT_UINT64;

constexpr const char* DtypeName(int code) {
    switch (code) {
        case DT_FLOAT: return "float";
        case DT_FLOAT16: return "half";
        case DT_BF16: return "bfloat16_t";
        case DT_DOUBLE: return "double";
        case DT_BOOL: return "bool";
        case DT_INT8: return "int8_t";
        case DT_UINT8: return "uint8_t";
        case DT_INT16: return "int16_t";
        case DT_UINT16: return "uint16_t";
        case DT_INT32: return "int32_t";
        case DT_UINT32: return "uint32_t";
        case DT_INT64: return "int64_t";
        case DT_UINT64: return "uint64_t";
    }
    return "unknown type";
}
template <typename T> constexpr const char* DtypeName() { return DtypeName(kDtype<T>); }

// The memory behind a position, and the position's name.
constexpr Memory MemoryOf(AscendC::TPosition position) {
    using P = AscendC::TPosition;
    switch (position) {
        case P::GM: case P::CO2: return Memory::GM;
        case P::A1: case P::B1: case P::C1: case P::SPM: case P::TSCM: return Memory::L1;
        case P::A2: return Memory::L0A;
        case P::B2: return Memory::L0B;
        case P::C2: return Memory::BT;
        case P::CO1: return Memory::L0C;
        case P::C2PIPE2GM: case P::C2PIPE2LOCAL: return Memory::FB;
        default: return Memory::UB;
    }
}
constexpr const char* PositionName(AscendC::TPosition position) {
    constexpr const char* names[] = {"GM", "A1", "A2", "B1", "B2", "C1", "C2", "CO1", "CO2", "VECIN", "VECOUT",
                                     "VECCALC", "SPM", "TSCM", "C2PIPE2GM", "C2PIPE2LOCAL"};
    return position < AscendC::TPosition::MAX ? names[static_cast<int>(position)] : "?";
}

constexpr uint64_t AlignUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace sim
