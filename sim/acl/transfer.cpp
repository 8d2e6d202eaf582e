// Copies and fills.
#include <cstring>
#include <memory>
#include <vector>

#include "acl/acl_base.h"
#include "sim/acl/capture.h"
#include "sim/acl/host_memory.h"
#include "sim/acl/reports.h"
#include "sim/acl/stream.h"

namespace sim::acl {
namespace {

enum Kind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault, kThroughBuffer, kInnerDevice, kInterDevice };

// PCIe 4.0 x16: 16 GT/s on 16 lanes with 128/130 coding, the most it can carry.
constexpr double kHostLinkBytesPerSecond = 16e9 * 16 / 8 * 128 / 130;

struct Side {
    const char* name;      // "destination"
    const void* address;
    size_t bytes;
    bool onDevice;
};

// Where the kind says a side is, and whether its memory is really there.
Side Check(const char* name, const void* address, size_t bytes, int wantsDevice) {
    if (address == nullptr) Refuse(kInvalidParameter, "the %s is null", name);
    const bool onDevice = DeviceOf(address) != nullptr;
    if (wantsDevice >= 0 && onDevice != (wantsDevice == 1))
        Refuse(kInvalidParameter, "the kind of the copy says that the %s %p is %s memory, but it is %s memory", name, address,
               wantsDevice ? "device" : "host", onDevice ? "device" : "host");
    if (onDevice) {
        const std::string error = DeviceMemoryError(address, bytes);
        if (!error.empty()) Refuse(kInvalidParameter, "%s: %s", name, error.c_str());
    }
    return {name, address, bytes, onDevice};
}

struct Copy {
    Side to, from;
    size_t bytes = 0;
    bool OnDevice() const { return to.onDevice || from.onDevice; }
    bool IsPageable() const {
        const Side& host = to.onDevice ? from : to;
        return to.onDevice != from.onDevice && !IsPinned(host.address, bytes);
    }
};

Copy CheckCopy(void* to, size_t room, const void* from, size_t bytes, int kind) {
    static const struct { int to, from; } kSides[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {-1, -1}, {1, 0}, {1, 1}, {1, 1}};
    if (kind < 0 || kind > kInterDevice) Refuse(kInvalidParameter, "copy kind %d does not exist, kinds are 0 to 7", kind);
    if (bytes > room) Refuse(kInvalidParameter, "%zu bytes do not fit: destMax is %zu", bytes, room);
    return {Check("destination", to, bytes, kSides[kind].to), Check("source", from, bytes, kSides[kind].from), bytes};
}

double CopyMicroseconds(const Copy& copy) {
    const sim::SocSpec& soc = *TheSettings().soc;
    if (!copy.OnDevice()) return 0;
    const double seconds = copy.to.onDevice && copy.from.onDevice ? 2.0 * double(copy.bytes) / soc.hbmBytesPerSecond
                                                                  : double(copy.bytes) / kHostLinkBytesPerSecond;
    return 1e6 * (soc.launchSeconds + seconds);
}

void* HostAddressOf(const Side& side) { return HostAddress(side.address); }

const char* CopyName(const Copy& copy) {
    if (copy.to.onDevice) return copy.from.onDevice ? "memcpy device to device" : "memcpy host to device";
    return copy.from.onDevice ? "memcpy device to host" : "memcpy host to host";
}

// Device sides once more when the copy runs: what was freed meanwhile must not be touched.
WorkResult RunCopy(const Copy& copy) {
    const MemoryUse use;
    for (const Side* side : {&copy.to, &copy.from})
        if (side->onDevice)
            if (std::string error = DeviceMemoryError(side->address, side->bytes); !error.empty())
                return {kInvalidParameter, std::string(CopyName(copy)) + ", " + side->name + ": " + error, 0};
    std::memmove(HostAddressOf(copy.to), HostAddressOf(copy.from), copy.bytes);
    return {0, "", CopyMicroseconds(copy)};
}

void CopyNow(const Copy& copy) {
    const WorkResult result = RunCopy(copy);
    if (result.status != 0) throw AclFailure(result.status, result.message);
    if (copy.OnDevice()) TraceCopy(*DeviceOf((copy.to.onDevice ? copy.to : copy.from).address), CopyName(copy), result.microseconds);
}

Task AsTask(std::string name, std::function<WorkResult()> run) {
    return {std::move(name), TaskKind::Work, [run = std::move(run)](double* clock) {
                WorkResult result = run();
                *clock += result.microseconds;
                return result;
            }};
}

void CopyAsync(const std::vector<Copy>& copies, const std::shared_ptr<Stream>& stream) {
    bool pageable = false;
    for (const Copy& copy : copies) pageable = pageable || copy.IsPageable();
    if (pageable) RefuseBlockingCopy(*stream);
    for (const Copy& copy : copies) Submit(stream, AsTask(CopyName(copy), [copy] { return RunCopy(copy); }));
    // The device cannot fetch pageable memory by itself: the call returns when the bytes have been moved.
    if (pageable) stream->Drain(-1);
}

void Fill(void* address, int32_t value, size_t bytes) { std::memset(HostAddress(address), value, bytes); }

void CheckFill(void* address, size_t room, size_t bytes) {
    if (bytes > room) Refuse(kInvalidParameter, "%zu bytes do not fit: maxCount is %zu", bytes, room);
    Check("memory", address, bytes, -1);
}

std::vector<Copy> CheckBatch(void** to, size_t* room, void** from, size_t* bytes, size_t count, size_t* failed) {
    NotNull(to, "dsts"), NotNull(room, "destMaxs"), NotNull(from, "srcs"), NotNull(bytes, "sizes");
    std::vector<Copy> copies;
    for (size_t i = 0; i < count; ++i) {
        if (failed != nullptr) *failed = i;
        copies.push_back(CheckCopy(to[i], room[i], from[i], bytes[i], kDefault));
    }
    if (failed != nullptr) *failed = SIZE_MAX;
    return copies;
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, int kind) {
    return Call("aclrtMemcpy", [&] {
        const Copy copy = CheckCopy(to, room, from, bytes, kind);
        if (copy.OnDevice()) RefuseUnsafeCall("aclrtMemcpy");
        CopyNow(copy);
    });
}
ACL_FUNC_VISIBILITY int aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t bytes, int kind, void* stream) {
    return Call("aclrtMemcpyAsync", [&] {
        const auto target = GetStream(stream);
        CopyAsync({CheckCopy(to, room, from, bytes, kind)}, target);
    });
}
// The kind follows from the addresses.
ACL_FUNC_VISIBILITY int aclrtMemcpyAsyncWithCondition(void* to, size_t room, const void* from, size_t bytes, int, void* stream) {
    return Call("aclrtMemcpyAsyncWithCondition", [&] {
        const auto target = GetStream(stream);
        CopyAsync({CheckCopy(to, room, from, bytes, kDefault)}, target);
    });
}
ACL_FUNC_VISIBILITY int aclrtMemcpyBatch(void** to, size_t* room, void** from, size_t* bytes, size_t count, const void*, size_t*,
                                         size_t, size_t* failed) {
    return Call("aclrtMemcpyBatch", [&] {
        RefuseUnsafeCall("aclrtMemcpyBatch");
        for (const Copy& copy : CheckBatch(to, room, from, bytes, count, failed)) CopyNow(copy);
    });
}
ACL_FUNC_VISIBILITY int aclrtMemcpyBatchAsync(void** to, size_t* room, void** from, size_t* bytes, size_t count, const void*, size_t*,
                                              size_t, size_t* failed, void* stream) {
    return Call("aclrtMemcpyBatchAsync", [&] { CopyAsync(CheckBatch(to, room, from, bytes, count, failed), GetStream(stream)); });
}

ACL_FUNC_VISIBILITY int aclrtMemset(void* address, size_t room, int32_t value, size_t bytes) {
    return Call("aclrtMemset", [&] {
        const sim::acl::MemoryUse use;
        CheckFill(address, room, bytes);
        if (DeviceOf(address) != nullptr) RefuseUnsafeCall("aclrtMemset");
        Fill(address, value, bytes);
    });
}
ACL_FUNC_VISIBILITY int aclrtMemsetAsync(void* address, size_t room, int32_t value, size_t bytes, void* stream) {
    return Call("aclrtMemsetAsync", [&] {
        CheckFill(address, room, bytes);
        Submit(GetStream(stream), AsTask("memset", [=]() -> sim::WorkResult {
                   const sim::acl::MemoryUse use;
                   if (DeviceOf(address) != nullptr)
                       if (std::string error = DeviceMemoryError(address, bytes); !error.empty())
                           return {kInvalidParameter, "memset: " + error, 0};
                   Fill(address, value, bytes);
                   const sim::SocSpec& soc = *TheSettings().soc;
                   return {0, "", 1e6 * (soc.launchSeconds + double(bytes) / soc.hbmBytesPerSecond)};
               }));
    });
}

}  // extern "C"
