// The two phases of generated aclnn functions, and inference alone.
#include <algorithm>
#include <memory>

#include "aclnn/aclnn_base.h"
#include "sim/core/json.h"
#include "sim/opapi/executor.h"
#include "sim/opapi/kernel_library.h"
#include "sim/opapi/kernel_work.h"
#include "sim/opapi/one_device.h"
#include "sim/opapi/op_call.h"
#include "sim/opapi/session.h"

namespace sim::opapi {
namespace {

using host::Refuse;

bool AllEmpty(const std::vector<Argument>& outputs) {
    for (const Argument& output : outputs)
        for (const aclTensor& tensor : output.tensors)
            if (tensor.Elements() != 0) return false;
    return true;
}

// An output of an input's name must be given that input.
void CheckInPlace(const host::Op& op, const std::vector<Argument>& inputs, const std::vector<Argument>& outputs) {
    for (const Argument& output : outputs) {
        if (output.parameter->inPlace < 0 || output.tensors.empty()) continue;
        const Argument& input = inputs[static_cast<size_t>(output.parameter->inPlace)];
        if (input.tensors.empty() || input.tensors.front().First() != output.tensors.front().First())
            Refuse(host::kInvalidParameter, "%s: %s is written in place, input and output must be the same tensor",
                   op.type.c_str(), output.parameter->name.c_str());
    }
}

void CheckOneDevice(const host::Op& op, const std::vector<Argument>& inputs, const std::vector<Argument>& outputs) {
    OneDevice device;
    for (const auto* arguments : {&inputs, &outputs})
        for (const Argument& argument : *arguments)
            for (size_t i = 0; i < argument.tensors.size(); ++i)
                device.Add(argument.tensors[i].data, [&] { return op.type + ": " + argument.Name(i); });
}

std::unique_ptr<aclOpExecutor> Prepare(const OpOfPackage& target, std::vector<Argument> inputs, std::vector<Argument> outputs,
                                       gert::RuntimeAttrs attributes) {
    const int column = SelectColumn(*target.op, *target.config, inputs, outputs);
    CheckInPlace(*target.op, inputs, outputs);
    OpCall call(target, std::move(inputs), std::move(attributes));
    call.CheckOutputs(outputs);

    auto executor = std::make_unique<aclOpExecutor>();
    executor->library = target.library;
    executor->op = target.op->type;
    executor->soc = target.soc;
    executor->launches = !AllEmpty(outputs);
    if (executor->launches) {
        call.Tile();
        const host::TilingResult& tiling = call.node.tiling;
        executor->invoke = LoadKernel(target.Kernel(column));
        executor->blockDim = tiling.blockDim;
        executor->scheduleMode = tiling.scheduleMode;
        executor->tilingKey = tiling.key;
        const uint8_t* data = static_cast<const uint8_t*>(tiling.data.GetData());
        executor->tilingData.assign(data, data + tiling.data.GetDataSize());
        for (const size_t bytes : tiling.workspaces) executor->workspaceBytes += bytes;
    }
    executor->inputs = std::move(call.inputs);
    executor->outputs = std::move(outputs);
    return executor;
}

}  // namespace
}  // namespace sim::opapi

using namespace sim::opapi;
using sim::host::kNullPointer;
using sim::host::Refuse;

int SimOpPrepare(const char* package, const char* opType, const aclTensor* const* inputs, int32_t inputCount,
                 const SimAttribute* attributes, int32_t attributeCount, const aclTensor* const* outputs, int32_t outputCount,
                 uint64_t* workspaceBytes, aclOpExecutor** executor) {
    return GuardStatus([&] {
        if (workspaceBytes == nullptr || executor == nullptr)
            Refuse(kNullPointer, "%s: workspaceSize and executor must not be null", opType);
        const OpOfPackage target(package, opType);
        const sim::host::Op& op = *target.op;
        auto given = CollectArguments(op, "inputs", op.inputs, inputs, inputCount);
        auto results = CollectArguments(op, "outputs", op.outputs, outputs, outputCount);
        CheckOneDevice(op, given, results);
        auto prepared = Prepare(target, std::move(given), std::move(results), ReadAttributes(op, attributes, attributeCount));
        *workspaceBytes = prepared->workspaceBytes;
        *executor = prepared.release();
    });
}

int SimOpRun(void* workspace, uint64_t workspaceBytes, aclOpExecutor* executor, void* stream) {
    int32_t submitted = 0;
    const int32_t status = GuardStatus([&] {
        if (executor == nullptr) Refuse(kNullPointer, "the executor is null: GetWorkspaceSize failed or was not called");
        const std::unique_ptr<aclOpExecutor> once(executor->repeatable ? nullptr : executor);
        if (!executor->launches) return;
        const auto work = std::make_shared<const KernelWork>(*executor, workspace, workspaceBytes);
        if (sim::HasDeviceRuntime() && (stream != nullptr || work->OnDevice())) {
            submitted = sim::Submit(stream, {"aclnn" + executor->op, [work] { return work->Run(true); }});
            return;
        }
        const sim::WorkResult result = work->Run(false);
        if (result.status != 0) throw sim::host::HostError(result.status, result.message);
    });
    return status != 0 ? status : submitted;
}

char* SimInferShapes(const char* package, const char* opType, const aclTensor* const* inputs, int32_t inputCount,
                     const SimAttribute* attributes, int32_t attributeCount) {
    return Guard<char*>(nullptr, [&] {
        const OpOfPackage target(package, opType);
        const sim::host::Op& op = *target.op;
        std::vector<Argument> arguments = CollectArguments(op, "inputs", op.inputs, inputs, inputCount);
        const int column = SelectColumn(op, *target.config, arguments, {});
        OpCall call(target, std::move(arguments), ReadAttributes(op, attributes, attributeCount));
        for (const auto& output : op.outputs) {
            const ge::DataType dtype = output.dtypes[static_cast<size_t>(column)];
            call.node.outputs.emplace_back(gert::StorageShape(), gert::StorageFormat(), dtype);
        }
        if (!call.InferShapes())
            Refuse(sim::host::kInferShapeFailed, "%s has no shape inference: pass the outputs", opType);
        call.InferDataTypes();
        sim::JsonWriter json;
        json.BeginArray();
        for (size_t i = 0; i < op.outputs.size(); ++i) {
            const gert::Tensor& tensor = call.node.outputs[i];
            const gert::Shape& shape = tensor.GetOriginShape();
            json.BeginObject().Field("name", op.outputs[i].name).Key("shape").BeginArray();
            for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) json.Value(shape.GetDim(axis));
            json.EndArray().Field("dtype", sim::host::DtypeSymbol(tensor.GetDataType())).EndObject();
        }
        return Hand(json.EndArray().Take());
    });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    delete executor;
    return 0;
}
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
    return GuardStatus([&] {
        if (executor == nullptr) Refuse(kNullPointer, "aclSetAclOpExecutorRepeatable: the executor is null");
        executor->repeatable = true;
    });
}
aclnnStatus aclnnInit(const char*) { return 0; }
aclnnStatus aclnnFinalize() { return 0; }
