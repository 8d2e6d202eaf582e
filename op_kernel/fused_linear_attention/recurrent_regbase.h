// The recurrent kernel on the 950: one vector function per token and 128 columns of the state.
#pragma once

#include "recurrent_prepare.h"
#include "state_regbase.h"

namespace hc {

template <typename T, typename G>
class RecurrentRegbase : public RecurrentPrepare<RecurrentRegbase<T, G>, T, G> {
    using Prepare = RecurrentPrepare<RecurrentRegbase<T, G>, T, G>;
    using Rows = RecurrentRows<RecurrentRegbase<T, G>, T, G>;
    friend Prepare;
    friend Rows;
    using Prepare::betas_;
    using Prepare::decayedKeys_;
    using Prepare::decays_;
    using Prepare::gates_;
    using Prepare::keys_;
    using Prepare::products_;
    using Prepare::values_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::ub_;

    __aicore__ inline void InitState(uint32_t) {}

    __aicore__ inline void Recur(const Step& step, uint32_t rowPitch) {
        const AscendC::LocalTensor<float> state = Rows::StateTile(Rows::pieces_);
        if (step.firstOfPiece) Rows::TakeState();
        const uint32_t pitch = AlignUp(step.columns, kBlockFloats);
        if (step.firstOfPiece && !Rows::ReadsState(step)) AscendC::Duplicate(state, 0.0f, static_cast<int32_t>(plan_.keyDim * pitch));
        if (step.tokens != 0) {
            const bool channels = plan_.perChannelGate != 0;
            AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
            __ubuf__ float *keys = Pointer(keys_), *reads = channels ? Pointer(decayedKeys_) : keys;
            for (uint32_t t = 0; t < step.tokens; ++t) {
                const uint32_t q = 2 * t * ub_.keyPitch, k = q + ub_.keyPitch;
                const TokenOperands token{Pointer(state), keys + k, reads + q, reads + k, Pointer(values_) + t * rowPitch,
                                          channels ? Pointer(gates_) + t * ub_.gatePitch : Pointer(decays_) + t, Pointer(betas_) + t,
                                          Pointer(products_) + t, plan_.keyDim, pitch, step.columns};
                if (channels) TokenOnState<T, true>(token, Pointer(out) + t * rowPitch);
                else TokenOnState<T, false>(token, Pointer(out) + t * rowPitch);
            }
            outQue_.EnQue(out);
        }
        if (step.lastOfPiece) Rows::GiveState();
    }
};

}  // namespace hc
