#include "sim/core/pending.h"

#include <algorithm>
#include <utility>

namespace sim {

uint64_t Pending::Random() {   // xorshift64
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

void Pending::Add(InstructionId id, const Clock& before, const char* name, Location where, std::unique_ptr<DeferredBody> body) {
    queues_[int(PipeOf(id))].entries.push_back({id, before, name, where, std::move(body)});
    if (++held_ >= kMost) RunAll();
}

void Pending::RunKnown(const Clock& view) {
    if (held_ > 0) RunNewestFirst(view, !newestOnly_);
    if (held_ == 0) Drop();
}

void Pending::RunAll() {
    Clock everything;
    for (InstructionId& id : everything.known) id = ~InstructionId(0);
    RunKnown(everything);
}

void Pending::Drop() {
    for (Queue& queue : queues_) {
        queue.entries.clear();
        queue.first = 0;
    }
    held_ = 0;
}

// `end[p]` is one past the newest candidate of pipe p. Newest first is the order least like the program's.
void Pending::RunNewestFirst(const Clock& view, bool vary) {
    size_t end[kPipes];
    for (int p = 0; p < kPipes; ++p) {
        const auto& entries = queues_[p].entries;
        const auto known = [&](const Entry& entry) { return view.Knows(entry.id); };
        end[p] = size_t(std::partition_point(entries.begin() + long(queues_[p].first), entries.end(), known) - entries.begin());
    }
    for (;;) {
        int newest = -1;
        for (int p = 0; p < kPipes; ++p) {
            Queue& queue = queues_[p];
            while (end[p] > queue.first && !queue.entries[end[p] - 1].body) --end[p];
            if (end[p] <= queue.first) continue;
            if (newest < 0 || queue.entries[end[p] - 1].id > queues_[newest].entries[end[newest] - 1].id) newest = p;
        }
        if (newest < 0) return;
        Queue& queue = queues_[newest];
        size_t index = end[newest] - 1;
        if (vary && Random() % 4 == 0) index = queue.first + Random() % (end[newest] - queue.first);
        Run(queue, index);
    }
}

void Pending::Run(Queue& queue, size_t index) {
    if (queue.entries[index].body) {
        RunNewestFirst(queue.entries[index].before, false);
        Entry& entry = queue.entries[index];
        const std::unique_ptr<DeferredBody> body = std::move(entry.body);
        runningName_ = entry.name;
        runningWhere_ = entry.where;
        body->Run();
        runningName_ = nullptr;
        --held_;
    }
    while (queue.first < queue.entries.size() && !queue.entries[queue.first].body) ++queue.first;
}

}  // namespace sim
