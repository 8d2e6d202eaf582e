// The tensors of a call lie on one device.
#pragma once

#include "sim/host/text.h"
#include "sim/opapi/stream.h"

namespace sim::opapi {

class OneDevice {
public:
    // `name()` is asked for only in the refusal. Host memory is of no device.
    template <typename Name>
    void Add(const void* address, const Name& name) {
        const int device = DeviceNumber(address);
        if (device < 0) return;
        if (device_ >= 0 && device != device_)
            host::Refuse(host::kInvalidParameter, "%s is on device %d, the tensors before it are on device %d: a call takes tensors of one device",
                         name().c_str(), device, device_);
        device_ = device;
    }

private:
    int device_ = -1;
};

}  // namespace sim::opapi
