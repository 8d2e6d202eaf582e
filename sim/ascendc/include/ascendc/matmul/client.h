// Matmul in a kernel of both kinds of core: vector cores call it, the cube core of their block does the work. With ASCENDC_CUBE_ONLY
// it is MatmulImpl.
#pragma once

#include "ascendc/matmul/impl.h"
#include "ascendc/matmul/message.h"

namespace AscendC {

template <typename AType, typename BType, typename CType, typename BiasType = CType, const auto& config = CFG_NORM>
class Matmul : public sim::matmul::Setters<AType, BType, CType, BiasType, config> {
    using Base = sim::matmul::Setters<AType, BType, CType, BiasType, config>;
    using Numbers = typename Base::T;
    using C = typename Numbers::C;
    using Request = sim::matmul::Message<Numbers>;
    using Command = sim::matmul::Command;
    using Rows = sim::matmul::Rows;
    using Location = sim::Location;
    using Base::at_, Base::problem_, Base::registered_, Base::ubA_, Base::ubB_, Base::ubBias_;

public:
    Matmul() = default;
    void Init(const tiling::TCubeTiling* cubeTiling, TPipe* = nullptr, Location where = Location::Here()) {
        OnVector("Init", where);
        if (cubeTiling == nullptr) sim::matmul::Refuse(sim::Rule::Argument, "Init", "cubeTiling", "Init without a tiling", where);
        Configure(*cubeTiling, where);
        auto request = NewRequest(Command::Configure, where);
        request->tiling = *cubeTiling;
        Send(request, where);
    }
    template <bool sync = true>
    void IterateAll(const GlobalTensor<C>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false, bool waitIterateAll = false,
                    bool fakeMsg = false, Location where = Location::Here()) {
        Begin("IterateAll", where);
        (void)fakeMsg;
        auto request = NewRequest(Command::All, where);
        request->target = sim::matmul::TargetOf("IterateAll", gm, enSequentialWrite, enAtomic, where);
        request->answer = sync || waitIterateAll;
        Send(request, where);
        if (sync) Await(*request, 1, "IterateAll", where);
        else if (waitIterateAll) pending_ = request;
        Base::Restart();
    }
    // All of C into UB, m x n without gaps.
    template <bool sync = true>
    void IterateAll(const LocalTensor<C>& ubCmatrix, uint8_t enAtomic = 0, Location where = Location::Here()) {
        static_assert(sync, "IterateAll into a LocalTensor waits for the result");
        Begin("IterateAll", where);
        const GlobalTensor<C> gm = sim::matmul::InWorkspace("IterateAll", ubCmatrix, where);
        auto request = NewRequest(Command::All, where);
        request->problem.orgM = problem_.m, request->problem.orgKc = problem_.n;
        request->target = sim::matmul::TargetOf("IterateAll", gm, false, enAtomic, where);
        request->answer = true;
        Send(request, where);
        Await(*request, 1, "IterateAll", where);
        FromWorkspace(ubCmatrix, gm, Shape("IterateAll", problem_.m, problem_.n, problem_.m, problem_.n, where), where);
        Base::Restart();
    }
    void WaitIterateAll(Location where = Location::Here()) {
        if (pending_ == nullptr)
            sim::matmul::Refuse(sim::Rule::Argument, "WaitIterateAll", "",
                                "WaitIterateAll without IterateAll<false>(..., waitIterateAll = true) before it", where);
        Await(*pending_, 1, "WaitIterateAll", where);
        pending_ = nullptr;
    }
    // sync: GetTensorC fetches this base matrix. Otherwise the cube core computes all of them into SetWorkspace's memory from the first
    // call on.
    template <bool sync = true>
    bool Iterate(bool enPartialSum = false, Location where = Location::Here()) {
        if (enPartialSum)
            sim::matmul::Refuse(sim::Rule::Argument, "Iterate", "enPartialSum",
                                "enPartialSum in a kernel of both kinds of core is not modelled", where);
        if (at_ < 0) {
            Begin("Iterate", where);
            ahead_ = !sync;
            fetched_ = 0;
            if (ahead_) StartAhead(where);
        }
        if (at_ + 1 >= Walk().Count()) {
            Base::Restart();
            return false;
        }
        ++at_;
        return true;
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<C>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false, Location where = Location::Here()) {
        HaveBlock("GetTensorC", where);
        if (ahead_)
            sim::matmul::Refuse(sim::Rule::Argument, "GetTensorC", "gm",
                                "after Iterate<false> the result is fetched into UB; to GM is not modelled", where);
        auto request = NewRequest(Command::Block, where);
        request->target = sim::matmul::TargetOf("GetTensorC", gm, enSequentialWrite, enAtomic, where);
        request->answer = sync;
        Send(request, where);
        if (sync) Await(*request, 1, "GetTensorC", where);
    }
    // The base matrix into UB, rows of baseN elements.
    template <bool sync = true>
    void GetTensorC(const LocalTensor<C>& co2Local, uint8_t enAtomic = 0, bool enSequentialWrite = true,
                    Location where = Location::Here()) {
        if (ahead_) {
            FetchAhead(co2Local, enAtomic, where);
            return;
        }
        HaveBlock("GetTensorC", where);
        if (!sync)
            sim::matmul::Refuse(sim::Rule::Argument, "GetTensorC", "sync", "GetTensorC<false> into UB comes after Iterate<false>", where);
        (void)enSequentialWrite;   // a base matrix in UB has nothing beside it
        const GlobalTensor<C> gm = sim::matmul::InWorkspace("GetTensorC", co2Local, where);
        auto request = NewRequest(Command::Block, where);
        request->target = sim::matmul::TargetOf("GetTensorC", gm, true, enAtomic, where);
        request->answer = true;
        Send(request, where);
        Await(*request, 1, "GetTensorC", where);
        FromWorkspace(co2Local, gm, BlockShape("GetTensorC", where), where);
    }
    void SetWorkspace(const GlobalTensor<C>& workspace) { workspace_ = workspace, hasWorkspace_ = true; }
    void WaitGetTensorC() {}   // GetTensorC into UB has waited
    void End() { Base::Restart(); }

private:
    friend struct sim::matmul::Registration;

