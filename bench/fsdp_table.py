"""The table of bench/fsdp.sh, from the JSON of both sides.

usage: fsdp_table.py [--json] WEFT.json... [-- FSDP2.json...]

Times are the least of all rounds.  The share of a copy and the overlap are weft's alone."""
import json
import sys


def read(paths):
    """The row with the least time, by (ranks, what)."""
    rows = {}
    for path in paths:
        with open(path, encoding="ascii") as file:
            for row in json.load(file)["rows"]:
                key = (row["ranks"], row["what"])
                if key not in rows or row["min_ns"] < rows[key]["min_ns"]:
                    rows[key] = row
    return rows


def compare(ours, theirs):
    for key in sorted(ours):
        row = {"ranks": key[0], "what": key[1], "weft_ns": ours[key]["min_ns"]}
        for name in ("of_copy", "of_longer", "cpu_ns", "host_ns"):
            if name in ours[key]:
                row[name] = ours[key][name]
        if key in theirs:
            for name in ("min_ns", "cpu_ns", "host_ns"):
                row["fsdp2_" + name.replace("min_", "")] = theirs[key][name]
            row["ratio"] = row["fsdp2_ns"] / row["weft_ns"]
        yield row


def note(row):
    if "of_copy" in row:
        return f"{row['of_copy']:.2f} of the rate of a copy"
    if "of_longer" in row:
        return f"{row['of_longer']:.2f} of the longer one of compute and communication"
    def times(side, prefix):
        cpu, host = row[prefix + "cpu_ns"] / 1000, row[prefix + "host_ns"] / 1000
        return f"{side}: {cpu:.0f} us of processors, {host:.0f} us of the caller"

    return "; ".join(times(side, prefix) for side, prefix in (("weft", ""), ("FSDP2", "fsdp2_"))
                     if prefix + "cpu_ns" in row)


def main():
    arguments = sys.argv[1:]
    as_json = "--json" in arguments
    arguments = [a for a in arguments if a != "--json"]
    middle = arguments.index("--") if "--" in arguments else len(arguments)
    rows = list(compare(read(arguments[:middle]), read(arguments[middle + 1:])))
    if as_json:
        print(json.dumps({"bench": "fsdp", "rows": rows}))
        return
    print(f"{'ranks':>5} {'':8} {'weft us':>11} {'FSDP2 us':>11} {'times':>8}")
    for row in rows:
        peer = f"{row['fsdp2_ns'] / 1000:>11.1f} {row['ratio']:>8.1f}" if "ratio" in row else " " * 20
        print(f"{row['ranks']:>5} {row['what']:8} {row['weft_ns'] / 1000:>11.1f} {peer}  {note(row)}")


if __name__ == "__main__":
    main()
