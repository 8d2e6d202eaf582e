// C interface of libcustom_ops_sim.so for hosts that are not C++: the Python package loads it with ctypes.
// Status: 0 is success; otherwise aclGetRecentErrMsg() has the sentence. Strings returned as char* are owned by the
// caller: SimFree().
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct aclTensor;
struct aclOpExecutor;

struct SimOptions {            // of the calling host thread; zero-initialise and set what differs
    const char* soc;           // SKU or family name; null keeps the current one
    int32_t checks;            // 1 on, 0 off
    int32_t trace;             // keep every timeline slice
    uint64_t adversarialSeed;  // 0: eager execution
    int32_t hostThreads;       // 0: all
    double timeoutSeconds;     // <= 0: the default
    uint64_t ignoredRules;     // bit per sim::Rule
    int32_t raise;             // 1: a launch with findings returns an error; 0: findings are only reported
};
int SimSetOptions(const SimOptions* options);
char* SimSocTable(void);       // JSON array of the SoC table
char* SimRules(void);          // JSON array: {"name", "summary"} in the order of sim::Rule

// Loads an op_host library and describes what it registered: JSON array of
// {"type", "file" (opFile.value or snake case), "inputs"/"outputs": [{"name","paramType","dtypes":[...],"formats":[...]}],
//  "attrs": [{"name","type","required","default"}], "socs": [family names], "hasInferShape", "hasInferDataType", "hasTiling",
//  "tilingClasses": [{"key": null|int, "class", "bytes", "fields":[{"name","type","count","offset"}]}]}
// dtypes are "DT_BF16" ..., formats "FORMAT_ND" ...; entry i of every list is column i (DataTypeList products, Follow and
// per-SoC lists are already expanded into one column space). paramType: "required" | "optional" | "dynamic"; parameters also
// have "valueDepend", "ignoreContiguous" and, outputs, "inPlace" (an input has the same name).
// Attribute types: "Bool" "Int" "Float" "String" "ListBool" "ListInt" "ListFloat" "ListListInt"; default is null when there is none.
// Also "configs": [{"soc", "file", "columns": [indices built for that SoC]}]. A nested tiling struct is a field whose type is its class
// name, with "fields" and "bytes" of its own; offsets are relative to the struct that holds the field, laid out as a plain C++ struct.
char* SimDescribeHostLibrary(const char* path);

// Bare kernel launch: `library` is a compiled kernel file (kernel_entry.h), `op` its entry; arguments in the entry's order.
struct SimArgument {
    const char* name;
    void* data;        // GM buffer, or the bytes of a scalar / struct passed by value
    uint64_t bytes;
    int32_t kind;      // 0 input, 1 output, 2 in-out, 3 workspace, 4 tiling (GM), 5 by value
};
int SimLaunchKernel(const char* library, const char* op, uint32_t blockDim, uint64_t tilingKey,
                    const SimArgument* arguments, int32_t count);

// Launch reports of this host thread since the last call, oldest first: JSON array of LaunchReport::ToJson() objects,
// for launches through aclnn with "tilingKey", "tilingData" (hex), "workspaceBytes" added.
char* SimTakeReports(void);
// Chrome trace events of the launches of this thread since the last call (needs trace): a JSON array.
char* SimTakeTrace(void);
void SimFree(char* text);
// Bytes of a memory size such as "8GB"; 0 when it cannot be read.
uint64_t SimMemorySize(const char* text);

// What generated aclnn functions call. `package` is any path inside the op package (the generated library passes its own).
// A dynamic parameter's entry is its aclTensorList*. An optional attribute may have a null value: its default.
// Attributes come as {kind, pointer}: kinds 0 int64, 1 double, 2 bool, 3 char*, 4 aclIntArray*, 5 aclFloatArray*, 6 aclBoolArray*.
struct SimAttribute { int32_t kind; const void* value; };
int SimOpPrepare(const char* package, const char* opType, const aclTensor* const* inputs, int32_t inputCount,
                 const SimAttribute* attributes, int32_t attributeCount, const aclTensor* const* outputs,
                 int32_t outputCount, uint64_t* workspaceBytes, aclOpExecutor** executor);
// Shape and type inference alone: JSON array of {"name", "shape": [...], "dtype": "DT_BF16"}, one per output; null on error.
char* SimInferShapes(const char* package, const char* opType, const aclTensor* const* inputs, int32_t inputCount,
                     const SimAttribute* attributes, int32_t attributeCount);
int SimOpRun(void* workspace, uint64_t workspaceBytes, aclOpExecutor* executor, void* stream);

}  // extern "C"
