"""The table of bench/ops.sh: weft beside DTensor, row by row: ops_table.py [--json] WEFT.json [DTENSOR.json]"""
import json
import sys


def read(path):
    with open(path, encoding="ascii") as file:
        return json.load(file)["rows"]


def key(row):
    return (row["kind"], row["op"], row["mesh"], tuple(row["inputs"]))


def us(nanoseconds):
    return "" if nanoseconds is None else f"{nanoseconds / 1000:.2f}"


def main():
    paths = [one for one in sys.argv[1:] if one != "--json"]
    theirs = {key(row): row["median_ns"] for path in paths[1:] for row in read(path)}
    rows = []
    for row in read(paths[0]):
        other = theirs.get(key(row))
        rows.append({**{name: row[name] for name in ("kind", "op", "mesh", "inputs", "limit_ns")},
                     "weft_ns": row["median_ns"], "dtensor_ns": other,
                     "ratio": other / row["median_ns"] if other else None})  # fmt: skip
    if "--json" in sys.argv:
        print(json.dumps({"bench": "ops", "rows": rows}))
        return
    print(f"{'':8} {'':8} {'mesh':6} {'weft us':>9} {'promised':>9} {'DTensor us':>11} {'times':>7}  inputs")
    for row in rows:
        times = f"{row['ratio']:.0f}" if row["ratio"] else ""
        print(f"{row['kind']:8} {row['op']:8} {row['mesh']:6} {us(row['weft_ns']):>9} {us(row['limit_ns']):>9} "
              f"{us(row['dtensor_ns']):>11} {times:>7}  {' ; '.join(row['inputs'])}")  # fmt: skip


main()
