// Errors that host functions logged (toolchain/slog.h) on this host thread.
#pragma once

#include <string>

namespace sim::host {

// Joined by "; " and forgotten.
std::string TakeLoggedErrors();

}  // namespace sim::host
