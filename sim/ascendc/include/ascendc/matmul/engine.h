// A product on the cube core: base matrix by base matrix, by the instructions of cube_*.h.
#pragma once

#include "ascendc/matmul/operand.h"

namespace sim::matmul {

// Bias in L1 -> BT, where it has the type of the sums.
template <typename Out, typename In>
void BiasToTable(const LocalTensor<Out>& table, const LocalTensor<In>& l1, int64_t count, Location where) {
    if constexpr (std::is_same_v<Out, In>) {
        DataCopy(table, l1, count, where);
    } else {
        Instruction instruction{"DataCopy", Pipe::MTE1, Cost::L1ToTable, uint64_t(count) * sizeof(Out), where, {}, "bias to float"};
        if (Core::Current().OperandsNeeded())
            instruction.operands = {table.AsOperand("dst", Access::Write, {table.Address(), uint64_t(count) * sizeof(Out)}, 64),
                                    l1.AsOperand("src", Access::Read, {l1.Address(), uint64_t(count) * sizeof(In)})};
        Out* to = table.Host();
        const In* from = l1.Host();
        Core::Current().Issue(instruction, [=] {
            for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(vec::Widen(from[i]));
        });
    }
}

// Where a base matrix of C goes.
template <typename C>
struct Target {
    GlobalTensor<C> gm;
    bool sequential = false;   // one base matrix after the other, else each at its place in C
    int atomic = 0;            // 1 add, 2 max, 3 min
};
template <typename C>
Target<C> TargetOf(const char* call, const GlobalTensor<C>& gm, bool sequential, uint8_t atomic, Location where) {
    if (atomic > 3)
        Refuse(Rule::Argument, call, "enAtomic", "enAtomic is " + std::to_string(atomic) +
               ", it must be 0 (C is overwritten), 1 (added to), 2 (maximum) or 3 (minimum)", where);
    return {gm, sequential, atomic};
}

template <typename T>
class Engine {
public:
    using A = typename T::A;
    using C = typename T::C;

    // `basePieces`: copies GM -> L1 of one base matrix each.
    void Configure(const TCubeTiling& tiling, bool basePieces, Location where) {
        plan_ = PlanOf<T>(tiling, where);
        basePieces_ = basePieces;
    }
    const Plan<T>& GetPlan() const { return plan_; }
    Need Memory(bool aInL1, bool bInL1, Location where) const {
        CheckMemory(plan_, aInL1, bInL1, where);
        return plan_.Memory(aInL1, bInL1);
    }

    // A new product: nothing of it is in L1.
    void Begin(const Problem<T>& problem, Location where) {
        problem_ = problem;
        walk_ = WalkOf(plan_, problem);
        Claim(where);
    }
    // The memories are this product's: everything that was in them is forgotten once it has been used.
    void Claim(Location where) {
        CubeMemory& memory = CubeMemory::Current();
        owner_ = memory.owner = memory.owner + 1;
        memory.Drain(where);
        Order(HardEvent::MTE1_MTE2, memory.l1Freed, where);
        const Problem<T>& problem = problem_;
        const int64_t bytesA = plan_.PieceA(), bytesB = plan_.PieceB(), addressB = problem.a.inL1 ? 0 : plan_.buffersA * bytesA;
        biasAddress_ = addressB + (problem.b.inL1 ? 0 : plan_.buffersB * bytesB);
        a_.Start(problem.a, true, problem.m, problem.k, plan_.baseM, plan_.baseK, plan_.stepM, plan_.stepKa, 0, bytesA, plan_.buffersA,
                 basePieces_);
        b_.Start(problem.b, false, problem.n, problem.k, plan_.baseN, plan_.baseK, plan_.stepN, plan_.stepKb, addressB, bytesB,
                 plan_.buffersB, basePieces_);
        biasBlock_ = -1;
    }
    const Walk& GetWalk() const { return walk_; }

