// One operator of a graph under construction: its attributes, and what its inputs are connected to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/tensor.h"
#include "graph/types.h"

namespace ge {

class OperatorImpl;
class Operator {  // a copy is the same operator
public:
    Operator();
    explicit Operator(std::shared_ptr<OperatorImpl> impl);
    virtual ~Operator();

    graphStatus GetName(AscendString& name) const;
    graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc);
    graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc);
    graphStatus GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& attributes) const;
    size_t GetInputsSize() const;  // of a dynamic input: each of its tensors

    // `source` has one output; with two more arguments, its output of that name.
    Operator& SetInput(const char* name, const Operator& source);
    Operator& SetInput(const char* name, const Operator& source, const char* output);
    void DynamicInputRegister(const char* name, uint32_t count, bool atEnd = true);
    void DynamicOutputRegister(const char* name, uint32_t count, bool atEnd = true);

    Operator& SetAttr(const char* name, bool value);
    Operator& SetAttr(const char* name, int64_t value);
    Operator& SetAttr(const char* name, float value);
    Operator& SetAttr(const char* name, const char* value);
    Operator& SetAttr(const char* name, const AscendString& value);
    Operator& SetAttr(const char* name, const std::vector<int64_t>& value);
    Operator& SetAttr(const char* name, const std::vector<float>& value);
    Operator& SetAttr(const char* name, const Tensor& value);

    // GRAPH_FAILED when there is none of the name and this type.
    graphStatus GetAttr(const char* name, bool& value) const;
    graphStatus GetAttr(const char* name, int64_t& value) const;
    graphStatus GetAttr(const char* name, float& value) const;
    graphStatus GetAttr(const char* name, AscendString& value) const;
    graphStatus GetAttr(const char* name, std::vector<int64_t>& value) const;
    graphStatus GetAttr(const char* name, std::vector<float>& value) const;
    graphStatus GetAttr(const char* name, Tensor& value) const;

private:
    friend std::shared_ptr<OperatorImpl> ImplOf(const Operator& op);
    std::shared_ptr<OperatorImpl> impl_;
};

}  // namespace ge
