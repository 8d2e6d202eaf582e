// When everything happened: the logs of all cores of a launch played again, in the order of modelled time, with L2 and HBM between
// them. The result depends on the logs alone.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "sim/core/clocks.h"
#include "sim/core/gm.h"
#include "sim/core/l2.h"
#include "sim/core/layout.h"
#include "sim/core/soc.h"
#include "sim/core/time_log.h"

namespace sim {

class Replay {
public:
    struct Span { double start = 0, cycles = 0; };
    struct CoreTime {
        double end = 0;
        double busy[kPipes] = {};        // of transfers
        std::vector<Span> spans;         // by step, when asked for
    };

    // Blocks beyond `activeBlocks` start when an earlier one has ended. `spans`: keep when each step ran.
    Replay(const SocSpec& soc, const Layout& layout, const GmTensors& tensors, uint32_t activeBlocks, std::vector<TimeLog> logs,
           bool spans);
    void Run();
    const std::vector<CoreTime>& Times() const { return times_; }
    double End() const;                  // of the last core
    uint64_t HbmBytes() const { return hbmBytes_; }
    uint64_t L2Bytes() const { return l2Bytes_; }   // that HBM had no part in

private:
    struct Meeting { uint32_t here = 0; double time = 0; };
    struct Player {
        explicit Player(const SocSpec& soc) : clocks(soc) {}
        Clocks clocks;
        size_t next = 0;                 // step
        std::vector<double> events, sets;   // times of the flags of its pipes, and of those it set for other cores
        std::vector<uint32_t> waiters;   // cores that wait for one of its flags
        bool over = false;
    };
    using Due = std::pair<double, uint32_t>;   // start of a transfer, core

    void Start(uint32_t block, double time);
    void StartNext(double time);
    void Advance(uint32_t core);         // up to its next transfer, or whatever it waits for
    bool Pass(uint32_t core, const Step& step);
    bool Meet(uint32_t core, uint32_t scope);
    bool WaitCross(uint32_t core, const Step& step);
    void Move(uint32_t core);            // does the transfer it has come to
    double EndOfTransfer(const TimeLog& log, const Transfer& transfer, double start, bool onCube);
    void Leave(uint32_t core);
    double Rate(Cost cost) const;

    const SocSpec& soc_;
    const Layout layout_;
    const GmPlaces places_;
    const uint32_t activeBlocks_;
    const std::vector<TimeLog> logs_;
    const bool spans_;
    L2 l2_;
    Bandwidth hbm_, l2Bandwidth_;
    std::vector<Player> players_;
    std::vector<CoreTime> times_;
    std::vector<uint32_t> running_;      // cores of each block that have not ended
    uint32_t nextBlock_ = 0;
    Meeting meetings_[2];                // by scope: vector cores, all
    std::vector<uint32_t> ready_;        // cores that may advance
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> due_;
    uint64_t hbmBytes_ = 0, l2Bytes_ = 0;
};

}  // namespace sim
