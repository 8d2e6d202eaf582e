// libge_runner.so: there is no graph engine. Programs get as far as the converted graph, and then this answer.
#include "sim/ge/engine.h"

#include <map>
#include <memory>
#include <utility>

#include "graph/ascend_string.h"
#include "graph/types.h"
#include "sim/ge/absent.h"

namespace {

constexpr const char* kWhy =
    "there is no graph engine (GE) here, so a graph is converted but not run. torchair runs on the simulator with "
    "CompilerConfig().mode = \"reduce-overhead\"";

thread_local std::string lastError, takenError;

uint32_t Fail(const char* function) {
    const uint32_t status = sim::Absent<uint32_t>(ge::GRAPH_FAILED, function, kWhy);
    sim::SetEngineError(sim::AbsentText(function, kWhy));
    return status;
}

}  // namespace

namespace sim {

void SetEngineError(std::string text) { lastError = std::move(text); }
const char* TakeEngineError() {
    takenError = std::exchange(lastError, {});
    return takenError.c_str();
}

}  // namespace sim

namespace ge {

class Allocator;

// Sessions hold graphs; the first call that needs the engine is AddGraph.
class Session {
public:
    explicit Session(const std::map<AscendString, AscendString>& options);
    ~Session();
    uint32_t RegisterExternalAllocator(const void* stream, std::shared_ptr<Allocator> allocator) const;
};
Session::Session(const std::map<AscendString, AscendString>&) {}
Session::~Session() = default;
// Nothing is allocated.
uint32_t Session::RegisterExternalAllocator(const void*, std::shared_ptr<Allocator>) const { return GRAPH_SUCCESS; }

// What can be asked without an engine, the registered operators, needs no preparation.
uint32_t GEInitialize(const std::map<AscendString, AscendString>&) { return GRAPH_SUCCESS; }
uint32_t GEFinalize() { return GRAPH_SUCCESS; }

AscendString GEGetWarningMsgV2() { return AscendString(""); }

}  // namespace ge

#define ENGINE(mangled, name) \
    extern "C" uint32_t mangled() { return Fail(name); }
#define ENGINE_THROWS(mangled, name) \
    extern "C" void mangled() { sim::ThrowAbsent(name, kWhy); }
#include "sim/ge/engine_functions.inc"
#undef ENGINE
#undef ENGINE_THROWS
