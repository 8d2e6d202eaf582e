#pragma once

namespace sim {

class Core;

// Makes a core the current one of this host thread while it lives.
class CurrentCore {
public:
    explicit CurrentCore(Core* core);
    ~CurrentCore();
    CurrentCore(const CurrentCore&) = delete;
    CurrentCore& operator=(const CurrentCore&) = delete;

private:
    Core* previous_;
};

}  // namespace sim
