"""soc_table.json -> C++ table of sim::SocSpec and its aliases.

Usage: generate_soc_table.py soc_table.json out.cpp

Every number in the JSON is [value, "source"]. A SKU inherits from its arch (numbers of one core and the cost model), then
from its own entry.
"""

import json
import sys

# Members of sim::SocSpec in order; the kind says how to print them.
FIELDS = [
    ("name", "text"), ("family", "text"), ("npuArch", "integer"), ("cubeCores", "integer"), ("vectorCores", "integer"),
    ("clockHz", "integer"), ("ubBytes", "integer"), ("l1Bytes", "integer"), ("l0aBytes", "integer"),
    ("l0bBytes", "integer"), ("l0cBytes", "integer"), ("btBytes", "integer"), ("fbBytes", "integer"),
    ("l2Bytes", "integer"), ("hbmBytes", "integer"), ("hbmBytesPerSecond", "real"), ("gmReadBytesPerCycle", "real"),
    ("gmWriteBytesPerCycle", "real"), ("gmLatencyCycles", "real"), ("l2BytesPerSecond", "real"),
    ("l2CubeReadBytesPerCycle", "real"), ("l2VectorReadBytesPerCycle", "real"), ("ubCopyBytesPerCycle", "real"),
    ("launchSeconds", "real"), ("issueCycles", "real"), ("vectorStartCycles", "real"), ("syncCycles", "real"),
    ("syncAllCycles", "real"), ("scalarCycles", "real"), ("vectorSimple", "real"), ("vectorExp", "real"),
    ("vectorMulAdd", "real"), ("vectorCast", "real"), ("vectorCast64", "real"), ("vectorWholeReduce", "real"),
    ("vectorBlockReduce16", "real"), ("vectorGather", "real"), ("vectorGatherBlock", "real"), ("vectorSort", "real"),
    ("cubeFloatK", "real"), ("cubeStartCycles", "real"), ("l1ToL0aBytesPerCycle", "real"), ("l1ToL0bBytesPerCycle", "real"),
    ("l1ToTableBytesPerCycle", "real"), ("l0cToGmBytesPerCycle", "real"), ("l0cToL1BytesPerCycle", "real"),
    ("crossFlagCycles", "real"), ("vectorPipeOrdered", "boolean"),
]


def literal(value, kind):
    if kind == "text":
        return json.dumps(value)
    if kind == "integer":
        return f"{int(value)}"
    if kind == "real":
        return repr(float(value))
    return "true" if value else "false"


def row(sku, arches):
    merged = {**arches[sku["arch"]], **sku}
    cells = []
    for field, kind in FIELDS:
        if field not in merged:
            raise SystemExit(f"soc_table.json: {sku['name']} has no {field}")
        entry = merged[field]
        if kind == "text":
            value = entry
        elif isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str) and entry[1]:
            value = entry[0]
        else:
            raise SystemExit(f"soc_table.json: {sku['name']}.{field} must be [value, source], got {entry!r}")
        cells.append(f"/*{field}*/ {literal(value, kind)}")
    return "    {" + ",\n     ".join(cells) + "},"


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        table = json.load(file)
    known = {field for field, _ in FIELDS} | {"arch", "comment"}
    for entry in [*table["arches"].values(), *table["skus"]]:
        unknown = set(entry) - known
        if unknown:
            raise SystemExit(f"soc_table.json: {entry.get('name', 'arch')}: unknown {sorted(unknown)}")
    index = {sku["name"]: i for i, sku in enumerate(table["skus"])}
    lines = [
        "// Generated from sim/core/soc_table.json.",
        '#include "sim/core/soc_table.h"',
        "namespace sim {",
        "const SocSpec kSocTable[] = {",
        *(row(sku, table["arches"]) for sku in table["skus"]),
        "};",
        f"const int kSocCount = {len(index)};",
        "const SocAlias kSocAliases[] = {",
        *(f'    {{"{alias}", {index[name]}}},' for alias, name in table["aliases"].items()),
        "};",
        f"const int kSocAliasCount = {len(table['aliases'])};",
        "}  // namespace sim",
    ]
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
