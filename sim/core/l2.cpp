#include "sim/core/l2.h"

#include <algorithm>

namespace sim {

L2::Line& L2::LineAt(uint64_t number) {
    if (number / kPageLines != lastNumber_) {
        std::unique_ptr<Page>& page = pages_[number / kPageLines];
        if (!page) page = std::make_unique<Page>();
        lastNumber_ = number / kPageLines;
        last_ = page.get();
    }
    return (*last_)[number % kPageLines];
}

uint64_t L2::Touch(const Region& region, uint16_t Line::*wanted) {
    uint64_t missed = 0;
    region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
        const uint64_t end = begin + bytes;
        for (uint64_t number = begin / kLine; number * kLine < end; ++number) {
            Line& line = LineAt(number);
            if (line.came == 0 || fills_ - line.came >= capacityLines_) line = {++fills_, uint32_t(ends_.size()), 0, 0};
            const uint64_t from = std::max(begin, number * kLine), to = std::min(end, (number + 1) * kLine);
            const uint64_t first = from % kLine / kSector, last = (to - 1) % kLine / kSector;
            const auto mask = uint16_t((uint32_t(2) << last) - (uint32_t(1) << first));
            if ((line.*wanted & mask) == 0) {
                missed += to - from;
            } else if ((line.*wanted & mask) != mask) {
                for (uint64_t sector = first; sector <= last; ++sector)
                    if (!(line.*wanted >> sector & 1))
                        missed += std::min(to, number * kLine + (sector + 1) * kSector) - std::max(from, number * kLine + sector * kSector);
            }
            if (line.transfer < ends_.size()) there_ = std::max(there_, ends_[line.transfer]);
            if ((line.*wanted & mask) != mask) line.transfer = uint32_t(ends_.size());
            line.valid |= mask;
            line.*wanted |= mask;
        }
    });
    return missed;
}

double Bandwidth::Take(double start, double bytes, double rate) {
    if (bytesPerCycle_ <= 0 || bytes <= 0) return start + std::max(bytes, 0.0) / rate;
    rate = std::min(rate, bytesPerCycle_);
    for (auto window = size_t(start / kWindow);; ++window) {
        while (left_.size() <= window) left_.push_back(bytesPerCycle_ * kWindow);
        const double end = double(window + 1) * kWindow, passes = std::min({bytes, left_[window], rate * (end - start)});
        left_[window] -= passes;
        bytes -= passes;
        if (bytes <= 0) return start + passes / rate;
        start = end;
    }
}

}  // namespace sim
