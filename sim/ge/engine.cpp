// libge_runner.so: there is no graph engine. Programs get as far as the converted graph, and then this answer.
#include "sim/ge/engine.h"

#include <utility>

#include "sim/ge/absent.h"
#include "sim/ge/ge_types.h"

namespace {

constexpr uint32_t kFailed = 0xFFFFFFFF;
constexpr const char* kWhy =
    "there is no graph engine (GE) here, so a graph is converted but not run. torchair runs on the simulator with "
    "CompilerConfig().mode = \"reduce-overhead\"";

thread_local std::string lastError, takenError;

uint32_t Fail(const char* function) {
    const uint32_t status = sim::Absent<uint32_t>(kFailed, function, kWhy);
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

class Session {
public:
    ~Session();
};
Session::~Session() = default;

// What was never initialised is finished: torchair calls this when the interpreter exits.
uint32_t GEFinalize() { return 0; }

AscendString GEGetWarningMsgV2() { return AscendString(""); }

}  // namespace ge

#define ENGINE(mangled, name) \
    extern "C" uint32_t mangled() { return Fail(name); }
#define ENGINE_THROWS(mangled, name) \
    extern "C" void mangled() { sim::ThrowAbsent(name, kWhy); }
#include "sim/ge/engine_functions.inc"
#undef ENGINE
#undef ENGINE_THROWS
