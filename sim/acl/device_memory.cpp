#include "sim/acl/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "sim/acl/status.h"
#include "sim/host/text.h"

namespace sim::acl {
namespace {

constexpr size_t kFreedKept = 4096;  // freed allocations that messages can still name

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Pages as on the device: huge ones from 1 MiB on.
size_t PageOf(size_t bytes) { return bytes >= kHugePageBytes / 2 ? kHugePageBytes : kPageBytes; }

}  // namespace

void Sentence::Set(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
}

DeviceMemory::DeviceMemory(int device, const AddressSpace& space, uintptr_t begin, size_t span, size_t capacity)
    : device_(device), space_(space), begin_(begin), span_(span), capacity_(capacity), next_(begin + kHugePageBytes) {}

bool DeviceMemory::IsFree(uintptr_t begin, size_t bytes) const {
    if (begin < begin_ || bytes > span_ || begin + bytes > begin_ + span_) return false;
    const auto after = occupied_.lower_bound(begin);
    if (after != occupied_.end() && after->first < begin + bytes) return false;
    if (after == occupied_.begin()) return true;
    const auto before = std::prev(after);
    return before->first + RoundUp(before->second.bytes, kPageBytes) <= begin;
}

uintptr_t DeviceMemory::FindRoom(size_t bytes, size_t alignment) {
    if (bytes > span_) return 0;
    for (int round = 0; round < 2; ++round, next_ = begin_ + kHugePageBytes) {
        uintptr_t at = RoundUp(next_, alignment);
        auto it = occupied_.lower_bound(at);
        if (it != occupied_.begin()) {
            const auto before = std::prev(it);
            at = std::max(at, RoundUp(before->first + before->second.bytes + kPageBytes, alignment));
        }
        for (; it != occupied_.end() && it->first < at + bytes + kPageBytes; ++it)
            at = RoundUp(it->first + it->second.bytes + kPageBytes, alignment);
        if (at + bytes + kPageBytes > begin_ + span_) continue;
        next_ = at + RoundUp(bytes, kPageBytes) + kPageBytes;  // at least one page between neighbours
        return at;
    }
    return 0;
}

void DeviceMemory::Take(size_t bytes) {
    if (bytes > capacity_ - used_)
        Refuse(kOutOfMemory, "device %d is out of memory: %zu bytes asked for, %zu of %zu free", device_, bytes,
               capacity_ - used_, capacity_);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
}

void* DeviceMemory::Allocate(size_t bytes) {
    if (bytes == 0) Refuse(kInvalidParameter, "size is 0, it must be at least 1");
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const size_t page = PageOf(bytes);
    if (bytes > capacity_) Take(bytes);
    Take(RoundUp(bytes, page));
    const uintptr_t at = FindRoom(bytes, page);
    if (at == 0 || !space_.Commit(at, bytes)) {
        used_ -= RoundUp(bytes, page);
        Refuse(kOutOfMemory, "device %d: the host gives no memory for %zu bytes", device_, bytes);
    }
    const Extent extent{Kind::Allocation, bytes, ++serial_, 0};
    occupied_.emplace(at, extent);
    accessible_.emplace(at, extent);
    return Pointer(at);
}

void DeviceMemory::Free(void* address) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto it = occupied_.find(Address(address));
    if (it == occupied_.end() || it->second.kind != Kind::Allocation)
        Refuse(kInvalidParameter, "%p is not the begin of an allocation: %s", address, DescribeLocked(Address(address)).c_str());
    const Extent extent = it->second;
    space_.Decommit(it->first, extent.bytes);
    used_ -= RoundUp(extent.bytes, PageOf(extent.bytes));
    if (freed_.size() == kFreedKept) freed_.pop_front();
    freed_.push_back({it->first, extent.bytes, extent.serial});
    accessible_.erase(it->first);
    occupied_.erase(it);
}

void* DeviceMemory::Reserve(size_t bytes, void* wish) {
    if (bytes == 0) Refuse(kInvalidParameter, "size is 0, it must be at least 1");
    std::unique_lock<std::shared_mutex> lock(mutex_);
    uintptr_t at = Address(wish);
    if (wish == nullptr || at % kPageBytes != 0 || !IsFree(at, bytes)) at = FindRoom(bytes, kHugePageBytes);
    if (at == 0) Refuse(kOutOfMemory, "device %d has no room for %zu bytes of addresses", device_, bytes);
    occupied_.emplace(at, Extent{Kind::Reservation, bytes, ++serial_, 0});
    return Pointer(at);
}

