#!/usr/bin/env python3
"""Write the compact copy of recorded operator vectors: pack.py RECORDS.jsonl > records.jsonl.gz

Unstable records are left out, and of each record what the test does not need."""
import gzip
import json
import sys


def finite(strategies):
    """[outputs, inputs or null] of the strategies that can happen"""
    return [[row[0], row[1]] for row in strategies if "inf" not in (row[2] or [])]


def pack(record):
    said, meant = record["propagated"], record.get("semantics", {})
    kept = {key: record[key] for key in ("id", "op", "aten", "params", "args", "mesh", "in") if key in record}
    if "strategies" in record:
        kept["strategies"] = finite(record["strategies"])
    if "strategies_list" in record:
        kept["lists"] = [finite(one) for one in record["strategies_list"]]
    kept.update({key: said[key] for key in ("to", "out_meta") if key in said})
    kept.update({key: meant[key] for key in ("free", "e2e") if key in meant})
    kept["refused"] = "err" in said
    return kept


def main():
    lines = []
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if "unstable" not in record:
                lines.append(json.dumps(pack(record), separators=(",", ":")))
    sys.stdout.buffer.write(gzip.compress("\n".join(lines).encode() + b"\n", 9, mtime=0))


main()
