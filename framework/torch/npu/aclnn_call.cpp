#include "aclnn_call.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <sstream>

#include <torch/csrc/stable/ops.h>

#include "task_queue.h"

namespace custom_ops::npu {
namespace {

using CreateTensor = aclTensor* (*)(const int64_t* viewDims, uint64_t viewRank, int dtype, const int64_t* strides, int64_t offset,
                                    int format, const int64_t* storageDims, uint64_t storageRank, void* data);
constexpr int kFormatNd = 2;

int AclDtype(const Tensor& tensor) {
    switch (tensor.scalar_type()) {
        case ScalarType::Float: return 0;
        case ScalarType::Half: return 1;
        case ScalarType::BFloat16: return 27;
        default: throw std::runtime_error("no aclDataType for " + Text(tensor.scalar_type()));
    }
}

std::vector<void*> OpPackages() {
    std::vector<void*> libraries;
    const char* paths = std::getenv("ASCEND_CUSTOM_OPP_PATH");
    std::istringstream list(paths ? paths : "");
    for (std::string path; std::getline(list, path, ':');)
        if (void* library = dlopen((path + "/op_api/lib/libcust_opapi.so").c_str(), RTLD_LAZY)) libraries.push_back(library);
    return libraries;
}

}  // namespace

void* Find(const char* symbol, bool custom) {
    static const std::vector<void*> packages = OpPackages();
    static const std::vector<void*> toolkit = {dlopen("libnnopbase.so", RTLD_LAZY), dlopen("libascendcl.so", RTLD_LAZY)};
    for (void* library : custom ? packages : toolkit)
        if (void* address = library ? dlsym(library, symbol) : nullptr) return address;
    const char* paths = std::getenv("ASCEND_CUSTOM_OPP_PATH");
    throw std::runtime_error(std::string(symbol) + (custom ? " is in no op_api/lib/libcust_opapi.so below ASCEND_CUSTOM_OPP_PATH='" +
                                                                 std::string(paths ? paths : "") + "'"
                                                           : " is in neither libnnopbase.so nor libascendcl.so"));
}

AclTensors::AclTensors(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    const auto create = reinterpret_cast<CreateTensor>(Find("aclCreateTensor", false));
    for (const Tensor& tensor : tensors_) {
        const Sizes sizes = tensor.sizes(), strides = tensor.strides();
        handles_.push_back(create(sizes.data(), sizes.size(), AclDtype(tensor), strides.data(), 0, kFormatNd, sizes.data(),
                                  sizes.size(), tensor.data_ptr()));
    }
}

AclTensors::~AclTensors() {
    const auto destroy = reinterpret_cast<int (*)(const aclTensor*)>(Find("aclDestroyTensor", false));
    for (aclTensor* handle : handles_) destroy(handle);
}

void CheckStatus(const char* symbol, int status) {
    if (status == 0) return;
    const char* message = reinterpret_cast<const char* (*)()>(Find("aclGetRecentErrMsg", false))();
    throw std::runtime_error(std::string(symbol) + " failed with " + std::to_string(status) + ": " + (message ? message : "no message"));
}

void Launch(const char* symbol, uint64_t workspaceBytes, aclOpExecutor* executor, std::shared_ptr<AclTensors> tensors, const Tensor& like) {
    using Run = int (*)(void*, uint64_t, aclOpExecutor*, void*);
    const auto run = reinterpret_cast<Run>(Find(symbol, true));
    const int64_t bytes = static_cast<int64_t>(workspaceBytes);
    const Tensor workspace = torch::stable::new_empty(like, Sizes(&bytes, 1), ScalarType::Byte);
    Enqueue(symbol, [=](void* stream) {
        const int status = run(workspaceBytes ? workspace.data_ptr() : nullptr, workspaceBytes, executor, stream);
        CheckStatus(symbol, status);
        return tensors ? status : 0;  // holds the tensors until here
    });
}

}  // namespace custom_ops::npu
