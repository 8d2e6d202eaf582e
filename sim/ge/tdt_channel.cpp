// libacl_tdt_channel.so.
#include <cstddef>
#include <cstdint>

#include "sim/ge/absent.h"

namespace {

constexpr const char* kWhy = "there are no queues of tensors between device and host";

}  // namespace

#define ABSENT(name, Result, failed) \
    extern "C" Result name() { return sim::Absent<Result>(failed, #name, kWhy); }
#include "sim/ge/tdt_channel_functions.inc"
#undef ABSENT
