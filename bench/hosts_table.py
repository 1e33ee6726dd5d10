#!/usr/bin/env python3
"""The table of hosts.sh: each cell's least time over all rounds, and weft over UCX beside the better
MPI."""

import json
import math
import os
import sys

from collectives_table import align, machine, over, read_rows, size_text, time_text, times_text

OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
WHO = ["weft-ucx", "openmpi", "mpich", "weft-gloo"]


def read(folder):
    """{(ranks per host, op, bytes): {who: least nanoseconds}}"""
    cells = {}
    for name in sorted(os.listdir(folder)):
        _, ranks, who = name.split("-", 2)
        for row in read_rows(os.path.join(folder, name)):
            cell = cells.setdefault((int(ranks), row["op"], row["bytes"]), {})
            cell[who] = min(row["min_ns"], cell.get(who, math.inf))
    return cells


def times_of(cell):
    """How many times as fast as the better MPI weft is over UCX; None if one was not measured."""
    mpis = [cell[who] for who in ("openmpi", "mpich") if who in cell]
    return over(min(mpis), cell.get("weft-ucx")) if mpis else None


def in_order(key):
    return (key[0], OPS.index(key[1]), key[2])


def table(cells):
    rows = [["ranks per host, collective", "bytes", "weft, UCX", "Open MPI", "MPICH", "weft, Gloo",
             "times the better MPI"]]
    rows.append(["---"] * len(rows[0]))
    for key in sorted(cells, key=in_order):
        cell = cells[key]
        rows.append([f"{key[0]}, {key[1]}", size_text(key[2])] +
                    [time_text(cell.get(who)) for who in WHO] + [times_text(times_of(cell))])
    return align(rows)


def summary(cells):
    known = {key: times for key, times in ((k, times_of(c)) for k, c in cells.items()) if times}
    if not known:
        return "no cell has both weft and an MPI"
    least = min(known, key=known.get)
    mean = math.exp(sum(map(math.log, known.values())) / len(known))
    slower = sum(times < 1 for times in known.values())
    return (f"geometric mean {mean:.2f} times the better MPI over {len(known)} cells; {slower} below 1.0; "
            f"least {known[least]:.2f}, {least[1]} at {size_text(least[2])} with {least[0]} per host")


def main(arguments):
    as_json = "--json" in arguments
    work = [word for word in arguments if word != "--json"][0]
    cables = {name: read(os.path.join(work, "rows", name))
              for name in sorted(os.listdir(os.path.join(work, "rows")))}
    if as_json:
        print(json.dumps({"machine": machine(), "cables": {
            name: [{"ranks_per_host": key[0], "op": key[1], "bytes": key[2], "min_ns": cell,
                    "times": times_of(cell)} for key, cell in sorted(cells.items())]
            for name, cells in cables.items()}}, indent=1))
        return
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, load {facts['load']:.1f} at the end")
    for name, cells in cables.items():
        print(f"\ncable: {name}; least times in microseconds\n" + "\n".join(table(cells)))
        print(summary(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
