// matmul_tiling: base matrices that fill L0, pieces of L1 in two buffers, C split over the cores by the time of the slowest.
#include "tiling/matrix/matmul_tiling.h"

#include <algorithm>

#include "sim/core/soc.h"
#include "sim/host/current_soc.h"
#include "toolchain/slog.h"

namespace matmul_tiling {
namespace {

constexpr int64_t kRows = 16;          // of a fractal
constexpr int64_t kRowBytes = 32;
constexpr int64_t kSumBytes = 4;       // float or int32_t in L0C and BT
constexpr int64_t kMostBase = 4080;    // m, n and k of Mmad, in whole fractals
constexpr int32_t kRefused = -1;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t AlignUp(int64_t a, int64_t unit) { return CeilDiv(a, unit) * unit; }

#define REFUSE(...) (dlog_error(OP, "MatmulTiling: " __VA_ARGS__), kRefused)

}  // namespace

MatmulApiTiling::MatmulApiTiling() : soc_(&sim::host::CurrentSoc()) { SetBufferSpace(); }
MatmulApiTiling::MatmulApiTiling(const platform_ascendc::PlatformAscendC& platform) : soc_(&sim::host::SocOf(platform)) {
        SetBufferSpace(); }

int32_t MatmulApiTiling::SetAType(TPosition position, CubeFormat format, DataType type, bool isTrans) {
    a_ = {position, format, type, isTrans};
    return 0;
}
int32_t MatmulApiTiling::SetBType(TPosition position, CubeFormat format, DataType type, bool isTrans) {
    b_ = {position, format, type, isTrans};
    return 0;
}
int32_t MatmulApiTiling::SetCType(TPosition position, CubeFormat format, DataType type) {
    c_ = {position, format, type, false};
    return 0;
}
int32_t MatmulApiTiling::SetBiasType(TPosition position, CubeFormat format, DataType type) {
    bias_ = {position, format, type, false};
    return 0;
}
int32_t MatmulApiTiling::SetShape(int32_t m, int32_t n, int32_t k) {
    if (m < 1 || n < 1 || k < 1) return REFUSE("SetShape(%d, %d, %d): m, n and k must be at least 1", m, n, k);
    m_ = m, n_ = n, k_ = k;
    return 0;
}
int32_t MatmulApiTiling::SetOrgShape(int32_t orgM, int32_t orgN, int32_t orgKa, int32_t orgKb) {
    if (orgM < 1 || orgN < 1 || orgKa < 1 || orgKb < 1)
        return REFUSE("SetOrgShape(%d, %d, %d, %d): sizes must be at least 1", orgM, orgN, orgKa, orgKb);
    orgM_ = orgM, orgN_ = orgN, orgKa_ = orgKa, orgKb_ = orgKb;
    return 0;
}
int32_t MatmulApiTiling::SetFixSplit(int32_t baseM, int32_t baseN, int32_t baseK) {
    for (const int32_t base : {baseM, baseN, baseK})
        if (base != -1 && (base < 1 || base > kMostBase || base % kRows != 0))
            return REFUSE("SetFixSplit(%d, %d, %d): sizes are -1 or multiples of 16 up to 4080", baseM, baseN, baseK);
    fixM_ = baseM, fixN_ = baseN, fixK_ = baseK;
    return 0;
}
int32_t MatmulApiTiling::SetBufferSpace(int32_t l1Size, int32_t l0cSize, int32_t, int32_t btSize) {
    const auto space = [](int32_t asked, uint64_t all) { return asked == -1 ? int64_t(all) : std::min<int64_t>(asked, int64_t(all)); };
    l1Bytes_ = space(l1Size, soc_->l1Bytes), l0cBytes_ = space(l0cSize, soc_->l0cBytes), tableBytes_ = space(btSize, soc_->btBytes);
    return 0;
}
int32_t MatmulApiTiling::SetTraverse(MatrixTraverse traverse) {
    traverse_ = traverse;
    return 0;
}
int32_t MatmulApiTiling::SetMadType(MatrixMadType type) {   // SetHF32 of the object decides; the sizes are the same
    if (type == MatrixMadType::HF32 && a_.type != DataType::DT_FLOAT && a_.type != DataType::DT_UNDEFINED)
        return REFUSE("SetMadType(HF32): HF32 rounds float operands, A has another type");
    return 0;
}
int32_t MatmulApiTiling::EnableBias(bool isBias) {
    hasBias_ = isBias;
    return 0;
}

int64_t MatmulApiTiling::ElementBytes() const {
    return a_.type == DataType::DT_FLOAT ? 4 : a_.type == DataType::DT_INT8 ? 1 : 2;
}
int64_t MatmulApiTiling::Unit() const { return std::max(kRows, kRowBytes / ElementBytes()); }

bool MatmulApiTiling::CheckInput() const {
    const auto refuse = [](const char* why) { return dlog_error(OP, "MatmulTiling: GetTiling: %s", why), false; };
    if (m_ == 0) return refuse("SetShape has not been called");
    if (a_.type != b_.type) return refuse("A and B have different types");
    if (a_.type != DataType::DT_FLOAT && a_.type != DataType::DT_FLOAT16 && a_.type != DataType::DT_BF16 && a_.type != DataType::DT_INT8)
        return refuse("A and B are float, float16, bfloat16 or int8 (SetAType, SetBType)");
    if (c_.type == DataType::DT_UNDEFINED) return refuse("SetCType has not been called");
    if (hasBias_ && bias_.type == DataType::DT_UNDEFINED) return refuse("EnableBias(true) without SetBiasType");
    return true;
}

bool MatmulApiTiling::Split(Single* single) const {
    *single = {m_, n_, k_, 1};
    return true;
}

// Two matrices of each operand in L0A and L0B, one of C in L0C, a row of the bias in BT.
bool MatmulApiTiling::Fits(const Base& base) const {
    const int64_t bytes = ElementBytes();
    return base.m * base.k * bytes <= int64_t(soc_->l0aBytes) && base.n * base.k * bytes <= int64_t(soc_->l0bBytes) &&
           base.m * base.n * kSumBytes <= l0cBytes_ && (!hasBias_ || base.n * kSumBytes <= tableBytes_) &&
               L1Bytes(base, 1, 1, 1) <= l1Bytes_;
}
int64_t MatmulApiTiling::L1Bytes(const Base& base, int64_t stepKa, int64_t stepKb, int64_t buffers) const {
    const auto inL1 = [](const Matrix& matrix) { return matrix.position == TPosition::TSCM || matrix.position == TPosition::A1 ||
                                                matrix.position == TPosition::B1; };
    return buffers * base.k * ElementBytes() * ((inL1(a_) ? 0 : stepKa * base.m) + (inL1(b_) ? 0 : stepKb * base.n)) +
        (hasBias_ ? base.n * kSumBytes : 0);
}
int64_t MatmulApiTiling::DepthOf(const Base& base, const Single& single) const {
    if (fixK_ != -1) return fixK_;
    const int64_t fits = std::min(soc_->l0aBytes / base.m, soc_->l0bBytes / base.n) / 2 / ElementBytes();
    return std::min({fits / Unit() * Unit(), AlignUp(single.k, Unit()), kMostBase});
}

// GM is read ceil(n / baseN) times for A and ceil(m / baseM) times for B: the least of both. Among equals the squarest, as it takes the
// least from L1, and k as deep as two of each fit.
MatmulApiTiling::Base MatmulApiTiling::Choose(const Single& single) const {
    Base best;
    double bestCost = 0;
    const auto sizes = [](int32_t fixed, int64_t whole, int64_t unit) {
        constexpr int64_t kWidest = 1024;   // more leaves L0 no depth
        return fixed != -1 ? std::pair<int64_t, int64_t>{fixed, fixed} : std::pair{unit, std::min(AlignUp(whole, unit), kWidest)};
    };
    const auto [mLow, mHigh] = sizes(fixM_, single.m, kRows);
    const auto [nLow, nHigh] = sizes(fixN_, single.n, Unit());
    for (int64_t m = mLow; m <= mHigh; m += kRows)
        for (int64_t n = nLow; n <= nHigh; n += Unit()) {
            Base base{m, n, 0};
            base.k = DepthOf(base, single);
            if (base.k == 0 || !Fits(base)) continue;
            const int64_t mBlocks = CeilDiv(single.m, m), nBlocks = CeilDiv(single.n, n), shallow = 4 * Unit();
            const double fromGm = double(single.m) * double(nBlocks) + double(single.n) * double(mBlocks);
            const double computed = double(mBlocks * m) * double(nBlocks * n) / double(single.m * single.n);
            const double cost = fromGm * computed * (base.k < std::min(shallow, single.k) ? 2 : 1) * (1 + 1e-6 * double(std::abs(m - n)));
            if (best.m != 0 && cost >= bestCost) continue;
            best = base;
            bestCost = cost;
        }
    return best;
}

void MatmulApiTiling::Fill(const Base& base, const Single& single) {
    AscendC::tiling::TCubeTiling t{};
    const int64_t bytes = ElementBytes(), mBlocks = CeilDiv(single.m, base.m), nBlocks = CeilDiv(single.n, base.n),
        kBlocks = CeilDiv(single.k, base.k);
    // Pieces as long in k as two of each operand fit in L1, no longer than k.
    const int64_t buffers = mBlocks * nBlocks * kBlocks > 1 && L1Bytes(base, 1, 1, 2) <= l1Bytes_ ? 2 : 1;
    int64_t step = 1;
    while (step < kBlocks && L1Bytes(base, step + 1, step + 1, buffers) <= l1Bytes_) ++step;
    t.usedCoreNum = int32_t(single.cores);
    t.M = int32_t(orgM_ > 0 ? orgM_ : m_), t.N = int32_t(orgN_ > 0 ? orgN_ : n_);
    t.Ka = int32_t(orgKa_ > 0 ? orgKa_ : k_), t.Kb = int32_t(orgKb_ > 0 ? orgKb_ : k_);
    t.singleCoreM = int32_t(single.m), t.singleCoreN = int32_t(single.n), t.singleCoreK = int32_t(single.k);
    t.baseM = int32_t(base.m), t.baseN = int32_t(base.n), t.baseK = int32_t(base.k);
    t.stepM = t.stepN = 1;
    t.stepKa = t.stepKb = int32_t(step);
    t.depthA1 = t.depthB1 = int32_t(buffers * step);
    t.isBias = hasBias_;
    t.iterateOrder = traverse_ == MatrixTraverse::FIRSTN;
    t.shareL1Size = int32_t(L1Bytes(base, step, step, buffers));
    t.shareL0CSize = int32_t(base.m * base.n * kSumBytes);
    t.batchM = t.batchN = t.singleBatchM = t.singleBatchN = 1;
    t.dbL0A = base.m * base.k * bytes * 2 <= int64_t(soc_->l0aBytes) ? 2 : 1;
    t.dbL0B = base.n * base.k * bytes * 2 <= int64_t(soc_->l0bBytes) ? 2 : 1;
    t.dbL0C = mBlocks * nBlocks > 1 && 2 * t.shareL0CSize <= l0cBytes_ ? 2 : 1;
    result_ = t;
}

int64_t MatmulApiTiling::GetTiling(AscendC::tiling::TCubeTiling& tiling) {
    Single single;
    if (!CheckInput() || !Split(&single)) return kRefused;
    const Base base = Choose(single);
    if (base.m == 0)
        return REFUSE("GetTiling: no base matrices of %ld x %ld x %ld fit L0 and L1 of %s%s", long(single.m), long(single.n),
                      long(single.k), soc_->name,
                      fixM_ != -1 || fixN_ != -1 || fixK_ != -1 ? " with the sizes of SetFixSplit" : "");
    Fill(base, single);
    tiling = result_;
    return 0;
}

int64_t MatmulApiTiling::GetTiling(optiling::TCubeTiling& tiling) {
    AscendC::tiling::TCubeTiling plain;
    if (GetTiling(plain) == kRefused) return kRefused;
    tiling.LoadFromBuffer(&plain);
    return 0;
}

int32_t MultiCoreMatmulTiling::SetDim(int32_t dim) {
    if (dim < 1) return REFUSE("SetDim(%d): at least one core", dim);
    dim_ = dim;
    return 0;
}
int32_t MultiCoreMatmulTiling::SetShape(int32_t m, int32_t n, int32_t k) { return MatmulApiTiling::SetShape(m, n, k); }
int32_t MultiCoreMatmulTiling::SetSingleShape(int32_t singleM, int32_t singleN, int32_t singleK) {
    for (const int32_t size : {singleM, singleN, singleK})
        if (size != -1 && size < 1) return REFUSE("SetSingleShape(%d, %d, %d): sizes are -1 or at least 1", singleM, singleN, singleK);
    singleM_ = singleM, singleN_ = singleN, singleK_ = singleK;
    return 0;
}

// The slowest core: the more of its products and its bytes, both in cycles of about 16 x 16 x 32 bytes and 32 bytes.
bool MultiCoreMatmulTiling::Split(Single* single) const {
    if (singleK_ != -1 && singleK_ < k_)
        return dlog_error(OP, "MatmulTiling: SetSingleShape: a split of k over cores is not modelled, singleK is %d of %ld", singleK_,
                          long(k_)), false;
    double least = 0;
    *single = {};
    const int64_t bytes = ElementBytes();
    const auto part = [](int32_t fixed, int64_t whole, int64_t parts, int64_t unit) { return fixed != -1 ? std::min<int64_t>(fixed, whole)
                                                                                     : std::min(whole,
                                                                                             AlignUp(CeilDiv(whole, parts), unit)); };
    for (int64_t mParts = 1; mParts <= dim_; ++mParts)
        for (int64_t nParts = 1; nParts * mParts <= dim_; ++nParts) {
            const int64_t m = part(singleM_, m_, mParts, kRows), n = part(singleN_, n_, nParts, Unit());
            const int64_t cores = CeilDiv(m_, m) * CeilDiv(n_, n);
            if (cores > dim_) continue;
            const double products = double(CeilDiv(m, kRows) * CeilDiv(n, kRows)) * double(CeilDiv(k_ * bytes, kRowBytes));
            const double copied = double((m + n) * k_ * bytes + m * n * kSumBytes) / kRowBytes;
            const double cycles = std::max(products, copied) + 0.1 * std::min(products, copied);
            if (single->cores != 0 && cycles >= least) continue;
            *single = {m, n, k_, cores};
            least = cycles;
        }
    if (single->cores == 0)
        return dlog_error(OP, "MatmulTiling: GetTiling: blocks of %d x %d need more than the %d cores of SetDim", singleM_, singleN_,
                          dim_), false;
    chosen_ = *single;
    return true;
}

int32_t MultiCoreMatmulTiling::GetSingleShape(int32_t& singleM, int32_t& singleN, int32_t& singleK) const {
    if (chosen_.cores == 0) return REFUSE("GetSingleShape before GetTiling");
    singleM = int32_t(chosen_.m), singleN = int32_t(chosen_.n), singleK = int32_t(chosen_.k);
    return 0;
}
int32_t MultiCoreMatmulTiling::GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim) const {
    if (chosen_.cores == 0) return REFUSE("GetCoreNum before GetTiling");
    dim = int32_t(chosen_.cores), mDim = int32_t(CeilDiv(m_, chosen_.m)), nDim = int32_t(CeilDiv(n_, chosen_.n));
    return 0;
}

}  // namespace matmul_tiling
