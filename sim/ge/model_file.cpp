#include "sim/ge/model_file.h"

#include <cstdint>

namespace sim {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
struct Field {
    uint64_t number = 0;
    std::string_view bytes;  // of kBytes; empty for numbers, which nobody here asks for
};

class Message {
public:
    explicit Message(std::string_view bytes) : rest_(bytes) {}
    bool Next(Field& field) {  // false at the end, or when the bytes make no sense: see Broken()
        if (rest_.empty() || broken_) return false;
        const uint64_t key = Varint();
        field = {key >> 3, {}};
        switch (key & 7) {
            case kVarint: Varint(); break;
            case kFixed64: Take(8); break;
            case kBytes: field.bytes = Take(Varint()); break;
            case kFixed32: Take(4); break;
            default: broken_ = true;
        }
        return !broken_;
    }
    bool Broken() const { return broken_; }

private:
    std::string_view Take(uint64_t size) {
        if (size > rest_.size()) {
            broken_ = true;
            return {};
        }
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    uint64_t Varint() {
        uint64_t value = 0;
        for (uint32_t shift = 0; shift < 64; shift += 7) {
            const std::string_view byte = Take(1);
            if (broken_) return 0;
            value |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
            if ((byte[0] & 0x80) == 0) return value;
        }
        broken_ = true;
        return 0;
    }

    std::string_view rest_;
    bool broken_ = false;
};

// Field numbers of ge_ir: ModelDef.graph; GraphDef.name, .op; OpDef.type.
constexpr uint64_t kModelGraph = 7, kGraphName = 1, kGraphOp = 6, kOpType = 2;

bool ReadNode(std::string_view bytes, std::string& type) {
    Message op(bytes);
    for (Field field; op.Next(field);)
        if (field.number == kOpType) type = field.bytes;
    return !op.Broken();
}

bool ReadGraph(std::string_view bytes, std::string& name, std::vector<std::string>& nodeTypes) {
    Message graph(bytes);
    for (Field field; graph.Next(field);) {
        if (field.number == kGraphName) name = field.bytes;
        if (field.number == kGraphOp && !ReadNode(field.bytes, nodeTypes.emplace_back())) return false;
    }
    return !graph.Broken();
}

}  // namespace

bool ReadModel(std::string_view model, std::string& graphName, std::vector<std::string>& nodeTypes) {
    Message message(model);
    for (Field field; message.Next(field);)
        if (field.number == kModelGraph) return ReadGraph(field.bytes, graphName, nodeTypes);
    return false;
}

}  // namespace sim
