// Functions of the CANN toolkit and of op packages, looked up at run time: one build works with any toolkit, and with the simulator.
#pragma once

#include <cstddef>
#include <cstdint>

struct aclTensor;
struct aclOpExecutor;

namespace custom_ops::npu {

// What every call needs of libnnopbase.so and libascendcl.so.
struct CannFunctions {
    aclTensor* (*createTensor)(const int64_t* viewDims, uint64_t viewRank, int dtype, const int64_t* strides, int64_t offset, int format,
                               const int64_t* storageDims, uint64_t storageRank, void* data);
    int (*destroyTensor)(const aclTensor*);
    int (*setExecutorRepeatable)(aclOpExecutor*);
    int (*destroyExecutor)(aclOpExecutor*);
    const char* (*recentErrorMessage)();
    int (*memsetAsync)(void* data, size_t dataBytes, int32_t value, size_t count, void* stream);
    int (*useStreamResources)(void* stream);  // null in toolkits that cannot limit a stream's cores
};
const CannFunctions& Cann();

// Address of `symbol` in the first op package that has it: those in ASCEND_CUSTOM_OPP_PATH, then the vendors installed below
// ASCEND_OPP_PATH, in the order of its config.ini. The error says what was tried and why it failed.
void* FindInOpPackages(const char* symbol);

}  // namespace custom_ops::npu