void DeviceMemory::Release(void* address) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto it = occupied_.find(Address(address));
    if (it == occupied_.end() || it->second.kind != Kind::Reservation)
        Refuse(kInvalidParameter, "%p is not the begin of a reservation: %s", address, DescribeLocked(Address(address)).c_str());
    const auto mapped = accessible_.lower_bound(it->first);
    if (mapped != accessible_.end() && mapped->first < it->first + it->second.bytes)
        Refuse(kInvalidParameter, "%p is still mapped: aclrtUnmapMem comes first", Pointer(mapped->first));
    occupied_.erase(it);
}

void* DeviceMemory::CreatePhysical(size_t bytes) {
    if (bytes == 0) Refuse(kInvalidParameter, "size is 0, it must be at least 1");
    std::unique_lock<std::shared_mutex> lock(mutex_);
    if (file_ < 0) file_ = memfd_create("npu", MFD_CLOEXEC);
    const size_t whole = RoundUp(bytes, kPageBytes);
    Take(whole);
    // A hole of the file is reused only when it is at the end: offsets are plentiful, pages come on touch.
    uint64_t offset = 0;
    for (const auto& [handle, memory] : physical_) offset = std::max(offset, memory.fileOffset + RoundUp(memory.bytes, kPageBytes));
    if (file_ < 0 || (offset + whole > fileBytes_ && ftruncate(file_, static_cast<off_t>(offset + whole)) != 0)) {
        used_ -= whole;
        Refuse(kOutOfMemory, "device %d: the host gives no memory for %zu bytes", device_, bytes);
    }
    fileBytes_ = std::max<uint64_t>(fileBytes_, offset + whole);
    physical_[nextHandle_] = {bytes, offset};
    return Pointer(nextHandle_++);
}

void DeviceMemory::DropPhysical(std::map<uint64_t, Physical>::iterator it) {
    const size_t whole = RoundUp(it->second.bytes, kPageBytes);
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(it->second.fileOffset),
              static_cast<off_t>(whole));
    used_ -= whole;
    physical_.erase(it);
}

void DeviceMemory::DestroyPhysical(void* handle) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto it = physical_.find(Address(handle));
    if (it == physical_.end() || it->second.freed) Refuse(kInvalidHandle, "%p is no handle of physical memory", handle);
    it->second.freed = true;
    if (it->second.mappings == 0) DropPhysical(it);
}

void DeviceMemory::Map(void* address, size_t bytes, size_t offset, void* handle) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto physical = physical_.find(Address(handle));
    if (physical == physical_.end() || physical->second.freed) Refuse(kInvalidHandle, "%p is no handle of physical memory", handle);
    const uintptr_t at = Address(address);
    const auto reservation = Holding(occupied_, at);
    if (reservation == occupied_.end() || reservation->second.kind != Kind::Reservation || bytes > reservation->second.bytes ||
        at + bytes > reservation->first + reservation->second.bytes)
        Refuse(kInvalidParameter, "[%p, +%zu) does not lie in one reservation: %s", address, bytes, DescribeLocked(at).c_str());
    if (bytes == 0 || at % kPageBytes != 0 || offset % kPageBytes != 0 || offset > physical->second.bytes ||
        offset + bytes > RoundUp(physical->second.bytes, kPageBytes))
        Refuse(kInvalidParameter, "size %zu at offset %zu does not fit: the physical memory has %zu bytes, pages %zu", bytes, offset,
               physical->second.bytes, kPageBytes);
    const auto after = accessible_.lower_bound(at);
    const bool overlaps = (after != accessible_.end() && after->first < at + bytes) || Holding(accessible_, at) != accessible_.end();
    if (overlaps) Refuse(kInvalidParameter, "part of [%p, +%zu) is mapped already", address, bytes);
    if (!space_.CommitFile(at, bytes, file_, physical->second.fileOffset + offset))
        Refuse(kOutOfMemory, "device %d: the host cannot map %zu bytes", device_, bytes);
    ++physical->second.mappings;
    accessible_.emplace(at, Extent{Kind::Mapping, bytes, reservation->second.serial, physical->first});
}

void DeviceMemory::Unmap(void* address) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto it = accessible_.find(Address(address));
    if (it == accessible_.end() || it->second.kind != Kind::Mapping)
        Refuse(kInvalidParameter, "%p is not the begin of a mapping: %s", address, DescribeLocked(Address(address)).c_str());
    space_.Decommit(it->first, it->second.bytes);
    const auto physical = physical_.find(it->second.physical);
    if (--physical->second.mappings == 0 && physical->second.freed) DropPhysical(physical);
    accessible_.erase(it);
}

