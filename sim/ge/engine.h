#pragma once

#include <string>

namespace sim {

// Text of the last engine call that failed on this thread; taking it clears it, as on the device.
void SetEngineError(std::string text);
const char* TakeEngineError();  // valid until the thread's next call

}  // namespace sim
