#include "sim/acl/capture.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "acl/acl_base.h"
#include "sim/acl/event.h"
#include "sim/acl/model.h"
#include "sim/host/text.h"

namespace sim::acl {

enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };

// Under CaptureMutex().
class Capture {
public:
    Capture(const Stream* from, CaptureMode given, std::shared_ptr<Model> into)
        : origin(from), mode(given), model(std::move(into)), thread(std::this_thread::get_id()) {
        Join(from);
    }
    int Join(const Stream* stream) {
        const auto [it, isNew] = branches.try_emplace(stream, int(branches.size()));
        if (isNew) {
            counts.push_back(0);
            seen.emplace_back();
        }
        return it->second;
    }
    size_t Add(const Stream* stream, ModelStep step) {
        step.branch = branches.at(stream);
        ++counts[size_t(step.branch)];
        const size_t index = model->Add(std::move(step));
        if (group != nullptr && groupStream == stream) group->steps.push_back(index);
        return index;
    }
    // How many tasks of each branch are known to be done when the branch gets here.
    std::vector<uint64_t> View(int branch) const {
        std::vector<uint64_t> view = seen[size_t(branch)];
        view.resize(counts.size());
        view[size_t(branch)] = counts[size_t(branch)];
        return view;
    }
    void Merge(int branch, const std::vector<uint64_t>& view) {
        std::vector<uint64_t>& known = seen[size_t(branch)];
        known.resize(std::max(known.size(), view.size()));
        for (size_t i = 0; i < view.size(); ++i) known[i] = std::max(known[i], view[i]);
    }

    const Stream* const origin;
    const CaptureMode mode;
    const std::shared_ptr<Model> model;
    const std::thread::id thread;
    bool active = true;
    std::string lost;                          // why it is invalid; empty: it is valid
    std::map<const Stream*, int> branches;
    std::vector<uint64_t> counts;              // tasks by branch
    std::vector<std::vector<uint64_t>> seen, views;   // by branch; by record
    std::shared_ptr<TaskGroup> group;          // between begin and end
    const Stream* groupStream = nullptr;
};

namespace {

std::mutex& CaptureMutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
}
using Lock = std::lock_guard<std::mutex>;

std::atomic<int> active{0};  // captures and group updates: nothing to look for while there are none
std::atomic<uint32_t> nextModel{1};
std::vector<std::shared_ptr<Capture>>& ActiveCaptures() {
    static auto* captures = new std::vector<std::shared_ptr<Capture>>;
    return *captures;
}
thread_local CaptureMode threadMode = CaptureMode::Global;

void Lose(Capture& capture, const std::string& reason) {
    if (capture.active && capture.lost.empty()) capture.lost = reason;
}

// One sentence for the call that is refused and for all that learn of the lost capture later.
template <typename... Parts>
[[noreturn]] void LoseAndRefuse(Capture& capture, int code, const char* format, Parts... parts) {
    const std::string reason = host::Format(format, parts...);
    Lose(capture, reason);
    Refuse(code, "%s", reason.c_str());
}

void RefuseWhenLost(const Capture& capture) {
    if (!capture.lost.empty()) Refuse(kCaptureInvalidated, "the capture is lost: %s", capture.lost.c_str());
}

CaptureMode CheckedMode(int mode) {
    if (mode < 0 || mode > int(CaptureMode::Relaxed)) Refuse(kInvalidParameter, "capture mode %d does not exist, modes are 0 to 2", mode);
    return CaptureMode(mode);
}

}  // namespace

bool IsCaptured(const Stream& stream) {
    if (active == 0) return false;
    Lock lock(CaptureMutex());
    return stream.capture != nullptr;
}

