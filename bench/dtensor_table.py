"""The table of bench/dtensor.sh: weft beside DTensor, cell by cell, from their JSON.

usage: dtensor_table.py [--json] WEFT.json... -- DTENSOR.json..."""
import json
import math
import sys


def read(paths):
    cells = {}
    for path in paths:
        with open(path, encoding="ascii") as file:
            for row in json.load(file)["rows"]:
                key = (row["ranks"], tuple(row["shape"]), row["from"], row["to"])
                known = cells.get(key)
                if known is None or row["median_ns"] < known:  # the quietest round
                    cells[key] = row["median_ns"]
    return cells


def main():
    arguments = sys.argv[1:]
    as_json = "--json" in arguments
    arguments = [a for a in arguments if a != "--json"]
    middle = arguments.index("--")
    ours, theirs = read(arguments[:middle]), read(arguments[middle + 1:])
    rows = [{"ranks": ranks, "shape": shape, "from": source, "to": target, "weft_ns": ours[key],
             "dtensor_ns": theirs[key], "ratio": theirs[key] / ours[key]}
            for key in sorted(ours)
            if key in theirs for ranks, shape, source, target in [key]]
    if not rows:
        sys.exit("dtensor: no cell was measured by both")
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    least = min(row["ratio"] for row in rows)
    if as_json:
        print(json.dumps({"bench": "dtensor", "rows": rows, "geometric_mean": mean,
                          "least": least}))
        return
    print(f"{'ranks':>5} {'shape':>10}  {'':14} {'weft us':>10} {'DTensor us':>11} {'times':>8}")
    for row in rows:
        shape = "x".join(map(str, row["shape"]))
        print(f"{row['ranks']:>5} {shape:>10}  {row['from'] + ' -> ' + row['to']:14} "
              f"{row['weft_ns'] / 1000:>10.1f} {row['dtensor_ns'] / 1000:>11.1f} "
              f"{row['ratio']:>8.1f}")
    print(f"geometric mean {mean:.1f} times, least {least:.1f} times")


if __name__ == "__main__":
    main()