    void Register(int object) { object_ = object; }
    static const void* Mark() { return &sim::matmul::kTypeMark<Matmul>; }
    void Configure(const tiling::TCubeTiling& cubeTiling, Location where) {
        Base::StartFrom(cubeTiling);
        engine_.Configure(Base::TilingWithOrder(), config.doNorm, where);
    }
    sim::matmul::Need Memory(Location where) const { return registered_ ? engine_.Memory(false, false, where) : sim::matmul::Need(); }
    // On the cube core.
    void Serve(const std::shared_ptr<void>& message, uint32_t from, TPipe& pipe) {
        Request& request = static_cast<Request&>(*static_cast<sim::matmul::MessageHead*>(message.get()));
        sim::Core& core = sim::Core::Current();
        if (request.command == Command::Configure) {
            Configure(request.tiling, request.where);
            sim::matmul::CubeMemory::Current().Reserve(pipe, Memory(request.where), request.where);
            return;
        }
        if (request.command != Command::Block || from != servedFor_ || request.product != served_)
            engine_.Begin(request.problem, request.where);
        servedFor_ = from, served_ = request.product;
        const int64_t elements = engine_.GetPlan().baseM * engine_.GetPlan().baseN;
        if (request.command == Command::All) engine_.All(request.target, elements, request.where);
        if (request.command == Command::Block) {
            engine_.Multiply(request.at, -1, false, request.where);
            engine_.Store(request.at, request.target, request.where);
        }
        for (int64_t at = 0; request.command == Command::Blocks && at < engine_.GetWalk().Count(); ++at) {
            engine_.Multiply(at, at + 1 < engine_.GetWalk().Count() ? at + 1 : -1, false, request.where);
            engine_.Store(at, {request.target.gm[uint64_t(at * elements)], true, 0}, request.where);
            core.SendToVector(from, message, sim::Pipe::FIX, request.where);
        }
        if (request.answer) core.SendToVector(from, message, sim::Pipe::FIX, request.where);
    }
    static void OnVector(const char* call, Location where) {
        if (sim::Core::Current().Kind() == sim::CoreKind::Cube)
            sim::matmul::Refuse(sim::Rule::PipeLegality, call, "", std::string(call) +
                                " on a cube core: vector cores call the object, REGIST_MATMUL_OBJ in the kernel's entry "
                                "serves them and returns from it (cube cores call it with ASCENDC_CUBE_ONLY)", where);
    }
    sim::matmul::Walk Walk() const { return sim::matmul::WalkOf(engine_.GetPlan(), problem_); }
    void HaveBlock(const char* call, Location where) const {
        if (at_ < 0) sim::matmul::Refuse(sim::Rule::Argument, call, "", std::string(call) + " without Iterate: there is no result", where);
    }
    void Begin(const char* call, Location where) {
        OnVector(call, where);
        Base::NeedRegistered(call, where);
        problem_.Prepare();
        throughUb_ = false;
        if (ubA_.Address() != sim::kNowhere) FromUb(call, problem_.a, ubA_, problem_.m, where);
        if (ubB_.Address() != sim::kNowhere) FromUb(call, problem_.b, ubB_, problem_.n, where);
        if (problem_.hasBias && ubBias_.Address() != sim::kNowhere) {
            problem_.bias = sim::matmul::InWorkspace(call, ubBias_, where);
            sim::matmul::ToWorkspace(problem_.bias, ubBias_, problem_.n * int64_t(sizeof(typename Numbers::Bias)), where);
            throughUb_ = true;
        }
        if (problem_.a.inL1 || problem_.b.inL1)
            sim::matmul::Refuse(sim::Rule::PipeLegality, call, "", "a matrix in L1 given by a vector core is not modelled", where);
        sim::matmul::CheckProblem(call, problem_, engine_.GetPlan().withBias, config.intrinsicsCheck, where);
        ++product_;
    }
    // A matrix in UB, without gaps: outer x k, or k x outer.
    template <typename T>
    void FromUb(const char* call, sim::matmul::Stored<T>& matrix, const LocalTensor<T>& ub, int64_t outer, Location where) {
        const int64_t k = problem_.k, rows = matrix.transposed ? k : outer, columns = matrix.transposed ? outer : k;
        const int64_t rowsThere = matrix.nz ? sim::matmul::AlignUp(rows, sim::cube::kRows) : rows;
        const int64_t columnsThere = matrix.nz ? sim::matmul::AlignUp(columns, sim::matmul::kC0<T>) : columns;
        const int64_t bytes = rowsThere * columnsThere * int64_t(sizeof(T));
        if (!matrix.nz && columns * int64_t(sizeof(T)) % sim::cube::kRow != 0)
            sim::matmul::Refuse(sim::Rule::Alignment, call, "", "a matrix in UB has rows of " +
                                std::to_string(columns * int64_t(sizeof(T))) + " bytes, they have to be multiples of 32", where);
        matrix.gm = sim::matmul::InWorkspace(call, ub, where);
        matrix.outer = outer, matrix.k = k;
        sim::matmul::ToWorkspace(matrix.gm, ub, bytes, where);
        throughUb_ = true;
    }
    std::shared_ptr<Request> NewRequest(Command command, Location where) const {
        auto request = std::make_shared<Request>();
        request->object = object_;
        request->type = Mark();
        request->command = command;
        request->problem = problem_;
        request->product = product_;
        request->at = at_;
        request->where = where;
        return request;
    }
    // It says what this core's scalar unit knows to be done, and the copies out of UB made for it.
    void Send(const std::shared_ptr<Request>& request, Location where) {
        const std::shared_ptr<sim::matmul::MessageHead> head = request;
        sim::Core::Current().SendToCube(head, throughUb_ ? sim::Pipe::MTE3 : sim::Pipe::S, where);
    }
    static void Await(sim::matmul::MessageHead& request, int answers, const char* call, Location where) {
        sim::matmul::Await(request, answers, call, where);
    }
    // m x n of a matrix in UB of `rows` x `pitch` elements.
    static Rows Shape(const char* call, int64_t m, int64_t n, int64_t rows, int64_t pitch, Location where) {
        constexpr int64_t kSize = sizeof(C), kWidth = Numbers::kByteC ? 2 * sim::cube::kRows : sim::cube::kRows;
        if constexpr (Numbers::kNzC)
            return {sim::cube::CeilDiv(n, kWidth), m * kWidth * kSize, sim::matmul::AlignUp(rows, sim::cube::kRows) * kWidth * kSize};
        if (pitch * kSize % sim::cube::kRow != 0)
            sim::matmul::Refuse(sim::Rule::Alignment, call, "", "C in UB has rows of " + std::to_string(pitch * kSize) +
                                " bytes, they have to be multiples of 32", where);
        if (n == pitch) return {1, m * n * kSize, m * n * kSize};
        return {m, n * kSize, pitch * kSize};
    }
    Rows BlockShape(const char* call, Location where) const {
        const sim::matmul::Plan<Numbers>& plan = engine_.GetPlan();
        const sim::matmul::Walk walk = Walk();
        const int64_t m = std::min(plan.baseM, problem_.m - walk.M(at_) * plan.baseM);
        const int64_t n = std::min(plan.baseN, problem_.n - walk.N(at_) * plan.baseN);
        return Shape(call, m, n, plan.baseM, plan.baseN, where);
    }
    // Orders the copy behind what the vector unit has done or waited for in this buffer, and the vector unit behind the copy.
    static void FromWorkspace(const LocalTensor<C>& ub, const GlobalTensor<C>& gm, const Rows& rows, Location where) {
        TPipe& pipe = *GetTPipePtr(where);
        sim::matmul::Order(HardEvent::V_MTE2, pipe.FetchEventID(HardEvent::V_MTE2, where), where);
        sim::matmul::FromGm(ub, gm, rows, where);
        sim::matmul::Order(HardEvent::MTE2_V, pipe.FetchEventID(HardEvent::MTE2_V, where), where);
        // The next request lets the cube core overwrite what has been copied.
        sim::matmul::Order(HardEvent::MTE2_S, pipe.FetchEventID(HardEvent::MTE2_S, where), where);
    }
    void StartAhead(Location where) {
        if (!hasWorkspace_)
            sim::matmul::Refuse(sim::Rule::Argument, "Iterate", "",
                                "Iterate<false> without SetWorkspace: the results have no place", where);
        auto request = NewRequest(Command::Blocks, where);
        request->target = {workspace_, true, 0};
        Send(request, where);
        pending_ = request;
    }
    void FetchAhead(const LocalTensor<C>& ub, uint8_t enAtomic, Location where) {
        HaveBlock("GetTensorC", where);
        if (enAtomic != 0) sim::matmul::Refuse(sim::Rule::Argument, "GetTensorC", "enAtomic", "UB takes no atomic writes", where);
        Await(*pending_, ++fetched_, "GetTensorC", where);
        const sim::matmul::Plan<Numbers>& plan = engine_.GetPlan();
        FromWorkspace(ub, workspace_[uint64_t(at_ * plan.baseM * plan.baseN)], BlockShape("GetTensorC", where), where);
    }

    sim::matmul::Engine<Numbers> engine_;
    std::shared_ptr<Request> pending_;
    GlobalTensor<C> workspace_;
    bool hasWorkspace_ = false, throughUb_ = false, ahead_ = false;
    int object_ = 0, fetched_ = 0;
    int64_t product_ = 0, served_ = -1;
    uint32_t servedFor_ = 0;
};

}  // namespace AscendC
