// gated_delta_rule and kda: a key head with its value heads, block of tokens after block of tokens. Of a block, first the convolution, the
// norm of q and k and the gates token by token, then the recurrence strip by strip (delta_strip.h).
#pragma once

#include <cmath>

#include "causal_conv_kernel.h"
#include "delta_strip.h"

namespace custom_ops::native::KERNEL_ISA {

static inline int64_t WholeVectors(int64_t elements) { return (elements + kLanes - 1) / kLanes * kLanes; }

template <typename T>
class DeltaRuleTask {
public:
    DeltaRuleTask(const DeltaRuleArgs& args, const Sequence& sequence, int64_t keyHead, int64_t firstStrip, int64_t lastStrip)
        : args_(args), sequence_(sequence), keyHead_(keyHead), firstStrip_(firstStrip), lastStrip_(lastStrip) {
        int64_t bytes = Workspace::Bytes<float>(blockTokens_ * actStride_) + 3 * Workspace::Bytes<float>(paddedTokens_) +
                        Workspace::Bytes<float>(StripFloats()) + Workspace::Bytes<T>(CopyElements());
        if (args.gatePerChannel) bytes += Workspace::Bytes<float>(blockTokens_ * 3 * keyPad_);
        Workspace& workspace = ThreadWorkspace();
        workspace.Begin(bytes);
        activations_ = workspace.Take<float>(blockTokens_ * actStride_);
        decay_ = workspace.Take<float>(paddedTokens_);
        beta_ = workspace.Take<float>(paddedTokens_);
        keyQuery_ = workspace.Take<float>(paddedTokens_);
        strips_ = workspace.Take<float>(StripFloats());
        copy_ = workspace.Take<T>(CopyElements());
        if (args.gatePerChannel) rowFactors_ = workspace.Take<float>(blockTokens_ * 3 * keyPad_);
    }

    void Run() {
        for (int64_t first = 0; first < sequence_.tokens; first += blockTokens_) {
            first_ = first;
            count_ = sequence_.tokens - first < blockTokens_ ? sequence_.tokens - first : blockTokens_;
            Activate();
            NormalizeKeys();
            for (int64_t head = firstStrip_ / stripsPerHead_; head * stripsPerHead_ < lastStrip_; ++head) RunHead(head);
        }
    }

private:
    static constexpr int64_t kStripColumns = kStripVectors * kLanes;
    static constexpr int64_t kMostTokens = 64;
    static constexpr int64_t kBlockFloats = 32 << 10;  // of activations: with the strips they stay in the second-level cache

    int64_t StripFloats() const { return (lastStrip_ - firstStrip_) * args_.keyDim * kStripColumns; }
    int64_t CopyElements() const {
        return native::KERNEL_ISA::CopyElements(args_.conv, blockTokens_, args_.keyDim > args_.valueDim ? args_.keyDim : args_.valueDim);
    }
    bool LastBlock() const { return first_ + count_ == sequence_.tokens; }

    // SiLU(conv(.)) of q, k and the columns of v: a row of activations per token, q | k | v of the value heads.
    void Activate() {
        const int64_t keys = args_.keyHeads * args_.keyDim;
        const bool window = LastBlock() && sequence_.window;
        Convolve(keyHead_ * args_.keyDim, args_.keyDim, activations_, window && firstStrip_ == 0);
        Convolve(keys + keyHead_ * args_.keyDim, args_.keyDim, activations_ + keyPad_, window && firstStrip_ == 0);
        for (int64_t head = firstHead_; head * stripsPerHead_ < lastStrip_; ++head) {
            const int64_t column = FirstStripOf(head) * kStripColumns;
            Convolve(2 * keys + (keyHead_ * headsPerKey_ + head) * args_.valueDim + column, EndColumnOf(head) - column,
                     activations_ + ValueOffset(head) + column, window);
        }
    }

    void Convolve(int64_t channel, int64_t channels, float* out, bool storesWindow) const {
        ConvSilu(args_.conv, sequence_, {first_, count_, channel, channels, out, actStride_, storesWindow}, copy_);
    }

    // The strips of a value head that this task has.
    int64_t FirstStripOf(int64_t head) const { return head == firstHead_ ? firstStrip_ - head * stripsPerHead_ : 0; }
    int64_t LastStripOf(int64_t head) const {
        const int64_t left = lastStrip_ - head * stripsPerHead_;
        return left < stripsPerHead_ ? left : stripsPerHead_;
    }
    int64_t EndColumnOf(int64_t head) const {
        const int64_t end = LastStripOf(head) * kStripColumns;
        return end < args_.valueDim ? end : args_.valueDim;
    }
    int64_t ValueOffset(int64_t head) const { return 2 * keyPad_ + (head - firstHead_) * valuePad_; }

