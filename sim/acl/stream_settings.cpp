// Attributes of streams, and the cores that kernels of a device, a stream or a thread may use.
#include "acl/acl_base.h"
#include "sim/acl/core_limits.h"
#include "sim/acl/stream.h"

namespace sim::acl {
namespace {

enum StreamAttribute : int { kFailureMode = 1, kOverflowCheck = 2, kCustomTag = 3, kCacheOpInfo = 4, kPriority = 5 };
union StreamAttributeValue {  // aclrtStreamAttrValue
    uint64_t failureMode;
    uint32_t word;
    uint32_t reserved[4];
};

enum Resource : int { kCubeCores = 0, kVectorCores = 1 };

thread_local std::shared_ptr<Stream> streamOfThread;  // aclrtUseStreamResInCurrentThread

CoreLimits AllCores() { return {TheSettings().soc->cubeCores, TheSettings().soc->vectorCores}; }

uint32_t& Part(CoreLimits& limits, int resource) {
    if (resource != kCubeCores && resource != kVectorCores)
        Refuse(kInvalidParameter, "resource %d does not exist: 0 is cube cores, 1 vector cores", resource);
    return resource == kCubeCores ? limits.cube : limits.vector;
}

CoreLimits With(CoreLimits limits, int resource, uint32_t value) {
    CoreLimits all = AllCores();
    if (value == 0 || value > Part(all, resource))
        Refuse(kInvalidParameter, "%u %s cores: %s has 1 to %u", value, resource == kCubeCores ? "cube" : "vector",
               TheSettings().soc->name, Part(all, resource));
    Part(limits, resource) = value;
    return limits;
}

CoreLimits LimitsOf(const Stream& stream) { return stream.limited ? stream.limits.load() : stream.device.Limits(); }

void SetFailureMode(Stream& stream, uint64_t mode) {
    if (mode > 1)
        Refuse(kInvalidParameter, "failure mode %llu does not exist: 0 continues, 1 stops", static_cast<unsigned long long>(mode));
    stream.failureMode = mode;
}

void SetOverflowSwitch(Stream& stream, uint32_t flag) {
    if (flag > 1) Refuse(kInvalidParameter, "overflow switch %u, it must be 0 or 1", flag);
    stream.overflowSwitch = flag;
}

}  // namespace

CoreLimits LimitsOfThread() {
    if (streamOfThread != nullptr) return LimitsOf(*streamOfThread);
    Device* device = CurrentDeviceOrNull();
    return device != nullptr ? device->Limits() : AllCores();
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtSetStreamFailureMode(void* stream, uint64_t mode) {
    return Call("aclrtSetStreamFailureMode", [&] { SetFailureMode(*GetStream(stream), mode); });
}
ACL_FUNC_VISIBILITY int aclrtSetStreamOverflowSwitch(void* stream, uint32_t flag) {
    return Call("aclrtSetStreamOverflowSwitch", [&] { SetOverflowSwitch(*GetStream(stream), flag); });
}
ACL_FUNC_VISIBILITY int aclrtGetStreamOverflowSwitch(void* stream, uint32_t* flag) {
    return Call("aclrtGetStreamOverflowSwitch", [&] { NotNull(flag, "flag") = GetStream(stream)->overflowSwitch; });
}
ACL_FUNC_VISIBILITY int aclrtSetStreamAttribute(void* handle, int attribute, const StreamAttributeValue* value) {
    return Call("aclrtSetStreamAttribute", [&] {
        const auto stream = GetStream(handle);
        NotNull(value, "value");
        switch (attribute) {
            case kFailureMode: return SetFailureMode(*stream, value->failureMode);
            case kOverflowCheck: return SetOverflowSwitch(*stream, value->word);
            case kCustomTag: stream->customTag = value->word; return;
            case kCacheOpInfo: stream->cacheOpInfo = value->word; return;
            default: Refuse(kInvalidParameter, "stream attribute %d cannot be set, 1 to 4 can", attribute);
        }
    });
}
ACL_FUNC_VISIBILITY int aclrtGetStreamAttribute(void* handle, int attribute, StreamAttributeValue* value) {
    return Call("aclrtGetStreamAttribute", [&] {
        const auto stream = GetStream(handle);
        NotNull(value, "value") = {};
        switch (attribute) {
            case kFailureMode: value->failureMode = stream->failureMode; return;
            case kOverflowCheck: value->word = stream->overflowSwitch; return;
            case kCustomTag: value->word = stream->customTag; return;
            case kCacheOpInfo: value->word = stream->cacheOpInfo; return;
            case kPriority: value->word = stream->priority; return;
            default: Refuse(kInvalidParameter, "stream attribute %d does not exist, attributes are 1 to 5", attribute);
        }
    });
}

ACL_FUNC_VISIBILITY int aclrtGetDeviceResLimit(int32_t id, int resource, uint32_t* value) {
    return Call("aclrtGetDeviceResLimit", [&] {
        CoreLimits limits = GetDevice(id).Limits();
        NotNull(value, "value") = Part(limits, resource);
    });
}
ACL_FUNC_VISIBILITY int aclrtSetDeviceResLimit(int32_t id, int resource, uint32_t value) {
    return Call("aclrtSetDeviceResLimit", [&] {
        Device& device = GetDevice(id);
        device.SetLimits(With(device.Limits(), resource, value));
    });
}
ACL_FUNC_VISIBILITY int aclrtResetDeviceResLimit(int32_t id) {
    return Call("aclrtResetDeviceResLimit", [&] { GetDevice(id).SetLimits(AllCores()); });
}
ACL_FUNC_VISIBILITY int aclrtGetStreamResLimit(void* stream, int resource, uint32_t* value) {
    return Call("aclrtGetStreamResLimit", [&] {
        CoreLimits limits = LimitsOf(*GetStream(stream));
        NotNull(value, "value") = Part(limits, resource);
    });
}
ACL_FUNC_VISIBILITY int aclrtSetStreamResLimit(void* handle, int resource, uint32_t value) {
    return Call("aclrtSetStreamResLimit", [&] {
        const auto stream = GetStream(handle);
        stream->limits = With(LimitsOf(*stream), resource, value);
        stream->limited = true;
    });
}
ACL_FUNC_VISIBILITY int aclrtResetStreamResLimit(void* stream) {
    return Call("aclrtResetStreamResLimit", [&] { GetStream(stream)->limited = false; });
}
ACL_FUNC_VISIBILITY int aclrtUseStreamResInCurrentThread(void* stream) {
    return Call("aclrtUseStreamResInCurrentThread", [&] { streamOfThread = GetStream(stream); });
}
ACL_FUNC_VISIBILITY int aclrtUnuseStreamResInCurrentThread(void*) {
    return Call("aclrtUnuseStreamResInCurrentThread", [&] { streamOfThread = nullptr; });
}
ACL_FUNC_VISIBILITY int aclrtGetResInCurrentThread(int resource, uint32_t* value) {
    return Call("aclrtGetResInCurrentThread", [&] {
        CoreLimits limits = LimitsOfThread();
        NotNull(value, "value") = Part(limits, resource);
    });
}

}  // extern "C"
