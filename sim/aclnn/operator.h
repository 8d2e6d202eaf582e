// A line of the operator table, and what it becomes: the two C functions of an aclnn operator.
//
//   ACLNN(Cumsum, Any, ((Tensor)self, (int64_t)dim, (Dtype)dtype, (Out)out), out = at::cumsum(self, dim, dtype))
//
// defines aclnnCumsumGetWorkspaceSize(const aclTensor* self, int64_t dim, aclDataType dtype, const aclTensor* out, uint64_t*
// workspaceSize, aclOpExecutor** executor), which reads the handles and checks them, and aclnnCumsum(workspace, workspaceSize,
// executor, stream), which puts the expression into the stream. Parameters stand in the order of the C function.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>

#include <tuple>
#include <utility>

#include "sim/aclnn/values.h"
#include "sim/opapi/builtin.h"
#include "sim/opapi/session.h"

namespace sim::aclnn {

// What phase one checks beside the handles.
enum class Kind {
    Any,
    Elementwise,  // the inputs broadcast to the shape of the output
    Cube,         // matrix unit: inputs are float32, float16 or bfloat16
    Product,      // Cube, and the last two inputs can be multiplied
};

struct Shapes {  // of the tensors of a call
    std::vector<at::Tensor> inputs, outputs;
    bool inPlace = false;  // the first parameter is written
};
void Check(Kind kind, const char* function, const Shapes& shapes);
StreamWork MakeWork(const char* function, double bytes, std::function<void()> body);
// Second phase of an operator whose caller reads next what shape the data gave: waits for the device, which a capture refuses.
int32_t RunAndWait(aclOpExecutor* executor, void* stream);

inline void Collect(Shapes& shapes, const at::Tensor& input) { shapes.inputs.push_back(input); }
inline void Collect(Shapes& shapes, const Optional& input) {
    if (input.has_value()) shapes.inputs.push_back(*input);
}
inline void Collect(Shapes& shapes, const Out& output) {
    shapes.inPlace |= shapes.inputs.empty();
    shapes.outputs.push_back(output);
}
template <typename Other, typename = std::enable_if_t<!std::is_base_of_v<at::Tensor, Other>>>
void Collect(Shapes&, const Other&) {}

template <typename... Values, size_t... Index>
std::tuple<Values...> ReadAll(const char* function, const char* parameters, std::index_sequence<Index...>,
                              typename Argument<Values>::C... handles) {
    opapi::OneDevice device;
    return {Argument<Values>::Read(handles, ArgumentName{function, parameters, Index, device})...};
}

template <Kind kind, typename... Values>
aclnnStatus Prepare(const char* function, const char* parameters, void (*run)(Values...), uint64_t* workspaceSize,
                    aclOpExecutor** executor, typename Argument<Values>::C... handles) {
    return opapi::GuardStatus([&] {
        if (workspaceSize == nullptr || executor == nullptr)
            host::Refuse(host::kNullPointer, "%s: workspaceSize and executor must not be null", function);
        auto values = ReadAll<Values...>(function, parameters, std::index_sequence_for<Values...>(), handles...);
        if constexpr (kind != Kind::Any) {
            Shapes shapes;
            std::apply([&](const Values&... value) { (Collect(shapes, value), ...); }, values);
            Check(kind, function, shapes);
        }
        const double bytes = std::apply([](const Values&... value) { return (0.0 + ... + Traffic(value)); }, values);
        *workspaceSize = 0;
        *executor = opapi::NewBuiltinExecutor(MakeWork(function, bytes, [run, values = std::move(values)] { std::apply(run, values); }));
    });
}

template <typename... Values>
constexpr bool HasDynamicOut(void (*)(Values...)) {
    return ((std::is_same_v<Values, DynamicOut> || std::is_same_v<Values, OptionalDynamicOut>) || ...);
}

}  // namespace sim::aclnn