    // q and k at length 1 (with useL2norm), q by dk^-0.5; and k . q.
    void NormalizeKeys() {
        const float scale = 1.0f / std::sqrt(static_cast<float>(args_.keyDim));
        for (int64_t token = 0; token < count_; ++token) {
            float *q = activations_ + token * actStride_, *k = q + keyPad_;
            float queryFactor = scale, keyFactor = 1;
            if (args_.useL2norm) {
                queryFactor = scale / std::sqrt(Dot(q, q) + 1e-6f);
                keyFactor = 1.0f / std::sqrt(Dot(k, k) + 1e-6f);
            }
            for (int64_t i = 0; i < keyPad_; i += kLanes) {
                Store(q + i, queryFactor * Load(q + i));
                Store(k + i, keyFactor * Load(k + i));
            }
            keyQuery_[token] = Dot(k, q);
        }
    }
    float Dot(const float* a, const float* b) const {
        Float sum = {};
        for (int64_t i = 0; i < keyPad_; i += kLanes) sum = MulAdd(Load(a + i), Load(b + i), sum);
        return Sum(sum);
    }

    void RunHead(int64_t head) {
        const int64_t valueHead = keyHead_ * headsPerKey_ + head;
        WithElement(args_.betaElement, [&](auto element) { LoadBeta<decltype(element)>(valueHead); });
        HeadBlock block{count_,     args_.keyDim, activations_ + keyPad_, actStride_, activations_ + keyPad_, activations_,
                        actStride_, nullptr,      decay_,                 beta_,      keyQuery_, actStride_};
        if (args_.gatePerChannel) {
            WithElement(args_.gateElement, [&](auto element) { LoadRowDecay<decltype(element)>(valueHead); });
            block.rowDecay = rowFactors_;
            block.readKey = rowFactors_ + keyPad_;
            block.readQuery = rowFactors_ + 2 * keyPad_;
            block.readStride = 3 * keyPad_;
        } else {
            WithElement(args_.gateElement, [&](auto element) { LoadDecay<decltype(element)>(valueHead); });
        }
        if (args_.gatePerChannel) RunStrips<true>(block, head, valueHead);
        else RunStrips<false>(block, head, valueHead);
        StoreResults(head, valueHead);
    }

    template <typename G>
    void Gather(const void* from, int64_t head, float* to) const {
        const G* first = static_cast<const G*>(from) + (sequence_.firstToken + first_) * args_.valueHeads + head;
        for (int64_t token = 0; token < count_; ++token) to[token] = ToFloat(first[token * args_.valueHeads]);
        for (int64_t token = count_; token < WholeVectors(count_); ++token) to[token] = 0;
    }

    template <typename G>
    void LoadBeta(int64_t head) {
        Gather<G>(args_.beta, head, beta_);
        if (args_.gateCoef)
            for (int64_t token = 0; token < count_; token += kLanes) Store(beta_ + token, Sigmoid(Load(beta_ + token)));
    }

    template <typename G>
    void LoadDecay(int64_t head) {
        Gather<G>(args_.gate, head, decay_);
        for (int64_t token = 0; token < count_; token += kLanes) {
            Float gate = Load(decay_ + token);
            if (args_.gateCoef) gate = args_.gateCoef[head] * Softplus(gate + args_.gateBias[head]);
            Store(decay_ + token, Exp(gate));
        }
    }

    // Rows of decay | decay * k | decay * q.
    template <typename G>
    void LoadRowDecay(int64_t head) {
        const int64_t dim = args_.keyDim;
        for (int64_t token = 0; token < count_; ++token) {
            const G* gates = static_cast<const G*>(args_.gate) + ((sequence_.firstToken + first_ + token) * args_.valueHeads + head) * dim;
            const float *q = activations_ + token * actStride_, *k = q + keyPad_;
            float* rows = rowFactors_ + token * 3 * keyPad_;
            for (int64_t i = 0; i < dim; i += kLanes) {
                const int64_t count = dim - i < kLanes ? dim - i : kLanes;
                Float gate = LoadFirst(gates + i, count);
                if (args_.gateCoef) gate = args_.gateCoef[head] * Softplus(gate + LoadFirst(args_.gateBias + head * dim + i, count));
                const Float decay = Exp(gate);
                Store(rows + i, decay);
                Store(rows + keyPad_ + i, decay * Load(k + i));
                Store(rows + 2 * keyPad_ + i, decay * Load(q + i));
            }
            decay_[token] = 1;
        }
    }

    template <bool kRowDecay>
    void RunStrips(const HeadBlock& block, int64_t head, int64_t valueHead) const {
        const int64_t end = EndColumnOf(head), place = valueHead * args_.keyDim * args_.valueDim;
        const float* before = sequence_.stateBefore ? sequence_.stateBefore + place : nullptr;
        float* after = sequence_.state ? sequence_.state + place : nullptr;
        float* values = activations_ + ValueOffset(head);
        int64_t column = FirstStripOf(head) * kStripColumns;
        // A row of S whose key element stays 0 only decays; as a subnormal number it would stay for ever (0.6 ulp rounds to 1).
        const FlushSubnormals flush;
        if (sequence_.tokens == 1) Step<kRowDecay, kStepVectors>(block, values, before, after, end, column);
        while (column < end) {
            float* rows = strips_ + (head * stripsPerHead_ * kStripColumns + column - firstStrip_ * kStripColumns) * args_.keyDim;
            Strip<kRowDecay, kStripVectors>(block, values, before, after, end, rows, column);
        }
    }

