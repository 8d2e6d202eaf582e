// libacl_op_compiler.so: no operator compiler. Compile options are kept, as programs set them at start and read them back.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "sim/ge/absent.h"

namespace {

constexpr const char* kWhy = "operators run through aclnn (libopapi.so and custom operator packages), not through the graph compiler";
constexpr int32_t kInvalidParameter = 100000;
constexpr int32_t kGraphEngineFailure = 500001;  // for 207000 torch_npu only warns when it synchronises
constexpr int32_t kOptions = 17;  // aclCompileOpt: ACL_PRECISION_MODE (0) .. ACL_OP_DEBUG_OPTION

std::mutex optionsMutex;
std::map<int32_t, std::string> options;

std::string Option(int32_t option) {
    const std::lock_guard<std::mutex> lock(optionsMutex);
    const auto found = options.find(option);
    return found == options.end() ? std::string() : found->second;
}

int32_t Invalid(const std::string& text) {
    sim::SetThreadError(text);
    return kInvalidParameter;
}

}  // namespace

extern "C" {

int32_t aclSetCompileopt(int32_t option, const char* value) {
    if (option < 0 || option >= kOptions) return Invalid("aclSetCompileopt: there is no option " + std::to_string(option));
    if (value == nullptr) return Invalid("aclSetCompileopt: the value is null");
    const std::lock_guard<std::mutex> lock(optionsMutex);
    options[option] = value;
    return 0;
}

size_t aclGetCompileoptSize(int32_t option) { return Option(option).size() + 1; }

int32_t aclGetCompileopt(int32_t option, char* value, size_t length) {
    const std::string text = Option(option);
    if (value == nullptr || length < text.size() + 1)
        return Invalid("aclGetCompileopt: the value takes " + std::to_string(text.size() + 1) + " bytes, given are " +
                       std::to_string(length));
    std::memcpy(value, text.c_str(), text.size() + 1);
    return 0;
}

// torch_npu calls this on the thread that empties its task queue, where an error would end the queue for good and leave later
// results unwritten. So the operator fails as work of the stream: at the next synchronisation, once, and nothing else with it.
int32_t aclopCompileAndExecute(const char* type, int, const void* const[], const void* const[], int, const void* const[], void* const[],
                               const void*, int, int, const char*, void* stream) {
    const std::string name = type == nullptr ? "?" : type;
    // torch_npu's format cast is an Identity between two formats.
    const char* remedy = name == "Identity" ? ". Private formats (torch_npu.npu_format_cast, NZ) are not modelled: use ND"
                                            : ". Compute it on the CPU";
    const std::string text = sim::AbsentText(("operator " + name + " by aclopCompileAndExecute").c_str(), kWhy) + remedy;
    return sim::Submit(stream, {name, [text] { return sim::WorkResult{kGraphEngineFailure, text, 0}; }});
}

#define ABSENT(name) \
    int32_t name() { return sim::Absent<int32_t>(sim::kFeatureNotSupported, #name, kWhy); }
#include "sim/ge/op_compiler_functions.inc"
#undef ABSENT

}  // extern "C"
