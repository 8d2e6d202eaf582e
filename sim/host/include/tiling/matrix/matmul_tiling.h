// How a matrix product is cut for the kernel's Matmul object.
//
//   MultiCoreMatmulTiling t(platform);
//   t.SetDim(cores); t.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16); ... t.SetShape(m, n, k); t.SetOrgShape(m, n, k);
//   t.EnableBias(false); t.SetBufferSpace(-1, -1, -1);
//   if (t.GetTiling(tiling.cubeTilingData) == -1) return ge::GRAPH_FAILED;
//
// Setters and GetTiling return -1 for what is not possible, with the reason in the log.
#pragma once

#include "tiling/matrix/cube_tiling_data.h"
#include "tiling/platform/platform_ascendc.h"

namespace matmul_tiling {

enum class TPosition : int32_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, MAX };
enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class DataType : int32_t {   // as ge::DataType
    DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_BF16 = 27, DT_BFLOAT16 = DT_BF16, DT_UNDEFINED = 28
};
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1 };

// For one core: it computes all of SetShape.
class MatmulApiTiling {
public:
    MatmulApiTiling();   // for the chip this host thread simulates
    explicit MatmulApiTiling(const platform_ascendc::PlatformAscendC& platform);
    virtual ~MatmulApiTiling() = default;

    int32_t SetAType(TPosition position, CubeFormat format, DataType type, bool isTrans = false);
    int32_t SetBType(TPosition position, CubeFormat format, DataType type, bool isTrans = false);
    int32_t SetCType(TPosition position, CubeFormat format, DataType type);
    int32_t SetBiasType(TPosition position, CubeFormat format, DataType type);
    virtual int32_t SetShape(int32_t m, int32_t n, int32_t k);
    int32_t SetOrgShape(int32_t orgM, int32_t orgN, int32_t orgK) { return SetOrgShape(orgM, orgN, orgK, orgK); }
    int32_t SetOrgShape(int32_t orgM, int32_t orgN, int32_t orgKa, int32_t orgKb);
    // Of Mmad; -1: chosen here.
    int32_t SetFixSplit(int32_t baseM = -1, int32_t baseN = -1, int32_t baseK = -1);
    // Bytes that the object may use; -1: all the core has.
    int32_t SetBufferSpace(int32_t l1Size = -1, int32_t l0cSize = -1, int32_t ubSize = -1, int32_t btSize = -1);
    int32_t SetTraverse(MatrixTraverse traverse);
    int32_t SetMadType(MatrixMadType type);
    int32_t EnableBias(bool isBias = false);
    int32_t SetBias(bool isBias = false) { return EnableBias(isBias); }

    int64_t GetTiling(optiling::TCubeTiling& tiling);
    int64_t GetTiling(AscendC::tiling::TCubeTiling& tiling);
    int32_t GetBaseM() const { return result_.baseM; }
    int32_t GetBaseN() const { return result_.baseN; }
    int32_t GetBaseK() const { return result_.baseK; }

protected:
    struct Matrix {
        TPosition position = TPosition::GM;
        CubeFormat format = CubeFormat::ND;
        DataType type = DataType::DT_UNDEFINED;
        bool transposed = false;
    };
    struct Single { int64_t m, n, k, cores; };   // what one core computes, and how many do
    // False, with the reason in the log, when no split of the shape is possible.
    virtual bool Split(Single* single) const;
    int64_t Unit() const;                        // elements that n and k are cut to
    int64_t ElementBytes() const;

    Matrix a_, b_, c_, bias_;
    int64_t m_ = 0, n_ = 0, k_ = 0;
    const sim::SocSpec* soc_;

private:
    struct Base { int64_t m = 0, n = 0, k = 0; };
    bool CheckInput() const;
    int64_t L1Bytes(const Base& base, int64_t stepKa, int64_t stepKb, int64_t buffers) const;
    int64_t DepthOf(const Base& base, const Single& single) const;   // of k that L0 holds twice; 0: none
    bool Fits(const Base& base) const;
    Base Choose(const Single& single) const;
    void Fill(const Base& base, const Single& single);

    int64_t orgM_ = 0, orgN_ = 0, orgKa_ = 0, orgKb_ = 0;
    int32_t fixM_ = -1, fixN_ = -1, fixK_ = -1;
    int64_t l1Bytes_, l0cBytes_, tableBytes_;
    MatrixTraverse traverse_ = MatrixTraverse::NOSET;
    bool hasBias_ = false;
    AscendC::tiling::TCubeTiling result_{};
};

// For several cores, which split C into blocks of singleCoreM x singleCoreN.
class MultiCoreMatmulTiling : public MatmulApiTiling {
public:
    using MatmulApiTiling::MatmulApiTiling;
    // Cores that call the object: AIV cores in a kernel of both kinds, AIC cores with ASCENDC_CUBE_ONLY.
    int32_t SetDim(int32_t dim);
    int32_t SetShape(int32_t m, int32_t n, int32_t k) override;
    // What one core computes; -1: chosen here.
    int32_t SetSingleShape(int32_t singleM = -1, int32_t singleN = -1, int32_t singleK = -1);
    int32_t GetSingleShape(int32_t& singleM, int32_t& singleN, int32_t& singleK) const;
    int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim) const;

protected:
    bool Split(Single* single) const override;

private:
    int32_t dim_ = 1;
    int32_t singleM_ = -1, singleN_ = -1, singleK_ = -1;
    mutable Single chosen_{};
};

}  // namespace matmul_tiling
