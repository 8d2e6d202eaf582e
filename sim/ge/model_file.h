// The few fields of a serialised GE model (protobuf wire format) that can be asked for without an engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct ModelNode {
    std::string name, type;
};
// First graph of the model: its name and nodes. False when the bytes are no such message.
bool ReadModel(std::string_view model, std::string& graphName, std::vector<ModelNode>& nodes);

}  // namespace sim
