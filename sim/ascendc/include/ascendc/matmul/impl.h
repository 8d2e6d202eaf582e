// MatmulImpl: the object on the cube core itself.
#pragma once

#include "ascendc/matmul/setters.h"

namespace AscendC {

template <typename AType, typename BType, typename CType, typename BiasType = CType, const auto& config = CFG_NORM>
class MatmulImpl : public sim::matmul::Setters<AType, BType, CType, BiasType, config> {
    using Base = sim::matmul::Setters<AType, BType, CType, BiasType, config>;
    using Numbers = typename Base::T;
    using C = typename Numbers::C;
    using Base::at_, Base::problem_, Base::registered_, Base::ubA_, Base::ubB_, Base::ubBias_;

public:
    MatmulImpl() : unwinding_(std::uncaught_exceptions()) {}
    ~MatmulImpl() noexcept(false) {
        if (registered_ && std::uncaught_exceptions() == unwinding_) End();
    }
    void Init(const tiling::TCubeTiling* cubeTiling, TPipe* tpipe = nullptr, sim::Location where = sim::Location::Here()) {
        OnCube("Init", where);
        if (cubeTiling == nullptr) sim::matmul::Refuse(sim::Rule::Argument, "Init", "cubeTiling", "Init without a tiling", where);
        Base::StartFrom(*cubeTiling);
        engine_.Configure(Base::TilingWithOrder(), config.doNorm, where);
        constexpr auto inL1 = [](TPosition position) { return sim::MemoryOf(position) == sim::Memory::L1; };
        sim::matmul::CubeMemory::Current().Reserve(tpipe != nullptr ? *tpipe : *GetTPipePtr(where),
                                                   engine_.Memory(inL1(AType::pos), inL1(BType::pos), where), where);
    }
    // The next base matrix of C; false when there is none. enPartialSum: added to the last one.
    template <bool sync = true>
    bool Iterate(bool enPartialSum = false, sim::Location where = sim::Location::Here()) {
        OnCube("Iterate", where);
        Base::NeedRegistered("Iterate", where);
        if (at_ < 0) Begin("Iterate", where);
        if (at_ + 1 >= engine_.GetWalk().Count()) {
            at_ = -1;
            return false;
        }
        engine_.Multiply(++at_, -1, enPartialSum, where);
        return true;
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<C>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                    sim::Location where = sim::Location::Here()) {
        OnCube("GetTensorC", where);
        if (at_ < 0) sim::matmul::Refuse(sim::Rule::Argument, "GetTensorC", "", "GetTensorC without Iterate: there is no result", where);
        engine_.Store(at_, sim::matmul::TargetOf("GetTensorC", gm, enSequentialWrite, enAtomic, where), where);
    }
    template <bool sync = true>
    void GetTensorC(const LocalTensor<C>& co2Local, uint8_t = 0, bool = false, sim::Location where = sim::Location::Here()) {
        sim::matmul::Refuse(sim::Rule::PipeLegality, "GetTensorC", "co2Local", std::string("a cube core brings C to GM; ") +
                            sim::MemoryName(co2Local.Where()) + " is not modelled", where);
    }
    template <bool sync = true>
    void IterateAll(const GlobalTensor<C>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false, bool waitIterateAll = false,
                    bool fakeMsg = false, sim::Location where = sim::Location::Here()) {
        OnCube("IterateAll", where);
        Base::NeedRegistered("IterateAll", where);
        Begin("IterateAll", where);
        engine_.All(sim::matmul::TargetOf("IterateAll", gm, enSequentialWrite, enAtomic, where),
                    engine_.GetPlan().baseM * engine_.GetPlan().baseN, where);
        Base::Restart();
        (void)waitIterateAll, (void)fakeMsg;   // of messages: here the work is issued at once
    }
    void WaitIterateAll() {}
    void WaitGetTensorC() {}
    void SetWorkspace(GlobalTensor<C>&) {}     // for results nobody has fetched yet: they stay in L0C
    void End(sim::Location where = sim::Location::Here()) {
        if (!registered_ || sim::Core::Current().Kind() != sim::CoreKind::Cube) return;
        sim::matmul::CubeMemory::Current().Drain(where);
        Base::Restart();
    }

private:
    static void OnCube(const char* call, sim::Location where) {
        sim::Core& core = sim::Core::Current();
        if (core.Kind() == sim::CoreKind::Cube || core.HasMemory(sim::Memory::L1, where)) return;
        sim::matmul::Refuse(sim::Rule::PipeLegality, call, "", std::string(call) +
                            " of a MatmulImpl, or with ASCENDC_CUBE_ONLY, works on a cube core; "
                            "this is a vector core (if ASCEND_IS_AIC { ... })", where);
    }
    void Begin(const char* call, sim::Location where) {
        if (ubA_.Address() != sim::kNowhere || ubB_.Address() != sim::kNowhere || (problem_.hasBias && ubBias_.Address() != sim::kNowhere))
            sim::matmul::Refuse(sim::Rule::PipeLegality, call, "", "a matrix or the bias lies in UB, which a cube core does not reach",
                                where);
        problem_.Prepare();
        sim::matmul::CheckProblem(call, problem_, engine_.GetPlan().withBias, config.intrinsicsCheck, where);
        engine_.Begin(problem_, where);
    }
    sim::matmul::Engine<Numbers> engine_;
    int unwinding_;
};

}  // namespace AscendC