bool RecordTask(const std::shared_ptr<Stream>& stream, Task* task) {
    if (active == 0) return false;
    Lock lock(CaptureMutex());
    if (stream->update != nullptr) {
        if (task->kind != TaskKind::Work)
            Refuse(kTaskGroupStatus, "stream %d is updating a task group, which takes operators and no %s", stream->id, task->name.c_str());
        stream->update->tasks.push_back(std::move(*task));
        return true;
    }
    if (stream->capture == nullptr) return false;
    RefuseWhenLost(*stream->capture);
    ModelStep step;
    step.task = std::make_shared<Task>(std::move(*task));
    stream->capture->Add(stream.get(), std::move(step));
    return true;
}

bool RecordInCapture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event) {
    if (active == 0) return false;
    Lock lock(CaptureMutex());
    const auto& capture = stream->capture;
    if (capture == nullptr) return false;
    RefuseWhenLost(*capture);
    ModelStep step;
    step.kind = ModelStep::Kind::Record;
    step.record = int(capture->views.size());
    capture->Add(stream.get(), step);
    capture->views.push_back(capture->View(capture->branches.at(stream.get())));
    std::lock_guard<std::mutex> eventLock(event->mutex);
    event->captured = {capture, step.record};
    return true;
}

bool WaitInCapture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event) {
    if (active == 0) return false;
    Lock lock(CaptureMutex());
    CapturedRecord record;
    {
        std::lock_guard<std::mutex> eventLock(event->mutex);
        record = event->captured;
    }
    const auto own = stream->capture;
    if (record.capture == nullptr) {
        if (own == nullptr) return false;
        RefuseWhenLost(*own);
        LoseAndRefuse(*own, kCaptureDependency, "stream %d is captured, the event it waits for was not recorded in the capture: create "
                      "the event with ACL_EVENT_EXTERNAL, or record it on a captured stream", stream->id);
    }
    if (!record.capture->active) Refuse(kEventCaptured, "the event was recorded in a capture that has ended");
    RefuseWhenLost(*record.capture);
    if (own != nullptr && own != record.capture) {
        Lose(*record.capture, host::Format("stream %d, which another capture has, waits for an event of this one", stream->id));
        LoseAndRefuse(*own, kCaptureDependency, "stream %d waits for an event of another capture", stream->id);
    }
    stream->capture = record.capture;
    Capture& capture = *record.capture;
    const int branch = capture.Join(stream.get());
    capture.Merge(branch, capture.views[size_t(record.record)]);
    ModelStep step;
    step.kind = ModelStep::Kind::Wait;
    step.record = record.record;
    capture.Add(stream.get(), step);
    return true;
}

void RefuseWhenCaptured(const Stream& stream, const char* what) {
    if (active == 0) return;
    Lock lock(CaptureMutex());
    if (stream.capture == nullptr) return;
    LoseAndRefuse(*stream.capture, kStreamCaptured, "stream %d is captured and cannot be %s", stream.id, what);
}

void RefuseUnsafeCall(const char* what) {
    if (active == 0 || threadMode == CaptureMode::Relaxed) return;
    Lock lock(CaptureMutex());
    for (const auto& capture : ActiveCaptures()) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbidden = own ? capture->mode != CaptureMode::Relaxed
                                   : capture->mode == CaptureMode::Global && threadMode == CaptureMode::Global;
        if (!forbidden) continue;
        LoseAndRefuse(*capture, kCaptureModeRefuses, "%s takes effect at once and cannot be captured; stream %d is being captured", what,
                      capture->origin->id);
    }
}

void RefuseBlockingCopy(const Stream& stream) {
    if (active == 0) return;
    Lock lock(CaptureMutex());
    if (stream.capture == nullptr) return;
    LoseAndRefuse(*stream.capture, kCaptureBlockingCopy, "stream %d is captured: a copy to or from pageable host memory waits for its "
                  "end and cannot be captured, use pinned memory", stream.id);
}

void LoseCapture(Capture& capture, const std::string& reason) {
    Lock lock(CaptureMutex());
    Lose(capture, reason);
}