// "(Tensor)self" -> Tensor, self
#define SIM_SPLIT(type) type,
#define SIM_FIRST(first, ...) first
#define SIM_SECOND(first, second) second
#define SIM_CALL(macro, ...) macro(__VA_ARGS__)
#define SIM_VALUE_PARAMETER(pair) [[maybe_unused]] SIM_CALL(SIM_FIRST, SIM_SPLIT pair) SIM_CALL(SIM_SECOND, SIM_SPLIT pair)
#define SIM_C_PARAMETER(pair) ::sim::aclnn::Argument<SIM_CALL(SIM_FIRST, SIM_SPLIT pair)>::C SIM_CALL(SIM_SECOND, SIM_SPLIT pair)
#define SIM_NAME(pair) SIM_CALL(SIM_SECOND, SIM_SPLIT pair)

// macro(a), macro(b), ... for up to 64 arguments
#define SIM_SCAN1(...) SIM_SCAN2(SIM_SCAN2(SIM_SCAN2(SIM_SCAN2(__VA_ARGS__))))
#define SIM_SCAN2(...) SIM_SCAN3(SIM_SCAN3(SIM_SCAN3(SIM_SCAN3(__VA_ARGS__))))
#define SIM_SCAN3(...) SIM_SCAN4(SIM_SCAN4(SIM_SCAN4(SIM_SCAN4(__VA_ARGS__))))
#define SIM_SCAN4(...) __VA_ARGS__
#define SIM_NOTHING ()
#define SIM_EACH(macro, ...) SIM_SCAN1(SIM_EACH_STEP(macro, __VA_ARGS__))
#define SIM_EACH_STEP(macro, first, ...) macro(first) __VA_OPT__(, SIM_EACH_AGAIN SIM_NOTHING(macro, __VA_ARGS__))
#define SIM_EACH_AGAIN() SIM_EACH_STEP
#define SIM_UNPACK(...) __VA_ARGS__
#define SIM_UNPACK_COMMA(...) __VA_OPT__(__VA_ARGS__, )
#define SIM_COMMA_UNPACK(...) __VA_OPT__(, __VA_ARGS__)

#define ACLNN(Name, kind, Parameters, ...) SIM_ACLNN(Name, kind, SIM_UNPACK Parameters, (__VA_ARGS__))
#define SIM_ACLNN(Name, kind, Parameters, Body) SIM_ACLNN_DEFINE(Name, kind, Body, Parameters)
#define SIM_ACLNN_DEFINE(Name, kind, Body, ...)                                                                             \
    static void Name##Run(SIM_EACH(SIM_VALUE_PARAMETER, __VA_ARGS__)) { SIM_UNPACK Body; }                                  \
    extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnn##Name##GetWorkspaceSize(SIM_EACH(SIM_C_PARAMETER, __VA_ARGS__),        \
                                                                             uint64_t* workspaceSize, aclOpExecutor** executor) { \
        return ::sim::aclnn::Prepare<::sim::aclnn::Kind::kind>("aclnn" #Name, #__VA_ARGS__, &Name##Run, workspaceSize, executor, \
                                     SIM_EACH(SIM_NAME, __VA_ARGS__));                                                      \
    }                                                                                                                       \
    extern "C" ACL_FUNC_VISIBILITY aclnnStatus aclnn##Name(void*, uint64_t, aclOpExecutor* executor, void* stream) {        \
        return ::sim::aclnn::HasDynamicOut(&Name##Run) ? ::sim::aclnn::RunAndWait(executor, stream)                         \
                                                       : ::sim::opapi::RunBuiltin(executor, stream);                        \
    }

// aclnnX(self, ..., out), aclnnInplaceX(self, ...) with the same expression of `self` and the parameters in between.
#define ACLNN_OUT(Name, Between, expression) \
    ACLNN(Name, Elementwise, ((Tensor)self, SIM_UNPACK_COMMA Between (Out)out), out = expression)
#define ACLNN_INPLACE(Name, Between, expression) \
    ACLNN(Inplace##Name, Elementwise, ((Out)self SIM_COMMA_UNPACK Between), self = expression)
#define ACLNN_BOTH(Name, Between, expression) \
    ACLNN_OUT(Name, Between, expression)      \
    ACLNN_INPLACE(Name, Between, expression)
