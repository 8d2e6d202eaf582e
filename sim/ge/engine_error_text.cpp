// ge::GEGetErrorMsg() gives a string of libstdc++'s old ABI, as torchair's _abi_compat_ge_apis.so expects. Only this file is compiled
// for it (CMakeLists.txt), so the text comes to it as characters.
#include "sim/ge/engine.h"

namespace ge {

std::string GEGetErrorMsg() { return sim::TakeEngineError(); }

}  // namespace ge
