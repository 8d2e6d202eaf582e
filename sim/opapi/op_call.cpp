#include "sim/opapi/op_call.h"

#include <unistd.h>

#include <map>
#include <mutex>

#include "sim/host/current_soc.h"
#include "sim/host/log.h"
#include "sim/host/text.h"
#include "sim/opapi/session.h"
#include "sim/opapi/stream.h"

namespace sim::opapi {

using host::DtypeName;
using host::Format;
using host::HostError;
using host::Refuse;
using host::Join;
using host::kInferShapeFailed;
using host::kInvalidParameter;
using host::kTilingFailed;
using host::ShapeText;

namespace {

constexpr const char* kHostLibrary = "/op_host/libcust_opmaster.so";

// The directory above `path` that holds an op package.
std::string PackageRoot(const char* path) {
    static std::mutex mutex;
    static std::map<std::string, std::string> roots;
    if (path == nullptr || *path == '\0') Refuse(host::kInnerError, "the path of the op package is empty");
    const std::lock_guard<std::mutex> lock(mutex);
    std::string& root = roots[path];
    for (std::string directory = path; root.empty();) {
        if (access((directory + kHostLibrary).c_str(), R_OK) == 0) {
            root = directory;
            break;
        }
        const size_t slash = directory.rfind('/');
        if (slash == std::string::npos || directory.size() == 1)
            Refuse(host::kInnerError,
                   "%s is not inside an op package: no directory above it has op_host/libcust_opmaster.so", path);
        directory.resize(slash);
    }
    return root;
}

const char* Architecture(const SocSpec& soc) { return soc.npuArch == 3510 ? "regbase" : "membase"; }

// What the op logged, when it did, says more than that it refused.
std::string Refusal(const host::Op& op, const std::string& step, const std::vector<Argument>& inputs) {
    const std::string logged = host::TakeLoggedErrors(), given = ArgumentsText(inputs);
    if (logged.empty())
        return Format("%s: %s refuses %s (the function returned GRAPH_FAILED and logged nothing)", op.type.c_str(), step.c_str(),
                      given.c_str());
    return Format("%s: %s (%s, given %s)", op.type.c_str(), logged.c_str(), step.c_str(), given.c_str());
}

}  // namespace

OpOfPackage::OpOfPackage(const char* package, const char* opType)
    : root(PackageRoot(package)), soc(&WithCoreLimits(host::CurrentSoc())) {
    library = host::LoadHostLibrary(root + kHostLibrary);
    op = &library->Find(opType == nullptr ? "" : opType);
    config = op->Config(soc->family);
    if (config == nullptr) {
        std::vector<std::string> socs;
        for (const auto& known : op->configs) socs.push_back(known.soc);
        Refuse(kInvalidParameter, "%s is not defined for %s, its OpDef has %s", opType, soc->family,
               socs.empty() ? "no SoC" : Join(socs).c_str());
    }
}

std::string OpOfPackage::Kernel(int column) const {
    const std::string path = Format("%s/kernel/%s/%s_%d.so", root.c_str(), Architecture(*soc), config->file.c_str(), column);
    if (access(path.c_str(), R_OK) != 0)
        Refuse(host::kNoKernel, "%s: the package %s was not built for dtype column %d on %s: %s is missing",
               op->type.c_str(), root.c_str(), column, soc->family, path.c_str());
    return path;
}

OpCall::OpCall(const OpOfPackage& target, std::vector<Argument> given, gert::RuntimeAttrs attributes)
    : op(*target.op), inputs(std::move(given)), platform_(*target.soc) {
    node.type = op.type;
    node.name = op.type;
    node.attrs = std::move(attributes);
    node.platform = &platform_;
    AddInputs();
    host::TakeLoggedErrors();  // an earlier call's
}

namespace {

void Append(const Argument& argument, std::vector<gert::Tensor>& tensors, std::vector<gert::CompileTimeTensorDesc>& descs,
            std::vector<gert::AnchorInstanceInfo>& instances) {
    instances.emplace_back(tensors.size(), argument.tensors.size());
    for (const aclTensor& tensor : argument.tensors) {
        const gert::StorageFormat format(tensor.format, tensor.format);
        tensors.emplace_back(gert::StorageShape(tensor.shape), format, tensor.dtype);
        descs.emplace_back(tensor.dtype, format);
    }
}

}  // namespace

namespace {

// The values of the tensor, in a row, where host functions can read them: a copy into `copies` unless they are there already.
uint8_t* ReadableNow(const Argument& argument, size_t instance, std::vector<std::vector<uint8_t>>& copies) {
    aclTensor tensor = argument.tensors[instance];
    if (tensor.IsContiguous() && !IsDeviceAddress(tensor.data)) return tensor.First();
    const DeviceMemoryUse use;
    const void* values = nullptr;
    const int32_t status = HostAddressNow(tensor.data, &values);
    if (status != 0) throw HostError(status, ThisSession().error);
    const std::string error = IsDeviceAddress(tensor.data) ? ExtentError(tensor.First(), tensor.ReachBytes()) : "";
    if (!error.empty()) Refuse(kInvalidParameter, "%s: %s", argument.Name(instance).c_str(), error.c_str());
    tensor.data = const_cast<void*>(values);
    uint8_t* copy = copies.emplace_back(tensor.Bytes()).data();
    tensor.Gather(copy);
    return copy;
}

}  // namespace

void OpCall::AddInputs() {
    for (const Argument& argument : inputs) {
        Append(argument, node.inputs, node.inputDescs, node.inputInstances);
        if (!argument.parameter->valueDepend) continue;
        for (size_t i = 0; i < argument.tensors.size(); ++i) {
            gert::Tensor& described = node.inputs[node.inputInstances.back().GetInstanceStart() + i];
            described.SetData(ReadableNow(argument, i, values_));
        }
    }
}

bool OpCall::InferShapes() {
    if (op.impl.inferShape == nullptr) return false;
    gert::InferShapeContext context(node);
    if (op.impl.inferShape(&context) != ge::GRAPH_SUCCESS)
        throw HostError(kInferShapeFailed, Refusal(op, "shape inference", inputs));
    return true;
}

bool OpCall::InferDataTypes() {
    if (op.impl.inferDataType == nullptr) return false;
    gert::InferDataTypeContext context(node);
    if (op.impl.inferDataType(&context) != ge::GRAPH_SUCCESS)
        throw HostError(kInferShapeFailed, Refusal(op, "type inference", inputs));
    return true;
}

namespace {

bool Agrees(const gert::Shape& inferred, const gert::Shape& given) {
    if (inferred.GetDimNum() == 1 && inferred.GetDim(0) == ge::UNKNOWN_DIM_NUM) return true;
    if (inferred.GetDimNum() != given.GetDimNum()) return false;
    for (size_t i = 0; i < given.GetDimNum(); ++i)
        if (inferred.GetDim(i) != ge::UNKNOWN_DIM && inferred.GetDim(i) != given.GetDim(i)) return false;
    return true;
}

}  // namespace

void OpCall::CheckOutputs(const std::vector<Argument>& outputs) {
    for (const Argument& output : outputs) {
        node.outputInstances.emplace_back(node.outputs.size(), output.tensors.size());
        for (const aclTensor& tensor : output.tensors)
            node.outputs.emplace_back(gert::StorageShape(), gert::StorageFormat(tensor.format, tensor.format), ge::DT_UNDEFINED);
    }
    const bool shapes = InferShapes(), dtypes = InferDataTypes();
    size_t index = 0;
    for (const Argument& output : outputs)
        for (size_t i = 0; i < output.tensors.size(); ++i, ++index) {
            const aclTensor& given = output.tensors[i];
            const gert::Shape& shape = node.outputs[index].GetOriginShape();
            const ge::DataType dtype = node.outputs[index].GetDataType();
            if (shapes && !Agrees(shape, given.shape))
                Refuse(kInvalidParameter, "%s: output %s is %s, expected %s for %s", op.type.c_str(),
                       output.Name(i).c_str(), ShapeText(given.shape).c_str(), ShapeText(shape).c_str(),
                       ArgumentsText(inputs).c_str());
            if (dtypes && dtype != ge::DT_UNDEFINED && dtype != given.dtype)
                Refuse(kInvalidParameter, "%s: output %s has dtype %s, expected %s for %s", op.type.c_str(),
                       output.Name(i).c_str(), DtypeName(given.dtype).c_str(), DtypeName(dtype).c_str(),
                       ArgumentsText(inputs).c_str());
        }
    node.outputs.clear();
    node.outputInstances.clear();
    for (const Argument& output : outputs) Append(output, node.outputs, node.outputDescs, node.outputInstances);
}

void OpCall::Tile() {
    const host::OpImplRecord& impl = op.impl;
    if (impl.tiling == nullptr) Refuse(kTilingFailed, "%s has no tiling function", op.type.c_str());
    using Destroy = void (*)(void*);
    std::unique_ptr<void, Destroy> compileInfo(impl.createCompileInfo != nullptr ? impl.createCompileInfo() : nullptr,
                                               impl.destroyCompileInfo != nullptr ? impl.destroyCompileInfo : +[](void*) {});
    node.compileInfo = compileInfo.get();
    gert::TilingParseContext parse(node);
    const ge::graphStatus parsed = impl.parse != nullptr         ? impl.parse(&parse)
                                   : impl.parseKernel != nullptr ? impl.parseKernel(&parse)
                                                                 : ge::GRAPH_SUCCESS;
    const std::string soc = platform_.Soc().name;
    if (parsed != ge::GRAPH_SUCCESS) throw HostError(kTilingFailed, Refusal(op, "TilingParse on " + soc, inputs));

    host::TilingResult& tiling = node.tiling;
    tiling.buffer.assign((impl.tilingCapacity + 7) / 8, 0);
    tiling.data = gert::TilingData(tiling.buffer.data(), impl.tilingCapacity);
    gert::TilingContext context(node);
    const ge::graphStatus status = impl.tiling(&context);
    node.compileInfo = nullptr;
    if (status != ge::GRAPH_SUCCESS) throw HostError(kTilingFailed, Refusal(op, "tiling on " + soc, inputs));
    if (tiling.blockDim == 0)
        Refuse(kTilingFailed, "%s: tiling set no block dim (SetBlockDim) for %s", op.type.c_str(),
               ArgumentsText(inputs).c_str());
    if (tiling.data.GetDataSize() > tiling.data.GetCapacity())
        Refuse(kTilingFailed, "%s: tiling data of %zu bytes in a buffer of %zu", op.type.c_str(),
               tiling.data.GetDataSize(), tiling.data.GetCapacity());
}

}  // namespace sim::opapi
