// One token of softmax attention with its memory, float32 inside: k is rounded when it is stored, the result once at the end.
#pragma once

#include "inverse_rms.h"
#include "workspace.h"

namespace custom_ops::native::KERNEL_ISA {

template <typename T>
class AttentionStepHead {
public:
    AttentionStepHead(const AttentionStepArgs& args, int64_t row, int64_t kvHead) : args_(args), row_(row), kvHead_(kvHead) {
        const int64_t memory = (row * args.kvHeads + kvHead) * args.capacity * args.dim;
        keys_ = static_cast<T*>(args.keys) + memory;
        values_ = static_cast<T*>(args.values) + memory;
        slots_ = args.slot + 1 - args.first;
        Workspace& workspace = ThreadWorkspace();
        const int64_t padded = args.dim + kLanes, scores = slots_ + kLanes;
        workspace.Begin(2 * Workspace::Bytes<float>(padded) + Workspace::Bytes<float>(scores));
        head_ = workspace.Take<float>(padded);
        turned_ = workspace.Take<float>(padded);
        scores_ = workspace.Take<float>(scores);
    }

    void Run() {
        const int64_t dim = args_.dim, group = args_.heads / args_.kvHeads, place = (row_ * args_.kvHeads + kvHead_) * dim;
        Prepare(static_cast<const T*>(args_.k) + place, args_.kNorm);
        StoreRow(turned_, keys_ + args_.slot * dim);
        std::memcpy(static_cast<void*>(values_ + args_.slot * dim), static_cast<const T*>(args_.v) + place, dim * sizeof(T));
        for (int64_t i = 0; i < group; ++i) Query(row_ * args_.heads + kvHead_ * group + i);
    }

private:
    int64_t Count(int64_t from, int64_t end) const { return end - from < kLanes ? end - from : kLanes; }

    // turned_ = rotation of the normed head, zeros up to a whole vector behind it.
    void Prepare(const T* from, const float* norm) {
        const int64_t dim = args_.dim;
        const float inverse = norm ? InverseRms(from, dim, args_.epsilon) : 1.0f;
        for (int64_t i = 0; i < dim; i += kLanes) {
            const int64_t count = Count(i, dim);
            const Float value = LoadFirst(from + i, count);
            Store(head_ + i, norm ? value * inverse * LoadFirst(norm + i, count) : value);
        }
        const T *cosines = static_cast<const T*>(args_.cosines), *sines = static_cast<const T*>(args_.sines);
        std::memset(turned_, 0, (dim + kLanes) * sizeof(float));
        std::memcpy(turned_, head_, dim * sizeof(float));
        const int64_t step = args_.interleaved ? 2 : 1, apart = args_.interleaved ? 1 : args_.pairs;
        for (int64_t i = 0; i < args_.pairs; ++i) {
            const float cosine = ToFloat(cosines[i]), sine = ToFloat(sines[i]), a = head_[i * step], b = head_[i * step + apart];
            turned_[i * step] = a * cosine - b * sine;
            turned_[i * step + apart] = b * cosine + a * sine;
        }
    }

    void StoreRow(const float* from, T* to) const {
        for (int64_t i = 0; i < args_.dim; i += kLanes) StoreFirst(to + i, Load(from + i), Count(i, args_.dim));
    }

    void Query(int64_t head) {
        const int64_t dim = args_.dim;
        const T* from = static_cast<const T*>(args_.q) + head * dim * (args_.outputGate ? 2 : 1);
        Prepare(from, args_.qNorm);
        for (int64_t s = 0; s < slots_; ++s) scores_[s] = Score(keys_ + (args_.first + s) * dim) * args_.scale;
        const float total = Softmax();
        for (int64_t i = 0; i < dim; i += kLanes) {
            const int64_t count = Count(i, dim);
            Float out = WeightedSum(i, count) / total;
            if (args_.outputGate) out *= Sigmoid(LoadFirst(from + dim + i, count));
            StoreFirst(static_cast<T*>(args_.out) + head * dim + i, out, count);
        }
    }

    float Score(const T* key) const {
        Float sum = {};
        for (int64_t i = 0; i < args_.dim; i += kLanes) sum = MulAdd(Load(turned_ + i), LoadFirst(key + i, Count(i, args_.dim)), sum);
        return Sum(sum);
    }

    // scores_ = exp(scores - their largest); their sum.
    float Softmax() {
        float most = scores_[0];
        for (int64_t s = 1; s < slots_; ++s) most = scores_[s] > most ? scores_[s] : most;
        Float total = {};
        for (int64_t s = 0; s < slots_; s += kLanes) {
            const int64_t count = Count(s, slots_);
            const Float weight = Exp(LoadFirst(scores_ + s, count) - most);
            StoreFirst(scores_ + s, weight, count);
            total += LoadFirst(scores_ + s, count);
        }
        return Sum(total);
    }

    Float WeightedSum(int64_t column, int64_t count) const {
        Float sum[4] = {};  // as many chains as an addition takes cycles
        const T* value = values_ + args_.first * args_.dim + column;
        int64_t s = 0;
        for (; s + 4 <= slots_; s += 4)
            for (int i = 0; i < 4; ++i) sum[i] = MulAdd(Splat(scores_[s + i]), LoadFirst(value + (s + i) * args_.dim, count), sum[i]);
        for (; s < slots_; ++s) sum[0] = MulAdd(Splat(scores_[s]), LoadFirst(value + s * args_.dim, count), sum[0]);
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    const AttentionStepArgs& args_;
    const int64_t row_, kvHead_;
    T *keys_, *values_;
    int64_t slots_;
    float *head_, *turned_, *scores_;
};

void AttentionStep(const AttentionStepArgs& args, int64_t task) {
    const int64_t row = task / args.kvHeads, kvHead = task % args.kvHeads;
    WithElement(args.element, [&](auto element) { AttentionStepHead<decltype(element)>(args, row, kvHead).Run(); });
}

}  // namespace custom_ops::native::KERNEL_ISA
