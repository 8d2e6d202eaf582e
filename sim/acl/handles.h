// Handles that the C interface gives out. A number is used once, so a handle that was destroyed, or is of another kind, is told
// by name instead of reaching memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "sim/acl/status.h"

namespace sim::acl {

// The upper bits of a handle say what it is.
enum class HandleKind : uint64_t { Context = 1, Stream = 2, Event = 3, Model = 4, TaskGroup = 5 };
const char* HandleName(HandleKind kind);

template <typename T, HandleKind kind>
class HandleTable {
public:
    void* Add(std::shared_ptr<T> object) {
        std::unique_lock<std::shared_mutex> lock(mutex_);
        const uint64_t value = kFirst + (next_++ << 4);
        objects_.emplace(value, std::move(object));
        return reinterpret_cast<void*>(value);
    }
    std::shared_ptr<T> Find(const void* handle) const {
        std::shared_lock<std::shared_mutex> lock(mutex_);
        const auto it = objects_.find(reinterpret_cast<uint64_t>(handle));
        return it == objects_.end() ? nullptr : it->second;
    }
    std::shared_ptr<T> Get(const void* handle) const {
        auto found = Find(handle);
        if (found == nullptr) RefuseHandle(handle);
        return found;
    }
    std::shared_ptr<T> Remove(const void* handle) {
        std::unique_lock<std::shared_mutex> lock(mutex_);
        const auto it = objects_.find(reinterpret_cast<uint64_t>(handle));
        if (it == objects_.end()) {
            lock.unlock();
            RefuseHandle(handle);
        }
        auto found = std::move(it->second);
        objects_.erase(it);
        return found;
    }
    std::vector<std::shared_ptr<T>> All() const {
        std::shared_lock<std::shared_mutex> lock(mutex_);
        std::vector<std::shared_ptr<T>> all;
        for (const auto& entry : objects_) all.push_back(entry.second);
        return all;
    }

private:
    static constexpr uint64_t kFirst = (uint64_t(kind) << 48) | 0x10;
    [[noreturn]] void RefuseHandle(const void* handle) const {
        const uint64_t value = reinterpret_cast<uint64_t>(handle);
        if (handle == nullptr) Refuse(kInvalidHandle, "the %s is null", HandleName(kind));
        if (value >= kFirst && value < kFirst + (next_ << 4)) Refuse(kInvalidHandle, "%s %p was destroyed", HandleName(kind), handle);
        const uint64_t other = value >> 48;
        const bool known = other >= uint64_t(HandleKind::Context) && other <= uint64_t(HandleKind::TaskGroup);
        Refuse(kInvalidHandle, "%p is no %s%s%s", handle, HandleName(kind), known ? " but of kind " : "",
               known ? HandleName(HandleKind(other)) : "");
    }
    mutable std::shared_mutex mutex_;
    std::unordered_map<uint64_t, std::shared_ptr<T>> objects_;
    std::atomic<uint64_t> next_{0};
};

}  // namespace sim::acl
