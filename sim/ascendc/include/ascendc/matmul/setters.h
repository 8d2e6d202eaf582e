// What all forms of the high-level object share: the setters that describe a product.
#pragma once

#include "ascendc/matmul/engine.h"
#include "ascendc/matmul/not_modelled.h"

namespace sim::matmul {

template <typename AType, typename BType, typename CType, typename BiasType, const auto& CFG>
class Setters : public Refused {
public:
    using T = Types<AType, BType, CType, BiasType>;
    static_assert(!CFG.isNBatch, "batches (isNBatch) are not modelled");

    void SetOrgShape(Wide orgM, Wide orgN, Wide orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
    void SetOrgShape(Wide orgM, Wide orgN, Wide orgKa, Wide orgKb, Wide orgKc = 0) {
        problem_.orgM = orgM, problem_.orgN = orgN, problem_.orgKa = orgKa, problem_.orgKb = orgKb, problem_.orgKc = orgKc;
        Restart();
    }
    void SetSingleShape(Wide singleM, Wide singleN, Wide singleK) { SetTail(singleM, singleN, singleK); }
    void SetTail(Wide tailM = -1, Wide tailN = -1, Wide tailK = -1) {   // -1: as before
        if (tailM.value != -1) problem_.m = tailM;
        if (tailN.value != -1) problem_.n = tailN;
        if (tailK.value != -1) problem_.k = tailK;
        Restart();
    }
    void SetTensorA(const GlobalTensor<typename T::A>& gm, bool isTransposeA = false, Location where = Location::Here()) {
        GiveA(isTransposeA, where).gm = gm;
        problem_.hasA = true;
    }
    void SetTensorB(const GlobalTensor<typename T::B>& gm, bool isTransposeB = false, Location where = Location::Here()) {
        GiveB(isTransposeB, where).gm = gm;
        problem_.hasB = true;
    }
    void SetTensorA(const LocalTensor<typename T::A>& leftMatrix, bool isTransposeA = false, Location where = Location::Here()) {
        SetLocal(GiveA(isTransposeA, where), ubA_, "SetTensorA", leftMatrix, where);
        problem_.hasA = true;
    }
    void SetTensorB(const LocalTensor<typename T::B>& rightMatrix, bool isTransposeB = false, Location where = Location::Here()) {
        SetLocal(GiveB(isTransposeB, where), ubB_, "SetTensorB", rightMatrix, where);
        problem_.hasB = true;
    }
    void SetBias(const GlobalTensor<typename T::Bias>& biasGlobal) {
        static_assert(T::kBiasFits, "the bias is float, half or bfloat16_t, or int32_t beside int8_t");
        problem_.bias = biasGlobal;
        ubBias_ = {};
        problem_.hasBias = true;
        Restart();
    }
    void SetBias(const LocalTensor<typename T::Bias>& inputBias, Location where = Location::Here()) {
        static_assert(T::kBiasFits, "the bias is float, half or bfloat16_t, or int32_t beside int8_t");
        if (inputBias.Where() != Memory::UB)
            Refuse(Rule::PipeLegality, "SetBias", "inputBias", std::string("a bias in ") + MemoryName(inputBias.Where()) +
                   " is not modelled; GM and UB are", where);
        ubBias_ = inputBias;
        problem_.hasBias = true;
        Restart();
    }
    void ClearBias() { DisableBias(); }
    void DisableBias() {
        problem_.hasBias = false;
        Restart();
    }
    // transMode: rounding of the operands, as SetHF32TransMode.
    void SetHF32(bool enableHF32 = false, int32_t transMode = 0) {
        problem_.hf32 = enableHF32;
        problem_.hf32Truncates = transMode != 0;
        Restart();
    }
    void SetQuantScalar(uint64_t quantScalar) {
        problem_.scale = quantScalar;
        problem_.hasScale = true;
        Restart();
    }
    void SetLocalWorkspace(const LocalTensor<uint8_t>&) {}   // UB for layout changes by vector cores; here the copy makes them
    void SetSubBlockIdx(uint8_t) {}                          // the core knows which it is

protected:
    // What the tiling says holds until a setter says otherwise.
    void StartFrom(const TCubeTiling& t) {
        tiling_ = t;
        registered_ = true;
        problem_.orgM = t.M, problem_.orgN = t.N, problem_.orgKa = t.Ka, problem_.orgKb = t.Kb, problem_.orgKc = 0;
        problem_.m = t.singleCoreM, problem_.n = t.singleCoreN, problem_.k = t.singleCoreK;
        Restart();
    }
    void NeedRegistered(const char* call, Location where) const {
        if (!registered_)
            Refuse(Rule::Argument, call, "", std::string(call) +
                   " of an object that is not registered: REGIST_MATMUL_OBJ with a tiling, or Init, comes first", where);
    }
    TCubeTiling TilingWithOrder() const {
        TCubeTiling t = tiling_;
        if (CFG.iterateOrder != AscendC::IterateOrder::UNDEF) t.iterateOrder = int32_t(CFG.iterateOrder);
        return t;
    }
    void Restart() { at_ = -1; }

    Problem<T> problem_;
    LocalTensor<typename T::A> ubA_;
    LocalTensor<typename T::B> ubB_;
    LocalTensor<typename T::Bias> ubBias_;
    TCubeTiling tiling_{};
    bool registered_ = false;
    int64_t at_ = -1;   // the base matrix of the last Iterate, -1 before the first

private:
    Stored<typename T::A>& GiveA(bool transposed, Location where) {
        CheckTranspose<AType>("SetTensorA", transposed, where);
        Restart();
        ubA_ = {};
        problem_.a = {};
        problem_.a.transposed = transposed;
        problem_.a.nz = AType::format == CubeFormat::NZ;
        return problem_.a;
    }
    Stored<typename T::B>& GiveB(bool transposed, Location where) {
        CheckTranspose<BType>("SetTensorB", transposed, where);
        Restart();
        ubB_ = {};
        problem_.b = {};
        problem_.b.transposed = !transposed;   // [k, n] unless it is given transposed
        problem_.b.nz = BType::format == CubeFormat::NZ;
        return problem_.b;
    }
    template <typename Number>
    static void SetLocal(Stored<Number>& matrix, LocalTensor<Number>& ub, const char* call, const LocalTensor<Number>& local,
                         Location where) {
        if (local.Where() == Memory::UB) {
            ub = local;
            return;
        }
        if (local.Where() != Memory::L1)
            Refuse(Rule::PipeLegality, call, "", std::string("the matrix lies in ") + MemoryName(local.Where()) +
                   "; an object takes GM, UB (VECOUT) and L1", where);
        if (!matrix.nz)
            Refuse(Rule::Argument, call, "", "a matrix in L1 is NZ there: its MatmulType has to say CubeFormat::NZ", where);
        if (matrix.transposed && sizeof(Number) != 2)
            Refuse(Rule::Dtype, call, "", std::string("a transposed matrix of ") + DtypeName<Number>() +
                   " in L1 is not modelled: only 16-bit fractals are transposed from NZ", where);
        matrix.l1 = local;
        matrix.inL1 = true;
    }
};

}  // namespace sim::matmul
