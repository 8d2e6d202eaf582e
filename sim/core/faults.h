// Keeps a kernel's crash inside its core: signals raised by kernel code, abort() and std::terminate() end the guarded call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sim {

struct Fault {
    int signal = 0;             // 0: none; SIGABRT also stands for abort() and std::terminate()
    uint64_t address = 0;       // for SIGSEGV and SIGBUS
    bool terminated = false;    // std::terminate(): an exception left a noexcept function
    bool stackOverflow = false;
    const char* exitBy = nullptr;   // the kernel ended by this function, "exit" or one of its kind; signal is SIGABRT
    int exitStatus = 0;
    static constexpr int kFrames = 32;
    uint64_t instruction = 0;   // that faulted; 0 when unknown
    uint64_t frames[kFrames];   // code addresses on the stack, innermost first
    int frameCount = 0;
    std::string Describe() const;
    bool IsMemoryFault() const;     // else the kernel ended itself
};

// While any instance lives, the process handles the fault signals. Faults outside guarded calls go to the handlers that were
// there before, which come back when the last instance dies.
class FaultHandlers {
public:
    FaultHandlers();
    ~FaultHandlers();
    FaultHandlers(const FaultHandlers&) = delete;
    FaultHandlers& operator=(const FaultHandlers&) = delete;
};

// Signal stack of a thread that runs kernels: a stack overflow leaves no room on its own. Notes where that one ends.
class AlternateStack {
public:
    AlternateStack();
    ~AlternateStack();
    AlternateStack(const AlternateStack&) = delete;
    AlternateStack& operator=(const AlternateStack&) = delete;

private:
    std::unique_ptr<uint8_t[]> bytes_;
};

// Calls run(argument) and lets its exceptions pass. After a fault the frames in between are dropped without running their destructors.
Fault RunGuarded(void (*run)(void*), void* argument);

}  // namespace sim
