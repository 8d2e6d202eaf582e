#include "large_results.h"

#if defined(__linux__)
#include <sys/mman.h>

#include <mutex>
#include <vector>

// Since torch 2.11; this library also loads in 2.10, where the address is null.
extern "C" __attribute__((weak)) AOTITorchError torch_from_blob(void* data, int64_t rank, const int64_t* sizes, const int64_t* strides,
                                                                int64_t offset, int32_t dtype, int32_t deviceType, int32_t deviceIndex,
                                                                AtenTensorHandle* tensor, int32_t layout, const uint8_t* metadata,
                                                                int64_t metadataBytes, void (*deleter)(void*, void*), void* context);

namespace custom_ops {
namespace {

constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kKeptBytes = 256 << 20;  // most that is kept; older blocks are unmapped
constexpr int64_t kWarmBytes = 128 << 20;  // of these the newest stay as they are: giving 8 MiB back costs a call a tenth of its time

struct Block {
    void* data;
    int64_t bytes;
    bool warm;  // not given back to the system
};

class Pool {
public:
    // A kept block if one fits without wasting half of it, else a new one; data is null when the system has none.
    Block Take(int64_t bytes) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (size_t i = kept_.size(); i-- > 0;) {
                const Block block = kept_[i];
                if (block.bytes < bytes || block.bytes >= 2 * bytes) continue;
                kept_.erase(kept_.begin() + i);
                keptBytes_ -= block.bytes;
                return block;
            }
        }
        return Map((bytes + kHugePage - 1) / kHugePage * kHugePage);
    }

    void Keep(Block block) {
        std::vector<Block> surplus;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            kept_.push_back(block);
            keptBytes_ += block.bytes;
            CoolOld();
            while (keptBytes_ > kKeptBytes) {
                surplus.push_back(kept_.front());
                keptBytes_ -= kept_.front().bytes;
                kept_.erase(kept_.begin());
            }
        }
        for (const Block& old : surplus) munmap(old.data, old.bytes);
    }

private:
    // The system may take the pages of all but the newest kWarmBytes when it needs some.
    void CoolOld() {
        int64_t bytes = 0;
        for (size_t i = kept_.size(); i-- > 0;) {
            bytes += kept_[i].bytes;
            if (bytes <= kWarmBytes || !kept_[i].warm) continue;
            madvise(kept_[i].data, kept_[i].bytes, MADV_FREE);
            kept_[i].warm = false;
        }
    }

    // Begins on a huge page: maps one more and gives the ends back.
    static Block Map(int64_t bytes) {
        void* mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return {nullptr, 0, false};
        char* begin = static_cast<char*>(mapped);
        const int64_t head = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
        if (head) munmap(begin, head);
        if (kHugePage - head) munmap(begin + head + bytes, kHugePage - head);
        madvise(begin + head, bytes, MADV_HUGEPAGE);
        return {begin + head, bytes, true};
    }

    std::mutex mutex_;
    std::vector<Block> kept_;  // oldest first
    int64_t keptBytes_ = 0;
};

// Never destroyed: tensors may outlive every static object.
Pool& ThePool() {
    static Pool* const pool = new Pool;
    return *pool;
}

void Return(void* data, void* context) {
    ThePool().Keep({data, static_cast<int64_t>(reinterpret_cast<intptr_t>(context)), true});
}

}  // namespace

AtenTensorHandle NewLargeResult(const Shape& shape, const int64_t* strides, int32_t dtype, int64_t bytes) {
    if (!torch_from_blob) return nullptr;
    const Block block = ThePool().Take(bytes);
    if (!block.data) return nullptr;
    AtenTensorHandle tensor = nullptr;
    const AOTITorchError error = torch_from_blob(block.data, shape.rank, shape.sizes, strides, 0, dtype, aoti_torch_device_type_cpu(), -1,
                                                 &tensor, aoti_torch_layout_strided(), nullptr, 0, Return,
                                                 reinterpret_cast<void*>(static_cast<intptr_t>(block.bytes)));
    if (error == AOTI_TORCH_SUCCESS) return tensor;
    ThePool().Keep(block);
    return nullptr;
}

}  // namespace custom_ops

#else

namespace custom_ops {
AtenTensorHandle NewLargeResult(const Shape&, const int64_t*, int32_t, int64_t) { return nullptr; }
}  // namespace custom_ops

#endif