namespace {

void Begin(void* handle, int mode) {
    const auto stream = GetStream(handle);
    if (handle == nullptr) Refuse(kCaptureModeRefuses, "the default stream cannot be captured");
    const CaptureMode checked = CheckedMode(mode);
    Lock lock(CaptureMutex());
    if (stream->capture != nullptr) Refuse(kStreamCaptured, "stream %d is captured already", stream->id);
    if (stream->update != nullptr) Refuse(kTaskGroupStatus, "stream %d is updating a task group", stream->id);
    auto model = std::make_shared<Model>(nextModel++);
    model->handle = TheModels().Add(model);
    stream->capture = std::make_shared<Capture>(stream.get(), checked, std::move(model));
    ActiveCaptures().push_back(stream->capture);
    ++active;
}

// Takes the capture from all its streams.
void Finish(const std::shared_ptr<Capture>& capture) {
    for (const auto& stream : TheStreams().All())
        if (stream->capture == capture) stream->capture = nullptr;
    capture->active = false;
    auto& captures = ActiveCaptures();
    captures.erase(std::find(captures.begin(), captures.end(), capture));
    --active;
}

void End(void* handle, void** modelHandle) {
    NotNull(modelHandle, "modelRI") = nullptr;
    const auto stream = GetStream(handle);
    Lock lock(CaptureMutex());
    const auto capture = stream->capture;
    if (capture == nullptr) Refuse(kStreamNotCaptured, "stream %d is not captured", stream->id);
    if (capture->origin != stream.get()) {
        LoseAndRefuse(*capture, kCaptureUnmatched, "the capture did not begin on stream %d but on %d", stream->id, capture->origin->id);
    }
    if (capture->mode != CaptureMode::Relaxed && capture->thread != std::this_thread::get_id()) {
        LoseAndRefuse(*capture, kCaptureWrongThread, "the capture of stream %d began in another thread", stream->id);
    }
    Finish(capture);
    const std::shared_ptr<Model>& model = capture->model;
    const auto view = capture->View(0);
    const bool joined = std::equal(view.begin(), view.end(), capture->counts.begin(),
                                   [](uint64_t known, uint64_t count) { return known >= count; });
    if (!capture->lost.empty() || !joined || capture->group != nullptr) TheModels().Remove(model->handle);
    RefuseWhenLost(*capture);
    if (capture->group != nullptr) Refuse(kTaskGroupStatus, "a task group has begun and not ended");
    if (!joined)
        Refuse(kStreamUnjoined, "a stream joined the capture and stream %d does not wait for its last task: record an event there and "
               "wait for it", stream->id);
    model->branches = int(capture->counts.size());
    model->records = int(capture->views.size());
    *modelHandle = model->handle;
}

void BeginGroup(void* handle) {
    const auto stream = GetStream(handle);
    Lock lock(CaptureMutex());
    const auto& capture = stream->capture;
    if (capture == nullptr) Refuse(kStreamNotCaptured, "stream %d is not captured", stream->id);
    RefuseWhenLost(*capture);
    if (capture->group != nullptr) Refuse(kTaskGroupStatus, "a task group has begun on stream %d and not ended", capture->groupStream->id);
    capture->group = std::make_shared<TaskGroup>();
    capture->group->model = capture->model;
    capture->groupStream = stream.get();
}

void EndGroup(void* handle, void** group) {
    const auto stream = GetStream(handle);
    Lock lock(CaptureMutex());
    const auto& capture = stream->capture;
    if (capture == nullptr) Refuse(kStreamNotCaptured, "stream %d is not captured", stream->id);
    if (capture->group == nullptr || capture->groupStream != stream.get())
        Refuse(kTaskGroupStatus, "no task group has begun on stream %d", stream->id);
    NotNull(group, "handle") = capture->group->handle = TheTaskGroups().Add(capture->group);
    capture->group = nullptr;
}

void BeginUpdate(void* handle, void* groupHandle) {
    const auto stream = GetStream(handle);
    const auto group = TheTaskGroups().Get(groupHandle);
    Lock lock(CaptureMutex());
    if (stream->capture != nullptr) Refuse(kStreamCaptured, "stream %d is captured and cannot update a task group", stream->id);
    if (stream->update != nullptr) Refuse(kTaskGroupStatus, "stream %d is updating a task group already", stream->id);
    stream->update = std::make_shared<TaskUpdate>();
    stream->update->group = group;
    ++active;
}

void EndUpdate(void* handle) {
    const auto stream = GetStream(handle);
    std::shared_ptr<TaskUpdate> update;
    {
        Lock lock(CaptureMutex());
        if (stream->update == nullptr) Refuse(kTaskGroupStatus, "stream %d is not updating a task group", stream->id);
        update = std::exchange(stream->update, nullptr);
        --active;
    }
    const auto model = update->group->model.lock();
    if (model == nullptr) Refuse(kInvalidHandle, "the model of the task group was destroyed");
    const TaskGroup& group = *update->group;
    if (update->tasks.size() != group.steps.size())
        Refuse(kModelUpdateFailed, "the task group has %zu tasks, the update %zu", group.steps.size(), update->tasks.size());
    for (size_t i = 0; i < group.steps.size(); ++i) {
        const std::string captured = model->TaskName(group.steps[i]);
        if (captured != update->tasks[i].name)
            Refuse(kModelUpdateFailed, "task %zu of the group is %s, the update has %s", i, captured.c_str(),
                   update->tasks[i].name.c_str());
    }
    stream->Append({"task group update", TaskKind::Callback, [model, update](double*) {
                        model->Replace(*update->group, update->tasks);
                        return WorkResult();
                    }});
}

}  // namespace