    // One token: as many whole vectors of columns as there are, most of them kVectors at a time.
    template <bool kRowDecay, int kVectors>
    void Step(const HeadBlock& block, float* values, const float* before, float* after, int64_t end, int64_t& column) const {
        for (; column + kVectors * kLanes <= end; column += kVectors * kLanes)
            StepColumns<kVectors, kRowDecay>(block, values + column, before ? before + column : nullptr, after ? after + column : nullptr,
                                             args_.valueDim);
        if constexpr (kVectors > 1) Step<kRowDecay, kVectors / 2>(block, values, before, after, end, column);
    }

    // The columns from `column` on, up to kVectors vectors of them, in rows of their own for all the tokens.
    template <bool kRowDecay, int kVectors>
    void Strip(const HeadBlock& block, float* values, const float* before, float* after, int64_t end, float* rows, int64_t& column) const {
        if constexpr (kVectors > 1)
            if (end - column <= (kVectors - 1) * kLanes)
                return Strip<kRowDecay, kVectors - 1>(block, values, before, after, end, rows, column);
        const int64_t dv = args_.valueDim, count = end - column < kVectors * kLanes ? end - column : kVectors * kLanes;
        if (first_ == 0) LoadStrip<kVectors>(before ? before + column : nullptr, count, rows);
        RunStrip<kVectors, kRowDecay>(block, values + column, rows);
        if (after && LastBlock())
            for (int64_t i = 0; i < args_.keyDim; ++i)
                std::memcpy(after + column + i * dv, rows + i * kVectors * kLanes, count * sizeof(float));
        column += count;
    }

    // The results, which stand in the place of the values, in the type of the output.
    void StoreResults(int64_t head, int64_t valueHead) const {
        const int64_t dv = args_.valueDim, end = EndColumnOf(head);
        const int64_t row = sequence_.firstToken + first_;
        for (int64_t token = 0; token < count_; ++token) {
            const float* from = activations_ + token * actStride_ + ValueOffset(head);
            T* to = static_cast<T*>(args_.conv.out) + ((row + token) * args_.valueHeads + valueHead) * dv;
            for (int64_t i = FirstStripOf(head) * kStripColumns; i < end; i += kLanes)
                StoreFirst(to + i, Load(from + i), end - i < kLanes ? end - i : kLanes);
        }
    }

    template <int kVectors>
    void LoadStrip(const float* before, int64_t count, float* rows) const {
        if (!before || count < kVectors * kLanes) std::memset(rows, 0, args_.keyDim * kVectors * kLanes * sizeof(float));
        if (!before) return;
        for (int64_t i = 0; i < args_.keyDim; ++i)
            std::memcpy(rows + i * kVectors * kLanes, before + i * args_.valueDim, count * sizeof(float));
    }

    const DeltaRuleArgs& args_;
    const Sequence& sequence_;
    const int64_t keyHead_, firstStrip_, lastStrip_;
    const int64_t headsPerKey_ = args_.valueHeads / args_.keyHeads;
    const int64_t stripsPerHead_ = (args_.valueDim + kStripColumns - 1) / kStripColumns;
    const int64_t firstHead_ = firstStrip_ / stripsPerHead_;  // of those of the key head
    const int64_t keyPad_ = WholeVectors(args_.keyDim), valuePad_ = WholeVectors(args_.valueDim);
    const int64_t actStride_ = 2 * keyPad_ + ((lastStrip_ - 1) / stripsPerHead_ - firstHead_ + 1) * valuePad_;
    const int64_t fittingTokens_ = kBlockFloats / actStride_ < 8 ? 8 : kBlockFloats / actStride_;
    const int64_t mostTokens_ = fittingTokens_ < kMostTokens ? fittingTokens_ : kMostTokens;
    const int64_t blockTokens_ = sequence_.tokens < mostTokens_ ? sequence_.tokens : mostTokens_;
    const int64_t paddedTokens_ = WholeVectors(blockTokens_);

    int64_t first_ = 0, count_ = 0;  // tokens of the block
    float *activations_, *decay_, *beta_, *keyQuery_, *strips_, *rowFactors_ = nullptr;
    T* copy_;
};

void DeltaRule(const DeltaRuleArgs& args, const Sequence& sequence, int64_t keyHead, int64_t firstStrip, int64_t lastStrip) {
    WithElement(args.conv.element,
                [&](auto element) { DeltaRuleTask<decltype(element)>(args, sequence, keyHead, firstStrip, lastStrip).Run(); });
}

}  // namespace custom_ops::native::KERNEL_ISA
