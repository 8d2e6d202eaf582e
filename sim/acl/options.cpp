// Process-wide options: time limits, system parameters, and the answers about errors of the chip.
#include <atomic>
#include <mutex>

#include "acl/acl_base.h"
#include "sim/acl/device.h"
#include "sim/acl/options.h"

namespace sim::acl {
namespace {

// The device's limit for one operator, modelled time; 0: none.
std::atomic<uint64_t> executeMicroseconds{0};

struct Parameters {
    std::mutex mutex;
    int64_t values[3] = {};   // by aclSysParamOpt; off until set
};
Parameters& TheParameters() {
    static Parameters* parameters = new Parameters;
    return *parameters;
}

// Results of the simulator are always deterministic; strong consistency and debug kernels change nothing it computes.
int SetParameter(const char* function, int option, int64_t value) {
    return Call(function, [&] {
        if (option < 0 || option > 2) Refuse(kBadParameter, "system parameter %d does not exist, parameters are 0 to 2", option);
        if (value != 0 && value != 1) Refuse(kBadParameter, "value %lld, it must be 0 or 1", static_cast<long long>(value));
        std::lock_guard<std::mutex> lock(TheParameters().mutex);
        TheParameters().values[option] = value;
    });
}

int GetParameter(const char* function, int option, int64_t* value) {
    return Call(function, [&] {
        std::lock_guard<std::mutex> lock(TheParameters().mutex);
        if (option < 0 || option > 2) Refuse(kBadParameter, "system parameter %d does not exist, parameters are 0 to 2", option);
        NotNull(value, "value") = TheParameters().values[option];
    });
}

struct ErrorInfo {  // aclrtErrorInfo
    uint8_t tryRepair, hasDetail, reserved[2];
    int type;
    union {
        struct {
            size_t count;
            struct { void* address; size_t bytes, reserved[14]; } entries[20];
        } memory;
        int core;
    } detail;
};
constexpr int kCoreErrorBySoftware = 1;

}  // namespace

WorkResult WithinLimit(WorkResult result, const std::string& name) {
    const uint64_t limit = executeMicroseconds;
    if (result.status != 0 || limit == 0 || result.microseconds <= double(limit)) return result;
    result.status = kVectorCoreTimeout;
    result.message = name + " takes " + std::to_string(uint64_t(result.microseconds)) + " us (modelled), aclrtSetOpExecuteTimeOut allows " +
                     std::to_string(limit);
    return result;
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtSetOpExecuteTimeOut(uint32_t seconds) {
    return Call("aclrtSetOpExecuteTimeOut", [&] { executeMicroseconds = uint64_t(seconds) * 1000000; });
}
ACL_FUNC_VISIBILITY int aclrtSetOpExecuteTimeOutV2(uint64_t microseconds, uint64_t* actual) {
    return Call("aclrtSetOpExecuteTimeOutV2", [&] {
        executeMicroseconds = microseconds;
        NotNull(actual, "actualTimeout") = microseconds;
    });
}
// Limits waits for notifications of other chips, which are not modelled: any limit is kept.
ACL_FUNC_VISIBILITY int aclrtSetOpWaitTimeout(uint32_t) { return kSuccess; }

ACL_FUNC_VISIBILITY int aclrtSetSysParamOpt(int option, int64_t value) { return SetParameter("aclrtSetSysParamOpt", option, value); }
ACL_FUNC_VISIBILITY int aclrtGetSysParamOpt(int option, int64_t* value) { return GetParameter("aclrtGetSysParamOpt", option, value); }
ACL_FUNC_VISIBILITY int aclrtCtxSetSysParamOpt(int option, int64_t value) {
    return SetParameter("aclrtCtxSetSysParamOpt", option, value);
}
ACL_FUNC_VISIBILITY int aclrtCtxGetSysParamOpt(int option, int64_t* value) {
    return GetParameter("aclrtCtxGetSysParamOpt", option, value);
}

ACL_FUNC_VISIBILITY int aclrtGetErrorVerbose(int32_t id, ErrorInfo* info) {
    return Call("aclrtGetErrorVerbose", [&] {
        NotNull(info, "errorInfo") = {};
        info->type = GetDevice(id).errorKind.exchange(0);
        info->hasDetail = info->type == kCoreError;
        if (info->hasDetail) info->detail.core = kCoreErrorBySoftware;
    });
}
// Memory of the host does not decay: there never is a list of bad addresses.
ACL_FUNC_VISIBILITY int aclrtGetMemUceInfo(int32_t id, void*, size_t, size_t* count) {
    return Call("aclrtGetMemUceInfo", [&] {
        GetDevice(id);
        NotNull(count, "retSize") = 0;
    });
}
// A hint to the L2 cache, which is not modelled: it changes no result.
ACL_FUNC_VISIBILITY int aclrtCmoAsync(void* address, size_t bytes, int, void*) {
    return Call("aclrtCmoAsync", [&] {
        const std::string error = DeviceMemoryError(address, bytes);
        if (!error.empty()) Refuse(kInvalidParameter, "%s", error.c_str());
    });
}

}  // extern "C"
