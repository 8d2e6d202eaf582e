#include "sim/acl/fault_report.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <mutex>

#include "sim/acl/device.h"

namespace sim::acl {
namespace {

struct sigaction previous;

// Allocates nothing: the fault may have come in the middle of the allocator.
void Explain(const void* address) {
    const Device* device = DeviceOf(address);
    if (device == nullptr) return;
    Sentence what;
    if (!device->memory.DescribeNow(reinterpret_cast<uintptr_t>(address), &what)) what.Set("%p, memory of device %d", address, device->id);
    for (const char* part : {"\nnpu simulator: host code touched device memory: ", static_cast<const char*>(what.text),
                             ".\nOn a machine with an NPU this address is not mapped either. Copy the data to the host first "
                             "(tensor.cpu(), aclrtMemcpy with ACL_MEMCPY_DEVICE_TO_HOST).\n"}) {
        const ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
        (void)written;
    }
}

uintptr_t StackPointer(const ucontext_t& context) {
#if defined(__x86_64__)
    return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return context.uc_mcontext.sp;
#else
    (void)context;
    return 0;
#endif
}

// A handler that was installed over this one (Python's faulthandler) has put it back and raises the signal again: it comes from
// a signal stack and without the address. When that handler returns, the instruction faults once more and comes here with it.
bool IsRaisedByHandler(const siginfo_t& info, const ucontext_t& context) {
    return info.si_code <= 0 && StackPointer(context) - reinterpret_cast<uintptr_t>(context.uc_stack.ss_sp) < context.uc_stack.ss_size;
}

void OnFault(int signal, siginfo_t* info, void* context) {
    if (IsRaisedByHandler(*info, *static_cast<ucontext_t*>(context))) return;
    if (info->si_code > 0) Explain(info->si_addr);
    if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
    struct sigaction byDefault = {};
    byDefault.sa_handler = SIG_DFL;
    sigaction(signal, &byDefault, nullptr);    // the instruction faults again and the default action is taken
    if (info->si_code <= 0) raise(signal);     // sent, not raised by an instruction
}

}  // namespace

void ReportFaultsOnDeviceMemory() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction ours = {};
        ours.sa_sigaction = OnFault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&ours.sa_mask);
        sigaction(SIGSEGV, &ours, &previous);
    });
}

}  // namespace sim::acl
