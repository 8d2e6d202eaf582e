#include "sim/core/faults.h"

#include <execinfo.h>
#include <pthread.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "sim/core/core.h"

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
thread_local uint64_t stackLow = 0, stackGuard = 0;   // the thread's stack grows down to stackLow, where a guard page lies

// A frame larger than the guard page leaves it untouched: the stack pointer tells then.
bool OverflowsStack(uint64_t address, uint64_t stackPointer) {
    if (stackLow == 0) return false;
    return (address >= stackLow - stackGuard && address < stackLow + stackGuard) || (stackPointer != 0 && stackPointer < stackLow);
}

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
        const int count = fault.frameCount > 0 ? 0 : backtrace(frames, Fault::kFrames);
        for (int i = 0; i < count; ++i) guard->fault.frames[i] = uint64_t(reinterpret_cast<uintptr_t>(frames[i]));
        if (count > 0) guard->fault.frameCount = count;
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

uint64_t StackPointer(const void* context) {
#if defined(__x86_64__)
    return uint64_t(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return uint64_t(static_cast<const ucontext_t*>(context)->uc_mcontext.sp);
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
    if (signal == SIGSEGV || signal == SIGBUS) {
        fault.address = uint64_t(reinterpret_cast<uintptr_t>(info->si_addr));
        fault.stackOverflow = OverflowsStack(fault.address, StackPointer(context));
    }
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

bool Fault::IsMemoryFault() const {
    return !stackOverflow && (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE);
}

std::string Fault::Describe() const {
    if (exitBy != nullptr) return std::string("the kernel called ") + exitBy + "(" + std::to_string(exitStatus) + ")";
    if (stackOverflow) return "stack overflow: the kernel's local variables or recursion need more stack than the host thread has";
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
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* low = nullptr;
    size_t bytes = 0, guard = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_getguardsize(&attributes, &guard);
    pthread_attr_destroy(&attributes);
    stackLow = uint64_t(reinterpret_cast<uintptr_t>(low));
    stackGuard = guard;
}

AlternateStack::~AlternateStack() {
    stackLow = 0;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
}

void KernelExit(const char* function, int status, const void* caller) {
    if (currentGuard == nullptr) std::exit(status);
    Fault fault;
    fault.signal = SIGABRT;
    fault.exitBy = function;
    fault.exitStatus = status;
    fault.frames[0] = uint64_t(reinterpret_cast<uintptr_t>(caller));
    fault.frameCount = 1;
    Leave(fault);
}

Fault RunGuarded(void (*run)(void*), void* argument) {
    Guard guard;
    if (sigsetjmp(guard.jump, 1) != 0) return guard.fault;
    struct Release { ~Release() { currentGuard = nullptr; } } release;   // also when run() throws
    currentGuard = &guard;
    run(argument);
    return Fault();
}

}  // namespace sim
