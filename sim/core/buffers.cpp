// The map of local memory: what TPipe placed where, and what the kernel's source calls it.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sim/core/core_state.h"
#include "sim/core/text.h"

namespace sim {

const std::string& CoreState::Buffer::Name() const {
    if (name.empty()) name = BufferNameInSource(where, nth);
    if (name.empty()) name = position;
    return name;
}

void CoreState::RecordBuffer(Memory memory, const char* position, uint64_t address, uint64_t bytes, uint32_t count,
                             Location where) {
    const uint64_t capacity = memory_->Bytes(memory);
    const auto sameLine = [&](const Buffer& b) { return b.where.line == where.line && std::string(b.where.file) == where.file; };
    const auto nth = uint32_t(std::count_if(buffers_.begin(), buffers_.end(), sameLine));
    buffers_.push_back({memory, position, address, bytes, std::max(count, 1u), where, nth, ""});
    if (address + bytes > capacity) {
        std::string plan;
        for (const Buffer& buffer : buffers_) {
            if (buffer.memory != memory) continue;
            plan += (plan.empty() ? "" : ", ") + buffer.Name() + " " + std::to_string(buffer.bytes);
        }
        Finding finding = MakeFinding(Rule::LocalMemoryOverflow, Pipe::S, "InitBuffer", "",
                                      "the buffers need " + std::to_string(address + bytes) + " bytes of " + MemoryName(memory) +
                                          ", " + launch_.soc.name + " has " + std::to_string(capacity) + " (" + plan + ")",
                                      where);
        Abort(std::move(finding));
    }
    core_.MarkUnwritten(memory, address, bytes);
}

const CoreState::Buffer* CoreState::BufferAt(Memory memory, uint64_t address) const {
    for (auto buffer = buffers_.rbegin(); buffer != buffers_.rend(); ++buffer)   // a later plan replaces an earlier one
        if (buffer->memory == memory && address >= buffer->address && address < buffer->address + buffer->bytes) return &*buffer;
    return nullptr;
}

void CoreState::BufferAround(Memory memory, uint64_t address, uint64_t* low, uint64_t* high) const {
    *low = 0;
    *high = memory_->Bytes(memory);
    const Buffer* buffer = BufferAt(memory, address);
    if (buffer == nullptr) return;
    const uint64_t slot = buffer->SlotBytes();
    *low = buffer->address + (address - buffer->address) / slot * slot;
    *high = std::min(*low + slot, buffer->address + buffer->bytes);
}

std::string CoreState::BufferName(Memory memory, uint64_t address) const {
    const Buffer* buffer = BufferAt(memory, address);
    if (buffer == nullptr) return "";
    if (buffer->count == 1) return buffer->Name();
    return buffer->Name() + " buffer " + std::to_string((address - buffer->address) / buffer->SlotBytes());
}

std::string CoreState::Place(Memory memory, uint64_t begin, uint64_t end) const {
    if (memory == Memory::GM) {
        const GmTensor* tensor = launch_.tensors.Find(begin);
        if (tensor == nullptr) return "GM";
        return tensor->name + " " + ByteRange(begin - tensor->begin, end - tensor->begin);
    }
    const std::string name = BufferName(memory, begin);
    return (name.empty() ? "" : name + " ") + MemoryName(memory) + " " + HexRange(begin, end);
}

namespace {

struct SourceFiles {
    std::mutex mutex;
    std::map<std::string, std::vector<std::string>> lines;
};

// The line and the few after it that a call may run over. Empty when the file cannot be read.
std::string SourceText(const Location& where) {
    constexpr size_t kCallLines = 4;
    static SourceFiles* files = new SourceFiles;
    std::lock_guard<std::mutex> lock(files->mutex);
    auto [it, isNew] = files->lines.try_emplace(where.file);
    if (isNew) {
        std::ifstream file(where.file);
        for (std::string line; std::getline(file, line);) it->second.push_back(line);
    }
    std::string text;
    const std::vector<std::string>& lines = it->second;
    for (size_t i = size_t(std::max(where.line, 1)) - 1, end = std::min(lines.size(), i + kCallLines); i < end; ++i)
        text += lines[i] + '\n';
    return text;
}

}  // namespace

std::string BufferNameInSource(const Location& where, uint32_t nth) {
    const std::string text = SourceText(where);
    const std::string call = "InitBuffer";
    // Calls on the line itself; a line in a loop makes all its buffers by one call.
    std::vector<size_t> calls;
    for (size_t at = text.find(call); at != std::string::npos && at < text.find('\n'); at = text.find(call, at + 1))
        calls.push_back(at + call.size());
    if (calls.empty()) return "";
    size_t at = text.find('(', calls[nth % calls.size()]);
    if (at == std::string::npos) return "";
    std::string name;
    int depth = 0;
    for (++at; at < text.size(); ++at) {
        const char c = text[at];
        if (depth == 0 && (c == ',' || c == ')')) break;
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
        if (!std::isspace(static_cast<unsigned char>(c))) name += c;
    }
    for (const char* prefix : {"this->", "*"})
        if (name.rfind(prefix, 0) == 0) name.erase(0, std::string(prefix).size());
    return name;
}

const char* InternString(const char* text) {
    struct Pool {
        std::mutex mutex;
        std::set<std::string> strings;
    };
    static Pool* pool = new Pool;
    std::lock_guard<std::mutex> lock(pool->mutex);
    return pool->strings.insert(text).first->c_str();
}

}  // namespace sim
