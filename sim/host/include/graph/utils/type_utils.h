// Names of data types and formats for messages.
#pragma once

#include <string>

#include "graph/types.h"

namespace ge {

class TypeUtils {
public:
    static std::string DataTypeToSerialString(DataType dataType);     // "DT_FLOAT"
    static DataType SerialStringToDataType(const std::string& name);  // DT_UNDEFINED when unknown
    static std::string FormatToSerialString(Format format);           // "ND"
    static Format SerialStringToFormat(const std::string& name);      // FORMAT_RESERVED when unknown
};

}  // namespace ge
