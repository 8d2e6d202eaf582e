// What the opaque aclnn handles are.
#pragma once

#include <cstdint>
#include <vector>

#include "aclnn/acl_meta.h"
#include "exe_graph/runtime/shape.h"
#include "graph/types.h"

struct aclTensor {
    gert::Shape shape;
    std::vector<int64_t> strides;  // elements, one per dimension
    int64_t offset = 0;            // elements
    ge::DataType dtype = ge::DT_UNDEFINED;
    ge::Format format = ge::FORMAT_ND;
    std::vector<int64_t> storageDims;
    void* data = nullptr;

    int64_t Elements() const { return shape.GetShapeSize(); }
    int64_t ElementBytes() const { return ge::GetSizeByDataType(dtype); }
    uint64_t Bytes() const { return static_cast<uint64_t>(Elements() * ElementBytes()); }
    uint8_t* First() const { return static_cast<uint8_t*>(data) + offset * ElementBytes(); }
    bool IsContiguous() const;
    // Elements of the storage that the view needs: one past the last it reaches; 0 when it is empty.
    int64_t Reach() const;
    // From the first element of the view to the end of the last.
    uint64_t ReachBytes() const { return Elements() == 0 ? 0 : static_cast<uint64_t>((Reach() - offset) * ElementBytes()); }
    void Gather(uint8_t* contiguous) const;        // view -> contiguous copy
    void Scatter(const uint8_t* contiguous) const; // contiguous copy -> view
};

struct aclScalar {
    ge::DataType dtype;
    std::vector<uint8_t> value;
};
struct aclIntArray {
    std::vector<int64_t> values;
};
struct aclFloatArray {
    std::vector<float> values;
};
struct aclBoolArray {
    std::vector<uint8_t> values;
};
struct aclTensorList {
    std::vector<const aclTensor*> tensors;
};
struct aclScalarList {
    std::vector<const aclScalar*> scalars;
};
