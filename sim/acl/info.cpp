// What the runtime says about the chip and itself.
#include <cstdio>
#include <cstring>
#include <string>

#include "acl/acl_base.h"
#include "sim/acl/device.h"

namespace sim::acl {
namespace {

enum Attribute : int { kInfNan = 0, kBfloat16 = 1, kJitCompile = 2 };
// Both modelled architectures compute with infinities and NaN and have bfloat16. Operators come as binaries.
constexpr int kAttributes[] = {kInfNan, kBfloat16};

enum Capability : int { kAiCores = 0, kVectorCores = 1, kL2Bytes = 2 };

// aclrtDevAttr
int64_t DeviceAttribute(const Device& device, int attribute) {
    const sim::SocSpec& soc = *TheSettings().soc;
    switch (attribute) {
        case 101: case 102: return soc.cubeCores;
        case 201: return soc.vectorCores;
        case 204: return static_cast<int64_t>(soc.ubBytes);
        case 301: return static_cast<int64_t>(device.memory.Capacity());
        case 302: return static_cast<int64_t>(soc.l2Bytes);
        case 401: return 0;            // all devices are on this operating system
        case 402: return device.id;
        case 408: return 0;            // PCIe, as copies are timed
        case 501: return 0;            // not a share of a chip
        case 601: return soc.npuArch;
        default: Refuse(kFeatureNotSupported, "device attribute %d is not modelled", attribute);
    }
}

// The release whose interface the runtime has; torch_npu asks to know which functions it may use.
constexpr const char* kCannVersion[] = {"9", "1", "0"};
std::string CannVersion() { return std::string(kCannVersion[0]) + "." + kCannVersion[1] + "." + kCannVersion[2]; }

struct PackageVersion {  // aclCANNPackageVersion
    char version[128], major[64], minor[64], release[64], patch[64], reserved[128];
};

// Of the ACL interface, as torch_npu 2.13.0 is compiled for it: ACL_MAJOR_VERSION and the others in its acl_rt.h.
constexpr int32_t kInterfaceMajor = 1, kInterfaceMinor = 17, kInterfacePatch = 0;

constexpr int kInfinities = 1;  // overflow mode: infinities and NaN

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY const char* aclrtGetSocName() { return TheSettings().soc->name; }

ACL_FUNC_VISIBILITY int aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
    return Call("aclrtGetVersion", [&] {
        NotNull(major, "majorVersion") = kInterfaceMajor;
        NotNull(minor, "minorVersion") = kInterfaceMinor;
        NotNull(patch, "patchVersion") = kInterfacePatch;
    });
}

ACL_FUNC_VISIBILITY int aclsysGetCANNVersion(int package, PackageVersion* version) {
    return Call("aclsysGetCANNVersion", [&] {
        if (package < 0 || package > 7) Refuse(kBadParameter, "package %d does not exist, packages are 0 to 7", package);
        NotNull(version, "version") = {};
        std::strcpy(version->version, CannVersion().c_str());
        std::strcpy(version->major, kCannVersion[0]);
        std::strcpy(version->minor, kCannVersion[1]);
        std::strcpy(version->release, kCannVersion[2]);
    });
}
// 128 bytes, as in the structure above.
ACL_FUNC_VISIBILITY int aclsysGetVersionStr(const char* package, char* version) {
    return Call("aclsysGetVersionStr", [&] {
        NotNull(package, "pkgName");
        std::strcpy(&NotNull(version, "versionStr"), CannVersion().c_str());
    });
}

ACL_FUNC_VISIBILITY int aclGetCannAttributeList(const int** list, size_t* count) {
    return Call("aclGetCannAttributeList", [&] {
        NotNull(list, "cannAttrList") = kAttributes;
        NotNull(count, "num") = sizeof kAttributes / sizeof *kAttributes;
    });
}
ACL_FUNC_VISIBILITY int aclGetCannAttribute(int attribute, int32_t* value) {
    return Call("aclGetCannAttribute", [&] {
        if (attribute < kInfNan || attribute > kJitCompile) Refuse(kBadParameter, "CANN attribute %d does not exist", attribute);
        NotNull(value, "value") = attribute == kJitCompile ? 0 : 1;
    });
}
ACL_FUNC_VISIBILITY int aclGetDeviceCapability(uint32_t id, int capability, int64_t* value) {
    return Call("aclGetDeviceCapability", [&] {
        GetDevice(id);
        const sim::SocSpec& soc = *TheSettings().soc;
        switch (capability) {
            case kAiCores: NotNull(value, "value") = soc.cubeCores; return;
            case kVectorCores: NotNull(value, "value") = soc.vectorCores; return;
            case kL2Bytes: NotNull(value, "value") = static_cast<int64_t>(soc.l2Bytes); return;
            default: Refuse(kBadParameter, "device capability %d does not exist", capability);
        }
    });
}
ACL_FUNC_VISIBILITY int aclrtGetDeviceInfo(uint32_t id, int attribute, int64_t* value) {
    return Call("aclrtGetDeviceInfo", [&] { NotNull(value, "value") = DeviceAttribute(GetDevice(id), attribute); });
}
ACL_FUNC_VISIBILITY int aclrtDeviceGetUuid(int32_t id, char* uuid) {
    return Call("aclrtDeviceGetUuid", [&] {
        char text[17];
        std::snprintf(text, sizeof text, "simulated-npu-%02d", GetDevice(id).id);
        std::memcpy(&NotNull(uuid, "uuid"), text, 16);
    });
}

// Chips of both modelled architectures compute with infinities; saturation is of the generation before.
ACL_FUNC_VISIBILITY int aclrtSetDeviceSatMode(int mode) {
    return Call("aclrtSetDeviceSatMode", [&] {
        if (mode != kInfinities)
            Refuse(kFeatureNotSupported, "overflow mode %d: saturation is not modelled, %d (infinities and NaN) is", mode, kInfinities);
    });
}
ACL_FUNC_VISIBILITY int aclrtGetDeviceSatMode(int* mode) {
    return Call("aclrtGetDeviceSatMode", [&] { NotNull(mode, "mode") = kInfinities; });
}

}  // extern "C"
