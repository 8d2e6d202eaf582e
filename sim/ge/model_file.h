// The few fields of a serialised GE model (protobuf wire format) that can be asked for without an engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sim {

// First graph of the model: its name and the types of its nodes. False when the bytes are no such message.
bool ReadModel(std::string_view model, std::string& graphName, std::vector<std::string>& nodeTypes);

}  // namespace sim
