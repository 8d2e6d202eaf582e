// Dtype columns: entry i of all lists together is one combination the op supports. DataTypeList and FormatList are combined
// with every column, Follow copies another parameter, and a SoC's config may replace parameters.
#include <algorithm>
#include <cctype>

#include "sim/host/op.h"
#include "sim/host/text.h"

namespace sim::host {
namespace {

struct Cell {
    ge::DataType dtype = ge::DT_UNDEFINED;
    ge::Format format = ge::FORMAT_ND;
    bool operator==(const Cell& other) const { return dtype == other.dtype && format == other.format; }
};
using Row = std::vector<Cell>;  // one cell per parameter, inputs first
using Records = std::vector<ops::ParameterRecord>;

// The length that all plain lists share; an error names two parameters that differ.
size_t ColumnCount(const std::string& op, const Records& records) {
    size_t count = 0;
    std::string from;
    const auto meet = [&](const ops::ParameterRecord& record, const char* list, size_t length, bool product) {
        if (product || length == 0) return;
        const std::string name = record.name + "." + list;
        if (count == 0) {
            count = length;
            from = name;
        } else if (length != count) {
            Refuse(kInvalidParameter, "%s: every list of the OpDef needs the same length: %s has %zu entries, %s has %zu",
                   op.c_str(), from.c_str(), count, name.c_str(), length);
        }
    };
    for (const auto& record : records) {
        meet(record, "DataType", record.dtypes.size(), record.dtypeProduct);
        meet(record, "Format", record.formats.size(), record.formatProduct);
    }
    return count == 0 ? 1 : count;
}

template <typename T>
void Multiply(std::vector<Row>& rows, size_t parameter, const std::vector<T>& values, T Cell::*member) {
    std::vector<Row> product;
    for (const Row& row : rows)
        for (const T value : values) {
            product.push_back(row);
            product.back()[parameter].*member = value;
        }
    rows = std::move(product);
}

void ApplyFollow(const std::string& op, const Records& records, Row& row) {
    for (size_t i = 0; i < records.size(); ++i) {
        const auto& record = records[i];
        if (record.follow.empty()) continue;
        const auto leader = std::find_if(records.begin(), records.end(), [&](const auto& r) { return r.name == record.follow; });
        if (leader == records.end())
            Refuse(kInvalidParameter, "%s: %s follows %s, which is no parameter of the op", op.c_str(),
                   record.name.c_str(), record.follow.c_str());
        const Cell& source = row[static_cast<size_t>(leader - records.begin())];
        if (record.followType == ops::FollowType::ALL || record.followType == ops::FollowType::DTYPE) row[i].dtype = source.dtype;
        if (record.followType == ops::FollowType::ALL || record.followType == ops::FollowType::FORMAT)
            row[i].format = source.format;
    }
}

std::vector<Row> Expand(const std::string& op, const Records& records) {
    std::vector<Row> rows(ColumnCount(op, records), Row(records.size()));
    for (size_t column = 0; column < rows.size(); ++column)
        for (size_t i = 0; i < records.size(); ++i) {
            const auto& record = records[i];
            if (!record.dtypeProduct && !record.dtypes.empty()) rows[column][i].dtype = record.dtypes[column];
            if (!record.formatProduct && !record.formats.empty()) rows[column][i].format = record.formats[column];
        }
    for (size_t i = 0; i < records.size(); ++i) {
        if (records[i].dtypeProduct) Multiply(rows, i, records[i].dtypes, &Cell::dtype);
        if (records[i].formatProduct) Multiply(rows, i, records[i].formats, &Cell::format);
    }
    for (Row& row : rows) {
        ApplyFollow(op, records, row);
        for (size_t i = 0; i < records.size(); ++i)
            if (row[i].dtype == ge::DT_UNDEFINED)
                Refuse(kInvalidParameter, "%s: %s has no DataType list", op.c_str(), records[i].name.c_str());
    }
    return rows;
}

// The parameters of `base`, those of the same name replaced by the config's.
void Override(const std::string& op, const std::string& soc, const std::deque<ops::OpParamDef>& replacements, size_t first,
              size_t last, Records& records) {
    for (const auto& replacement : replacements) {
        const auto begin = records.begin() + static_cast<long>(first), end = records.begin() + static_cast<long>(last);
        const auto found = std::find_if(begin, end, [&](const auto& r) { return r.name == replacement.Record().name; });
        if (found == end)
            Refuse(kInvalidParameter, "%s: the config of %s has a parameter %s that the op does not have", op.c_str(),
                   soc.c_str(), replacement.Record().name.c_str());
        *found = replacement.Record();
    }
}

// OpDefs of older toolkits call the 950 by the name it had then.
std::string Family(const std::string& soc) { return soc == "ascend910_95" ? "ascend950" : soc; }

Parameter Describe(const ops::ParameterRecord& record) {
    Parameter parameter;
    parameter.name = record.name;
    parameter.type = record.type;
    parameter.valueDepend = record.valueDepend;
    parameter.ignoreContiguous = record.ignoreContiguous;
    parameter.initValue = record.initValue;
    return parameter;
}

}  // namespace

std::string SnakeCase(const std::string& opType) {
    std::string text;
    for (const char c : opType) {
        if (std::isupper(static_cast<unsigned char>(c)) && !text.empty() && text.back() != '_') text += '_';
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

const SocConfig* Op::Config(const std::string& family) const {
    const auto found = std::find_if(configs.begin(), configs.end(), [&](const SocConfig& c) { return c.soc == family; });
    return found == configs.end() ? nullptr : &*found;
}

void ResolveColumns(const ops::OpDef& definition, Op& op) {
    Records base;
    for (const auto& input : definition.Inputs()) base.push_back(input.Record());
    for (const auto& output : definition.Outputs()) base.push_back(output.Record());
    const size_t inputCount = definition.Inputs().size();
    for (size_t i = 0; i < base.size(); ++i) (i < inputCount ? op.inputs : op.outputs).push_back(Describe(base[i]));
    for (Parameter& output : op.outputs)
        for (size_t i = 0; i < op.inputs.size(); ++i)
            if (op.inputs[i].name == output.name) output.inPlace = static_cast<int>(i);

    std::vector<Row> columns;
    for (const auto& [soc, config] : definition.AICore().Configs()) {
        Records records = base;
        Override(op.type, soc, config.Inputs(), 0, inputCount, records);
        Override(op.type, soc, config.Outputs(), inputCount, base.size(), records);
        const std::string file = config.Extended("opFile.value");
        SocConfig resolved{Family(soc), file.empty() ? SnakeCase(op.type) : file, {}};
        for (const Row& row : Expand(op.type, records)) {
            const auto known = std::find(columns.begin(), columns.end(), row);
            const int index = static_cast<int>(known - columns.begin());
            if (known == columns.end()) columns.push_back(row);
            if (std::find(resolved.columns.begin(), resolved.columns.end(), index) == resolved.columns.end())
                resolved.columns.push_back(index);
        }
        const auto earlier = std::find_if(op.configs.begin(), op.configs.end(),
                                          [&](const SocConfig& c) { return c.soc == resolved.soc; });
        if (earlier == op.configs.end()) op.configs.push_back(std::move(resolved));
        else *earlier = std::move(resolved);
    }
    op.file = op.configs.empty() ? SnakeCase(op.type) : op.configs.front().file;
    for (const Row& row : columns)
        for (size_t i = 0; i < row.size(); ++i) {
            Parameter& parameter = i < inputCount ? op.inputs[i] : op.outputs[i - inputCount];
            parameter.dtypes.push_back(row[i].dtype);
            parameter.formats.push_back(row[i].format);
        }
}

}  // namespace sim::host