    // Base matrix `at` of the walk into L0C; `next` follows, -1: none does.
    void Multiply(int64_t at, int64_t next, bool accumulate, Location where) {
        Core& core = Core::Current();
        const bool hf32 = core.hf32, truncates = core.hf32Truncates;
        core.hf32 = problem_.hf32, core.hf32Truncates = problem_.hf32Truncates;
        CubeMemory& memory = CubeMemory::Current();
        if (memory.owner != owner_) Claim(where);
        const int64_t mBlock = walk_.M(at), nBlock = walk_.N(at), kBlocks = CeilDiv(problem_.k, plan_.baseK);
        if (!accumulate) l0c_ = (l0c_ + 1) % int(plan_.buffersL0C);
        memory.l0cFree[l0c_].Pass(where);
        for (int64_t kBlock = 0; kBlock < kBlocks; ++kBlock) {
            a_.Have(mBlock, kBlock, where);
            b_.Have(nBlock, kBlock, where);
            FetchAhead(mBlock, nBlock, kBlock, kBlocks, next, where);
            const int slot = memory.nextL0;
            memory.nextL0 = (slot + 1) % int(plan_.buffersL0);
            memory.l0Free[slot].Pass(where);
            const LocalTensor<A> l0a = memory.l0a.template At<A>(slot * plan_.TileA(), plan_.TileA());
            const LocalTensor<A> l0b = memory.l0b.template At<A>(slot * plan_.TileB(), plan_.TileB());
            a_.ToL0(l0a, mBlock, kBlock, where);
            b_.ToL0(l0b, nBlock, kBlock, where);
            const bool first = kBlock == 0 && !accumulate, withBias = first && problem_.hasBias;
            if (withBias) LoadBias(nBlock, where);
            Order(HardEvent::MTE1_M, memory.l0Filled[slot], where);
            Mmad(l0a, l0b, mBlock, nBlock, kBlock, first, withBias, where);
            memory.l0Free[slot].Open(HardEvent::M_MTE1, memory.l0Freed[slot], where);
            if (withBias) memory.tableFree.Open(HardEvent::M_MTE1, memory.tableFreed, where);
        }
        core.hf32 = hf32, core.hf32Truncates = truncates;
    }
    // The base matrix in L0C goes out.
    void Store(int64_t at, const Target<C>& target, Location where) {
        CubeMemory& memory = CubeMemory::Current();
        if (memory.owner != owner_)
            Refuse(Rule::Argument, "GetTensorC", "", "another object has used L0C since this one's Iterate: its result is lost", where);
        Order(HardEvent::M_FIX, memory.l0cFilled[l0c_], where);
        const Range m = a_.Outer(walk_.M(at)), n = b_.Outer(walk_.N(at));
        AscendC::FixpipeParamsV220 p(n.size, m.size, matmul::AlignUp(m.size, kRows), 0, false);
        p.quantPre = T::kQuant;
        p.deqScalar = problem_.scale;
        constexpr int64_t kWidth = T::kByteC ? 2 * kRows : kRows;   // of a column of NZ
        int64_t offset = 0;
        if constexpr (T::kNzC) {
            const int64_t rows = matmul::AlignUp(target.sequential ? plan_.baseM : problem_.orgM, kRows);
            p.dstStride = rows * kWidth * int64_t(sizeof(C)) / kRow;
            offset = target.sequential ? 0 : n.start / kWidth * rows * kWidth + m.start * kWidth;
        } else {
            p.dstStride = target.sequential ? plan_.baseN : problem_.PitchOfC();
            offset = target.sequential ? 0 : m.start * p.dstStride + n.start;
            const int64_t need = offset + Extent(m.size, n.size, p.dstStride), have = int64_t(target.gm.GetSize());
            if (have != 0 && need > have)
                Refuse(Rule::OutOfRange, "GetTensorC", "C", "C is written as " + std::to_string(m.size) + " x " + std::to_string(n.size) +
                       " from element " + std::to_string(offset) + " on with " + std::to_string(p.dstStride) +
                       " elements from row to row: " + std::to_string(need) + " elements from the address given, its GlobalTensor has " +
                       std::to_string(have), where);
        }
        Core& core = Core::Current();
        const int mode = core.atomicMode, type = core.atomicType;
        if (target.atomic != 0) core.atomicMode = target.atomic, core.atomicType = kDtype<C>;
        cube::Issue<C, typename T::L0C>(target.gm[uint64_t(offset)], L0c(), p,
                                        T::kNzC ? AscendC::CO2Layout::NZ : AscendC::CO2Layout::ROW_MAJOR, false, where);
        core.atomicMode = mode, core.atomicType = type;
        memory.l0cFree[l0c_].Open(HardEvent::FIX_M, memory.l0cFreed[l0c_], where);
    }
    void All(const Target<C>& target, int64_t blockElements, Location where) {
        for (int64_t at = 0; at < walk_.Count(); ++at) {
            Multiply(at, at + 1 < walk_.Count() ? at + 1 : -1, false, where);
            Target<C> place = target;
            if (target.sequential) place.gm = target.gm[uint64_t(at * blockElements)];
            Store(at, place, where);
        }
    }

private:
    LocalTensor<typename T::L0C> L0c() const {
        return CubeMemory::Current().l0c.template At<typename T::L0C>(l0c_ * plan_.TileC(), plan_.TileC());
    }
    // Copies of the piece that comes after the current one, of each operand. Only when the current piece is used first: MTE1 is then
    // done with the one before.
    void FetchAhead(int64_t mBlock, int64_t nBlock, int64_t kBlock, int64_t kBlocks, int64_t next, Location where) {
        const auto ahead = [&](auto& operand, int64_t outer, int64_t nextOuter, int64_t step) {
            if (kBlock % step != 0) return;
            const int64_t following = (kBlock / step + 1) * step;
            if (following < kBlocks) operand.Prefetch(outer, following, where);
            else if (next >= 0 && !operand.SamePiece(outer, kBlock, nextOuter, 0)) operand.Prefetch(nextOuter, 0, where);
        };
        const int64_t nextAt = next >= 0 ? next : 0;
        ahead(a_, mBlock, walk_.M(nextAt), plan_.stepKa);
        ahead(b_, nBlock, walk_.N(nextAt), plan_.stepKb);
    }
    void LoadBias(int64_t nBlock, Location where) {
        using Bias = typename T::Bias;
        CubeMemory& memory = CubeMemory::Current();
        const Range n = b_.Outer(nBlock);
        const LocalTensor<Bias> l1 = memory.l1.template At<Bias>(biasAddress_, plan_.BiasBytes());
        constexpr int64_t kBlock = kRow / int64_t(sizeof(Bias));
        const int64_t count = matmul::AlignUp(n.size, kBlock);
        if (biasBlock_ != nBlock) {   // a row of blocks, the last filled up with zeros
            Order(HardEvent::MTE1_MTE2, memory.l1Freed, where);
            DataCopy(l1, problem_.bias[uint64_t(n.start)], AscendC::Nd2NzParams(1, 1, n.size, 0, n.size, 1, 1, 0), where);
            Order(HardEvent::MTE2_MTE1, memory.l1Filled[2 * kBuffers], where);
            biasBlock_ = nBlock;
        }
        memory.tableFree.Pass(where);
        BiasToTable(Table(), l1, count, where);
    }
    LocalTensor<typename T::L0C> Table() const { return CubeMemory::Current().table.template At<typename T::L0C>(0, plan_.TableBytes()); }
    void Mmad(const LocalTensor<A>& l0a, const LocalTensor<A>& l0b, int64_t mBlock, int64_t nBlock, int64_t kBlock, bool first,
              bool withBias, Location where) {
        AscendC::MmadParams p;
        p.m = a_.Outer(mBlock).size, p.n = b_.Outer(nBlock).size, p.k = a_.K(kBlock).size;
        // One row is a vector to Mmad unless told otherwise; elsewhere the rows that fill up its fractal take part.
        p.disableGemv = true;
        if (p.m == 1 && Core::Current().Soc().npuArch == 2201 && !a_.IsVector(mBlock)) p.m = a_.Squares() ? kC0<A> : kRows;
        p.kDirectionAlign = a_.Squares();
        p.cmatrixInitVal = first && !withBias;
        p.cmatrixSource = withBias;
        constexpr int64_t kOrdered = 10;   // fractals from which on consecutive ones need no barrier (facts 7.2)
        if (!first && CeilDiv(p.m, kRows) * CeilDiv(p.n, kRows) < kOrdered) AscendC::PipeBarrier<PIPE_M>(where);
        if (withBias) AscendC::Mmad(L0c(), l0a, l0b, Table(), p, where);
        else AscendC::Mmad(L0c(), l0a, l0b, p, where);
    }

    Plan<T> plan_;
    Problem<T> problem_;
    OperandPieces<A> a_, b_;
    Walk walk_;
    bool basePieces_ = false;
    int l0c_ = 0;
    int64_t biasAddress_ = 0, biasBlock_ = -1, owner_ = 0;
};

}  // namespace sim::matmul