DeviceMemory::Extents::const_iterator DeviceMemory::Holding(const Extents& extents, uintptr_t address) const {
    auto it = extents.upper_bound(address);
    if (it == extents.begin()) return extents.end();
    --it;
    return address < it->first + it->second.bytes ? it : extents.end();
}

std::string DeviceMemory::ExtentError(const void* address, size_t bytes) const {
    if (bytes == 0) return {};
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const uintptr_t begin = Address(address), end = begin + std::min(bytes, span_ + 1);  // the sum must not wrap
    auto it = Holding(accessible_, begin);
    if (it == accessible_.end()) return DescribeLocked(begin);
    uintptr_t reached = it->first + it->second.bytes;
    // Mappings side by side are one piece of memory.
    while (reached < end && it->second.kind == Kind::Mapping && ++it != accessible_.end() && it->first == reached)
        reached += it->second.bytes;
    if (reached >= end) return {};
    return host::Format("%zu bytes at %p reach %zu bytes beyond the end of their memory: ", bytes, address,
                        bytes - size_t(reached - begin)) + DescribeLocked(begin);
}

const DeviceMemory::Freed* DeviceMemory::LastFreed(uintptr_t address) const {
    for (auto it = freed_.rbegin(); it != freed_.rend(); ++it)
        if (address - it->begin < it->bytes) return &*it;
    return nullptr;
}

void DeviceMemory::DescribeLocked(uintptr_t address, Sentence* sentence) const {
    const auto say = [&](const char* what, uintptr_t begin, size_t bytes, uint64_t serial, const char* more) {
        sentence->Set("byte %zu of %s #%llu of device %d [%p, +%zu)%s", size_t(address - begin), what,
                      static_cast<unsigned long long>(serial), device_, Pointer(begin), bytes, more);
    };
    if (const auto it = Holding(accessible_, address); it != accessible_.end())
        return say(it->second.kind == Kind::Mapping ? "a mapping in reservation" : "allocation", it->first, it->second.bytes,
                   it->second.serial, "");
    if (const auto it = Holding(occupied_, address); it != occupied_.end())
        return say("reservation", it->first, it->second.bytes, it->second.serial, ", which has no memory mapped there");
    if (const Freed* freed = LastFreed(address))
        return say("allocation", freed->begin, freed->bytes, freed->serial, ", which was freed");
    const auto after = occupied_.upper_bound(address);
    if (after != occupied_.begin()) {
        const auto before = std::prev(after);
        const uintptr_t end = before->first + before->second.bytes;
        if (address - end < kHugePageBytes)
            return sentence->Set("%zu bytes behind the end of allocation #%llu of device %d [%p, +%zu)", size_t(address - end),
                                 static_cast<unsigned long long>(before->second.serial), device_, Pointer(before->first),
                                 before->second.bytes);
    }
    sentence->Set("%p belongs to no allocation of device %d", Pointer(address), device_);
}

std::string DeviceMemory::DescribeLocked(uintptr_t address) const {
    Sentence sentence;
    DescribeLocked(address, &sentence);
    return sentence.text;
}

std::string DeviceMemory::Describe(uintptr_t address) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return DescribeLocked(address);
}

bool DeviceMemory::DescribeNow(uintptr_t address, Sentence* sentence) const {
    std::shared_lock<std::shared_mutex> lock(mutex_, std::try_to_lock);
    if (lock) DescribeLocked(address, sentence);
    return lock.owns_lock();
}

bool DeviceMemory::AllocationOf(const void* address, void** begin, size_t* bytes) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto it = Holding(accessible_, Address(address));
    if (it == accessible_.end()) return false;
    *begin = Pointer(it->first);
    *bytes = it->second.bytes;
    return true;
}

void DeviceMemory::FreeAll() {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    for (const auto& [begin, extent] : accessible_) {
        space_.Decommit(begin, extent.bytes);
        if (extent.kind == Kind::Allocation) freed_.push_back({begin, extent.bytes, extent.serial});
    }
    while (freed_.size() > kFreedKept) freed_.pop_front();
    accessible_.clear();
    occupied_.clear();
    physical_.clear();
    if (file_ >= 0) close(file_);
    file_ = -1;
    fileBytes_ = 0;
    used_ = 0;
}

size_t DeviceMemory::FreeBytes() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return capacity_ - used_;
}

size_t DeviceMemory::PeakBytes() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return peak_;
}

}  // namespace sim::acl