void AbandonCapture(Stream& stream) {
    if (active == 0) return;
    Lock lock(CaptureMutex());
    if (std::exchange(stream.update, nullptr) != nullptr) --active;
    const auto capture = std::exchange(stream.capture, nullptr);
    if (capture == nullptr) return;
    Finish(capture);
    TheModels().Remove(capture->model->handle);
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclmdlRICaptureBegin(void* stream, int mode) {
    return Call("aclmdlRICaptureBegin", [&] { Begin(stream, mode); });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureEnd(void* stream, void** model) {
    return Call("aclmdlRICaptureEnd", [&] { End(stream, model); });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureGetInfo(void* handle, int* status, void** model) {
    return Call("aclmdlRICaptureGetInfo", [&] {
        const auto stream = GetStream(handle);
        Lock lock(CaptureMutex());
        const auto& capture = stream->capture;
        NotNull(status, "status") = capture == nullptr ? 0 : capture->lost.empty() ? 1 : 2;  // none, active, invalidated
        if (model != nullptr) *model = capture == nullptr ? nullptr : capture->model->handle;
    });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureThreadExchangeMode(int* mode) {
    return Call("aclmdlRICaptureThreadExchangeMode", [&] {
        const CaptureMode wanted = CheckedMode(NotNull(mode, "mode"));
        *mode = int(std::exchange(threadMode, wanted));
    });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureTaskGrpBegin(void* stream) {
    return Call("aclmdlRICaptureTaskGrpBegin", [&] { BeginGroup(stream); });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureTaskGrpEnd(void* stream, void** group) {
    return Call("aclmdlRICaptureTaskGrpEnd", [&] { EndGroup(stream, group); });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureTaskUpdateBegin(void* stream, void* group) {
    return Call("aclmdlRICaptureTaskUpdateBegin", [&] { BeginUpdate(stream, group); });
}
ACL_FUNC_VISIBILITY int aclmdlRICaptureTaskUpdateEnd(void* stream) {
    return Call("aclmdlRICaptureTaskUpdateEnd", [&] { EndUpdate(stream); });
}

}  // extern "C"
