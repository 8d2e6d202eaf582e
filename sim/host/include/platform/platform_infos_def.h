// The platform description a tiling context carries.
#pragma once

#include <cstdint>
#include <string>

namespace sim {
struct SocSpec;
}

namespace fe {

enum class LocalMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

class PlatFormInfos {
public:
    explicit PlatFormInfos(const sim::SocSpec& soc) : soc_(&soc) {}

    // Vector cores of the chip, as for every chip whose cube and vector cores are separate.
    uint32_t GetCoreNum() const;
    void GetLocalMemSize(const LocalMemType& type, uint64_t& bytes) const;
    // Sections "version" (SoC_version, Short_SoC_version, NpuArch) and "SoCInfo" (ai_core_cnt, vector_core_cnt,
    // cube_core_cnt, l2_size, memory_size); false for anything else.
    bool GetPlatformRes(const std::string& label, const std::string& key, std::string& value) const;
    const sim::SocSpec& Soc() const { return *soc_; }

private:
    const sim::SocSpec* soc_;
};

}  // namespace fe
