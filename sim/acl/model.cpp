#include "sim/acl/model.h"

#include <algorithm>
#include <cstdio>

#include "acl/acl_base.h"
#include "sim/acl/capture.h"
#include "sim/acl/reports.h"
#include "sim/core/json.h"

namespace sim::acl {

size_t Model::Add(ModelStep step) {
    std::lock_guard<std::mutex> lock(mutex_);
    steps_.push_back(std::move(step));
    return steps_.size() - 1;
}

void Model::Replace(const TaskGroup& group, std::vector<Task> tasks) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < tasks.size(); ++i) steps_[group.steps[i]].task = std::make_shared<Task>(std::move(tasks[i]));
}

WorkResult Model::Run(double* clock) {
    std::vector<double> clocks(static_cast<size_t>(branches), *clock), recorded(static_cast<size_t>(records), *clock);
    for (size_t i = 0;; ++i) {
        ModelStep step;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (i == steps_.size()) break;
            step = steps_[i];
        }
        double& at = clocks[static_cast<size_t>(step.branch)];
        if (step.kind == ModelStep::Kind::Record) {
            recorded[static_cast<size_t>(step.record)] = at;
        } else if (step.kind == ModelStep::Kind::Wait) {
            at = std::max(at, recorded[static_cast<size_t>(step.record)]);
        } else {
            WorkResult result = RunStep(*step.task, step.branch, &at);
            if (result.status != 0) {
                *clock = *std::max_element(clocks.begin(), clocks.end());
                return result;
            }
        }
    }
    *clock = *std::max_element(clocks.begin(), clocks.end());
    return {};
}

size_t Model::Steps() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return steps_.size();
}

std::string Model::TaskName(size_t step) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return steps_[step].task != nullptr ? steps_[step].task->name : "event";
}

std::string Model::Json() const {
    std::lock_guard<std::mutex> lock(mutex_);
    static const char* const kKinds[] = {"task", "event record", "event wait"};
    JsonWriter json;
    json.BeginObject().Field("id", id).Field("streams", branches).Key("tasks").BeginArray();
    for (const ModelStep& step : steps_) {
        json.BeginObject().Field("stream", step.branch).Field("type", kKinds[int(step.kind)]);
        if (step.task != nullptr) json.Field("name", step.task->name);
        else json.Field("event", step.record);
        json.EndObject();
    }
    return json.EndArray().EndObject().Take();
}

Models& TheModels() {
    static Models* models = new Models;
    return *models;
}

TaskGroups& TheTaskGroups() {
    static TaskGroups* groups = new TaskGroups;
    return *groups;
}

namespace {

void Destroy(void* handle) {
    const auto model = TheModels().Remove(handle);
    for (const auto& group : TheTaskGroups().All())
        if (group->model.lock() == model) TheTaskGroups().Remove(group->handle);
}

// The task that runs a model as part of a stream.
Task ExecuteTask(const std::shared_ptr<Model>& model) {
    return {"model " + std::to_string(model->id), TaskKind::Model, [model](double* clock) { return model->Run(clock); }};
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclmdlRIExecuteAsync(void* model, void* stream) {
    return Call("aclmdlRIExecuteAsync", [&] {
        const auto target = GetStream(stream);
        Submit(target, ExecuteTask(TheModels().Get(model)));
    });
}
ACL_FUNC_VISIBILITY int aclmdlRIExecute(void* model, int32_t milliseconds) {
    return Call("aclmdlRIExecute", [&] {
        RefuseUnsafeCall("aclmdlRIExecute");
        const auto stream = GetStream(nullptr);
        Submit(stream, ExecuteTask(TheModels().Get(model)));
        if (!stream->Drain(milliseconds)) Refuse(kStreamSyncTimeout, "the model did not finish within %d ms", milliseconds);
        ThrowFailure(*stream);
    });
}
// Executions that are queued keep the model until they have run.
ACL_FUNC_VISIBILITY int aclmdlRIDestroy(void* model) {
    return Call("aclmdlRIDestroy", [&] { Destroy(model); });
}
ACL_FUNC_VISIBILITY int aclmdlRIGetId(void* model, uint32_t* id) {
    return Call("aclmdlRIGetId", [&] { NotNull(id, "modelRIId") = TheModels().Get(model)->id; });
}
ACL_FUNC_VISIBILITY int aclmdlRIDebugPrint(void* model) {
    return Call("aclmdlRIDebugPrint", [&] { std::fprintf(stderr, "%s\n", TheModels().Get(model)->Json().c_str()); });
}
ACL_FUNC_VISIBILITY int aclmdlRIDebugJsonPrint(void* model, const char* path, uint32_t) {
    return Call("aclmdlRIDebugJsonPrint", [&] {
        const std::string json = TheModels().Get(model)->Json();
        FILE* file = std::fopen(&NotNull(path, "path"), "w");
        if (file == nullptr) Refuse(kInvalidParameter, "cannot write %s", path);
        const bool written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
        if (std::fclose(file) != 0 || !written) Refuse(kInvalidParameter, "cannot write %s", path);
    });
}

}  // extern "C"
