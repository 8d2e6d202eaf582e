// Registration of a parser plugin: what turns an operator of another framework into operators of a graph.
//
//   REGISTER_CUSTOM_OP("HcPost").FrameworkType(ONNX).OriginOpType({ge::AscendString("ai.onnx::11::HcPost")})
//       .ParseParamsByOperatorFn(Parse).ImplyType(ImplyType::TVM);
//
// With ParseOpToGraphFn the type is "PartitionedCall": Parse gives it its attributes, and the second function the operators in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/graph.h"
#include "graph/operator.h"

namespace domi {

using Status = uint32_t;
constexpr Status SUCCESS = 0;
constexpr Status FAILED = 0xFFFFFFFF;

enum FrameworkType { CAFFE = 0, MINDSPORE = 1, TENSORFLOW = 3, ANDROID_NN, ONNX, FRAMEWORK_RESERVED };
enum class ImplyType : unsigned int { BUILDIN = 0, TVM, CUSTOM, AI_CPU, CCE, GELOCAL, HCCL, INVALID = 0xFFFFFFFF };

using ParseParamByOpFunc = std::function<Status(const ge::Operator&, ge::Operator&)>;
using ParseOpToGraphFunc = std::function<Status(const ge::Operator&, ge::Graph&)>;

struct ParserRecord;
class OpRegistrationData {
public:
    explicit OpRegistrationData(const char* type);
    OpRegistrationData& FrameworkType(const domi::FrameworkType& framework);
    OpRegistrationData& OriginOpType(const std::vector<ge::AscendString>& types);  // of ONNX: domain::version::type
    OpRegistrationData& ParseParamsByOperatorFn(const ParseParamByOpFunc& function);
    OpRegistrationData& ParseOpToGraphFn(const ParseOpToGraphFunc& function);
    OpRegistrationData& ImplyType(const domi::ImplyType& type);

private:
    friend class OpReceiver;
    std::shared_ptr<ParserRecord> record_;
};

class OpReceiver {
public:
    OpReceiver(const OpRegistrationData& registration);  // NOLINT: as CANN's, made by assignment
};

}  // namespace domi

#define REGISTER_CUSTOM_OP(type) REGISTER_CUSTOM_OP_COUNTED(__COUNTER__, type)
#define REGISTER_CUSTOM_OP_COUNTED(counter, type) REGISTER_CUSTOM_OP_NAMED(counter, type)
#define REGISTER_CUSTOM_OP_NAMED(counter, type) \
    static const ::domi::OpReceiver receiver##counter __attribute__((unused)) = ::domi::OpRegistrationData(type)
