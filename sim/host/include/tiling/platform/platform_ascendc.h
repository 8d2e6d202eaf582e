// The chip a kernel is tiled for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform_infos_def.h"

namespace platform_ascendc {
class PlatformAscendC;
}
namespace sim::host {
const SocSpec& SocOf(const platform_ascendc::PlatformAscendC& platform);
}

namespace platform_ascendc {

enum class CoreMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

// ASCEND910B stands for 910B and 910_93.
enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B = 1,
    ASCEND310P = 2,
    ASCEND310B = 3,
    ASCEND910_95 = 4,
    ASCEND950 = ASCEND910_95,
    RESERVED_VERSION = 99999
};

class PlatformAscendC {
public:
    explicit PlatformAscendC(fe::PlatFormInfos* platformInfo) : info_(platformInfo) {}

    uint32_t GetCoreNum() const;     // vector cores: cube and vector cores are separate
    uint32_t GetCoreNumAic() const;
    uint32_t GetCoreNumAiv() const;
    uint32_t GetCoreNumVector() const;  // additional vector cores, which only 310P has
    SocVersion GetSocVersion() const;
    // Blocks of a mix kernel that splits its work into `sliceNum` vector slices.
    uint32_t CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const;
    uint32_t CalcTschNumBlocks(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
        return CalcTschBlockDim(sliceNum, aicCoreNum, aivCoreNum);
    }
    void GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const;
    void GetCoreMemBw(const CoreMemType& type, uint64_t& bytesPerCycle) const;
    uint32_t GetLibApiWorkSpaceSize() const;  // bytes at the start of the workspace that belong to the system
    uint32_t GetResCubeGroupWorkSpaceSize() const;
    uint32_t GetResGroupBarrierWorkSpaceSize() const;

private:
    friend const sim::SocSpec& sim::host::SocOf(const PlatformAscendC&);
    fe::PlatFormInfos* info_;
};

// The platform without a context.
class PlatformAscendCManager {
public:
    // The SoC this host thread simulates.
    static PlatformAscendC* GetInstance();
    // Null when the name is not in the SoC table.
    static PlatformAscendC* GetInstance(const char* customSocVersion);
};

}  // namespace platform_ascendc
