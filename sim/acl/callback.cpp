// Host functions in a stream: run by the stream's worker (aclrtLaunchHostFunc), or by a thread of the caller that subscribed to the
// stream and calls aclrtProcessReport.
#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "acl/acl_base.h"
#include "sim/acl/capture.h"
#include "sim/acl/stream.h"

namespace sim::acl {
namespace {

using Function = void (*)(void*);

struct Pending {
    Function function;
    void* argument;
    uint64_t number;
};
struct Mailbox {  // of one subscribed thread
    std::deque<Pending> pending;
    int subscriptions = 0;
    uint64_t posted = 0, run = 0;
};
struct Mailboxes {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint64_t, Mailbox> byThread;
};
Mailboxes& TheMailboxes() {
    static Mailboxes* mailboxes = new Mailboxes;
    return *mailboxes;
}

void Post(uint64_t thread, Function function, void* argument, bool block) {
    Mailboxes& all = TheMailboxes();
    std::unique_lock<std::mutex> lock(all.mutex);
    const auto it = all.byThread.find(thread);
    if (it == all.byThread.end()) return;  // unsubscribed meanwhile: nobody is left to run it
    const uint64_t number = ++it->second.posted;
    it->second.pending.push_back({function, argument, number});
    all.changed.notify_all();
    while (block && !IsExiting()) {
        const auto box = all.byThread.find(thread);
        if (box == all.byThread.end() || box->second.run >= number) return;
        all.changed.wait_for(lock, std::chrono::milliseconds(50));
    }
}

void LaunchCallback(Function function, void* argument, bool block, void* handle) {
    NotNull(reinterpret_cast<char*>(function), "fn");
    const auto stream = GetStream(handle);
    const uint64_t thread = stream->subscribedThread;
    if (thread == 0) Refuse(kStreamNoCallback, "no thread has subscribed to stream %d (aclrtSubscribeReport)", stream->id);
    Submit(stream, {"callback", TaskKind::Callback, [=](double*) {
                        Post(thread, function, argument, block);
                        return sim::WorkResult();
                    }});
}

void ProcessReport(int32_t milliseconds) {
    Mailboxes& all = TheMailboxes();
    std::unique_lock<std::mutex> lock(all.mutex);
    const uint64_t self = static_cast<uint64_t>(pthread_self());
    if (all.byThread.count(self) == 0) Refuse(kThreadNotSubscribed, "this thread has not subscribed to a stream (aclrtSubscribeReport)");
    const auto ready = [&] {
        const auto it = all.byThread.find(self);
        return it == all.byThread.end() || !it->second.pending.empty();
    };
    if (milliseconds < 0) all.changed.wait(lock, ready);
    else if (!all.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), ready))
        Refuse(kCallbackTimeout, "no callback within %d ms", milliseconds);
    const auto it = all.byThread.find(self);
    if (it == all.byThread.end()) return;
    const Pending next = it->second.pending.front();
    it->second.pending.pop_front();
    lock.unlock();
    next.function(next.argument);
    lock.lock();
    if (const auto box = all.byThread.find(self); box != all.byThread.end()) box->second.run = next.number;
    all.changed.notify_all();
}

void Subscribe(uint64_t thread, void* handle) {
    const auto stream = GetStream(handle);
    uint64_t none = 0;
    if (!stream->subscribedThread.compare_exchange_strong(none, thread))
        Refuse(kStreamSubscribed, "stream %d has a subscribed thread already", stream->id);
    std::lock_guard<std::mutex> lock(TheMailboxes().mutex);
    ++TheMailboxes().byThread[thread].subscriptions;
}

void Unsubscribe(uint64_t thread, void* handle) {
    const auto stream = GetStream(handle);
    if (!stream->subscribedThread.compare_exchange_strong(thread, 0))
        Refuse(kStreamSubscribed, "the thread has not subscribed to stream %d", stream->id);
    std::lock_guard<std::mutex> lock(TheMailboxes().mutex);
    const auto it = TheMailboxes().byThread.find(thread);
    if (it != TheMailboxes().byThread.end() && --it->second.subscriptions == 0) TheMailboxes().byThread.erase(it);
    TheMailboxes().changed.notify_all();
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtSubscribeReport(uint64_t thread, void* stream) {
    return Call("aclrtSubscribeReport", [&] { Subscribe(thread, stream); });
}
ACL_FUNC_VISIBILITY int aclrtUnSubscribeReport(uint64_t thread, void* stream) {
    return Call("aclrtUnSubscribeReport", [&] { Unsubscribe(thread, stream); });
}
ACL_FUNC_VISIBILITY int aclrtProcessReport(int32_t milliseconds) {
    return Call("aclrtProcessReport", [&] { ProcessReport(milliseconds); });
}
ACL_FUNC_VISIBILITY int aclrtLaunchCallback(Function function, void* argument, int blockType, void* stream) {
    return Call("aclrtLaunchCallback", [&] { LaunchCallback(function, argument, blockType == 1, stream); });
}
ACL_FUNC_VISIBILITY int aclrtLaunchHostFunc(void* stream, Function function, void* argument) {
    return Call("aclrtLaunchHostFunc", [&] {
        NotNull(reinterpret_cast<char*>(function), "fn");
        Submit(GetStream(stream), {"host function", TaskKind::Callback, [=](double*) {
                                       function(argument);
                                       return sim::WorkResult();
                                   }});
    });
}

}  // extern "C"
