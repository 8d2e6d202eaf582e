// A captured model: tasks of one or more streams (branches) in an order that keeps all their dependencies.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sim/acl/handles.h"
#include "sim/acl/stream.h"

namespace sim::acl {

// A task, or an edge between branches: the record of an event, or a wait for it.
struct ModelStep {
    enum class Kind { Task, Record, Wait };
    Kind kind = Kind::Task;
    int branch = 0;
    int record = 0;             // Record, Wait: which
    std::shared_ptr<Task> task; // Task; replaced as a whole by a group update
};

// Tasks between aclmdlRICaptureTaskGrpBegin and End, whose arguments can be replaced between executions.
struct TaskGroup {
    void* handle = nullptr;
    std::weak_ptr<class Model> model;
    std::vector<size_t> steps;
};

// Tasks that a stream collects between aclmdlRICaptureTaskUpdateBegin and End.
struct TaskUpdate {
    std::shared_ptr<TaskGroup> group;
    std::vector<Task> tasks;
};

class Model {
public:
    explicit Model(uint32_t number) : id(number) {}
    const uint32_t id;
    void* handle = nullptr;

    size_t Add(ModelStep step);
    // Tasks of the group get the bodies of `tasks`.
    void Replace(const TaskGroup& group, std::vector<Task> tasks);
    // Executes all steps, beginning at modelled time `*clock`. Ends at the first failure.
    WorkResult Run(double* clock);
    std::string Json() const;   // for aclmdlRIDebugJsonPrint
    size_t Steps() const;
    std::string TaskName(size_t step) const;

    int branches = 1, records = 0;  // fixed when the capture ends

private:
    mutable std::mutex mutex_;
    std::vector<ModelStep> steps_;
};

using TaskGroups = HandleTable<TaskGroup, HandleKind::TaskGroup>;
TaskGroups& TheTaskGroups();
using Models = HandleTable<Model, HandleKind::Model>;
Models& TheModels();

}  // namespace sim::acl
