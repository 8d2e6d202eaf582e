// PlatformAscendC and fe::PlatFormInfos over the SoC table.
#include <map>
#include <memory>
#include <mutex>

#include "sim/core/soc.h"
#include "sim/host/current_soc.h"
#include "sim/host/node.h"
#include "tiling/platform/platform_ascendc.h"

namespace fe {

uint32_t PlatFormInfos::GetCoreNum() const { return soc_->vectorCores; }

void PlatFormInfos::GetLocalMemSize(const LocalMemType& type, uint64_t& bytes) const {
    switch (type) {
        case LocalMemType::L0_A: bytes = soc_->l0aBytes; break;
        case LocalMemType::L0_B: bytes = soc_->l0bBytes; break;
        case LocalMemType::L0_C: bytes = soc_->l0cBytes; break;
        case LocalMemType::L1: bytes = soc_->l1Bytes; break;
        case LocalMemType::L2: bytes = soc_->l2Bytes; break;
        case LocalMemType::UB: bytes = soc_->ubBytes; break;
        case LocalMemType::HBM: bytes = soc_->hbmBytes; break;
        default: bytes = 0;
    }
}

bool PlatFormInfos::GetPlatformRes(const std::string& label, const std::string& key, std::string& value) const {
    if (label == "version") {
        if (key == "SoC_version") value = soc_->name;
        else if (key == "Short_SoC_version") value = soc_->npuArch == 3510 ? "Ascend950" : "Ascend910B";
        else if (key == "NpuArch") value = std::to_string(soc_->npuArch);
        else return false;
        return true;
    }
    if (label != "SoCInfo") return false;
    if (key == "ai_core_cnt" || key == "cube_core_cnt") value = std::to_string(soc_->cubeCores);
    else if (key == "vector_core_cnt") value = std::to_string(soc_->vectorCores);
    else if (key == "l2_size") value = std::to_string(soc_->l2Bytes);
    else if (key == "memory_size") value = std::to_string(soc_->hbmBytes);
    else return false;
    return true;
}

}  // namespace fe

const sim::SocSpec& sim::host::SocOf(const platform_ascendc::PlatformAscendC& platform) { return platform.info_->Soc(); }

namespace platform_ascendc {

uint32_t PlatformAscendC::GetCoreNum() const { return info_->Soc().vectorCores; }
uint32_t PlatformAscendC::GetCoreNumAic() const { return info_->Soc().cubeCores; }
uint32_t PlatformAscendC::GetCoreNumAiv() const { return info_->Soc().vectorCores; }
uint32_t PlatformAscendC::GetCoreNumVector() const { return 0; }

SocVersion PlatformAscendC::GetSocVersion() const {
    return info_->Soc().npuArch == 3510 ? SocVersion::ASCEND950 : SocVersion::ASCEND910B;
}

uint32_t PlatformAscendC::CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
    if (aicCoreNum == 0 || aivCoreNum == 0 || aicCoreNum > aivCoreNum) return sliceNum;
    const uint32_t ratio = aivCoreNum / aicCoreNum;  // vector cores per cube core, which one block of a mix kernel uses
    return (sliceNum + ratio - 1) / ratio;
}

void PlatformAscendC::GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const {
    info_->GetLocalMemSize(static_cast<fe::LocalMemType>(type), bytes);
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType& type, uint64_t& bytesPerCycle) const {
    // Only the path between memory and core is in the table; the L2 path is at least as wide.
    const bool global = type == CoreMemType::HBM || type == CoreMemType::L2;
    bytesPerCycle = global ? static_cast<uint64_t>(info_->Soc().gmReadBytesPerCycle) : 0;
}

uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const { return sim::host::kSystemWorkspaceBytes; }
uint32_t PlatformAscendC::GetResCubeGroupWorkSpaceSize() const { return 0; }
uint32_t PlatformAscendC::GetResGroupBarrierWorkSpaceSize() const { return 0; }

namespace {

struct Platform {
    explicit Platform(const sim::SocSpec& soc) : info(soc), ascendc(&info) {}
    fe::PlatFormInfos info;
    PlatformAscendC ascendc;
};

PlatformAscendC* PlatformOf(const sim::SocSpec& soc) {
    static std::mutex mutex;
    static std::map<const sim::SocSpec*, std::unique_ptr<Platform>> platforms;
    const std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<Platform>& platform = platforms[&soc];
    if (platform == nullptr) platform = std::make_unique<Platform>(soc);
    return &platform->ascendc;
}

}  // namespace

PlatformAscendC* PlatformAscendCManager::GetInstance() { return PlatformOf(sim::host::CurrentSoc()); }
PlatformAscendC* PlatformAscendCManager::GetInstance(const char* customSocVersion) {
    const sim::SocSpec* soc = sim::FindSoc(customSocVersion);
    return soc == nullptr ? nullptr : PlatformOf(*soc);
}

}  // namespace platform_ascendc
