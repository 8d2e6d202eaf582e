#include "sim/core/faults.h"

#include <execinfo.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <exception>
#include <mutex>

namespace sim {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kStackBytes = 64 * 1024;

struct Guard {
    sigjmp_buf jump;
    Fault fault;
    bool walking = false;   // the stack is being read, which faults when it is damaged
};
thread_local Guard* currentGuard = nullptr;

struct Installed {
    std::mutex mutex;
    int users = 0;
    struct sigaction previous[sizeof kSignals / sizeof *kSignals];
    std::terminate_handler previousTerminate = nullptr;
};
Installed& TheInstalled() {
    static Installed* installed = new Installed;
    return *installed;
}

[[noreturn]] void Leave(const Fault& fault) {
    Guard* guard = currentGuard;
    if (!guard->walking) {
        guard->walking = true;
        guard->fault = fault;
        void* frames[Fault::kFrames];
        const int count = backtrace(frames, Fault::kFrames);
        for (int i = 0; i < count; ++i) guard->fault.frames[i] = uint64_t(reinterpret_cast<uintptr_t>(frames[i]));
        guard->fault.frameCount = count;
    }
    currentGuard = nullptr;
    siglongjmp(guard->jump, 1);
}

uint64_t FaultingInstruction(const void* context) {
#if defined(__x86_64__)
    return uint64_t(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return uint64_t(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
    (void)context;
    return 0;
#endif
}

void Chain(int signal, siginfo_t* info, void* context) {
    for (size_t i = 0; i < sizeof kSignals / sizeof *kSignals; ++i) {
        if (kSignals[i] != signal) continue;
        const struct sigaction& previous = TheInstalled().previous[i];
        if (previous.sa_flags & SA_SIGINFO) {
            previous.sa_sigaction(signal, info, context);
        } else if (previous.sa_handler == SIG_DFL) {
            sigaction(signal, &previous, nullptr);   // the instruction faults again and the default action is taken
            if (info->si_code <= 0) raise(signal);   // sent, not raised by an instruction
        } else if (previous.sa_handler != SIG_IGN) {
            previous.sa_handler(signal);
        }
    }
}

void OnSignal(int signal, siginfo_t* info, void* context) {
    if (currentGuard == nullptr) {
        Chain(signal, info, context);
        return;
    }
    Fault fault;
    fault.signal = signal;
    fault.instruction = FaultingInstruction(context);
    if (signal == SIGSEGV || signal == SIGBUS) fault.address = uint64_t(reinterpret_cast<uintptr_t>(info->si_addr));
    Leave(fault);
}

void OnTerminate() {
    if (currentGuard != nullptr) {
        Fault fault;
        fault.signal = SIGABRT;
        fault.terminated = true;
        Leave(fault);
    }
    const std::terminate_handler previous = TheInstalled().previousTerminate;
    if (previous != nullptr) previous();
    std::abort();
}

}  // namespace

const char* Fault::Describe() const {
    if (terminated) return "a C++ exception left a noexcept function of the kernel";
    switch (signal) {
        case SIGSEGV:
        case SIGBUS: return "scalar code of the kernel touched unmapped memory";
        case SIGFPE: return "scalar code of the kernel divided an integer by zero";
        case SIGILL: return "the kernel ran into a trap (illegal instruction)";
        default: return "the kernel called abort()";
    }
}

FaultHandlers::FaultHandlers() {
    Installed& installed = TheInstalled();
    std::lock_guard<std::mutex> lock(installed.mutex);
    if (installed.users++ > 0) return;
    void* frame;
    backtrace(&frame, 1);   // loads the unwinder now: a signal handler must not
    struct sigaction ours = {};
    ours.sa_sigaction = OnSignal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof kSignals / sizeof *kSignals; ++i) sigaction(kSignals[i], &ours, &installed.previous[i]);
    installed.previousTerminate = std::set_terminate(OnTerminate);
}

FaultHandlers::~FaultHandlers() {
    Installed& installed = TheInstalled();
    std::lock_guard<std::mutex> lock(installed.mutex);
    if (--installed.users > 0) return;
    for (size_t i = 0; i < sizeof kSignals / sizeof *kSignals; ++i) {
        struct sigaction current;
        sigaction(kSignals[i], nullptr, &current);
        if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == OnSignal)   // else someone else took over meanwhile
            sigaction(kSignals[i], &installed.previous[i], nullptr);
    }
    if (std::get_terminate() == OnTerminate) std::set_terminate(installed.previousTerminate);
}

AlternateStack::AlternateStack() : bytes_(new uint8_t[kStackBytes]) {
    stack_t stack = {};
    stack.ss_sp = bytes_.get();
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
}

AlternateStack::~AlternateStack() {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
}

Fault RunGuarded(void (*run)(void*), void* argument) {
    Guard guard;
    if (sigsetjmp(guard.jump, 1) != 0) return guard.fault;
    currentGuard = &guard;
    run(argument);
    currentGuard = nullptr;
    return Fault();
}

}  // namespace sim
    struct Release { ~Release() { currentGuard = nullptr; } } release;   // also when run() throws
