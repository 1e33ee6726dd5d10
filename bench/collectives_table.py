#!/usr/bin/env python3
"""The table of collectives.sh: reads the rows its runs left in a folder, prints times, ratios, the
share of memcpy's speed, and whether each speed target is met."""

import json
import math
import os
import platform
import sys

OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
MIB = 1 << 20
MPIS = ["openmpi", "mpich"]


class Cells:
    """Times by (who, ranks, op, position of the size), each from the round with the least median."""

    def __init__(self, folder):
        self.best = {}
        for name in sorted(os.listdir(folder)):
            _, ranks, who = name.split("-", 2)
            for row in read_rows(os.path.join(folder, name)):
                self.add(who, int(ranks), row)

    def add(self, who, ranks, row):
        key = (who, ranks, row["op"], row["bytes"])
        if key not in self.best or row["median_ns"] < self.best[key]["median_ns"]:
            self.best[key] = row

    def row(self, who, ranks, op, size):
        return self.best.get((who, ranks, op, size))

    def time(self, who, ranks, op, size):
        row = self.row(who, ranks, op, size)
        return row["median_ns"] if row else None

    def ranks(self):
        return sorted({key[1] for key in self.best})

    def keys(self, ranks):
        """(op, bytes) in the table's order."""
        found = {(key[2], key[3]) for key in self.best if key[1] == ranks}
        return sorted(found, key=lambda cell: (OPS.index(cell[0]), cell[1]))

    def gloo(self, ranks, op, size):
        """The faster of Gloo's runs; they differ in the MTU of the loopback interface."""
        times = [self.time(who, ranks, op, size) for who in self.gloos()]
        return min((t for t in times if t), default=None)

    def gloos(self):
        return sorted({key[0] for key in self.best if key[0].startswith("gloo")}, reverse=True)

    def mpi(self, ranks, op, size):
        times = [self.time(who, ranks, op, size) for who in MPIS]
        return min((t for t in times if t), default=None)

    def memcpy_share(self, ranks, op, size):
        row = self.row("weft-alloc", ranks, op, size)
        if not row or not row.get("memcpy_gbps"):
            return None
        return size * ranks / row["median_ns"] / row["memcpy_gbps"]


def read_rows(path):
    """JSON lines of a peer, or the one document of `weft bench coll --json`.  Torn tails happen."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return json.loads(text)["rows"]
    except (ValueError, KeyError, TypeError):
        pass
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            print(f"collectives: {path}: not JSON: {line[:60]}", file=sys.stderr)
    return rows


def over(numerator, denominator):
    return numerator / denominator if numerator and denominator else None


def size_text(size):
    for unit, name in ((MIB, "MiB"), (1024, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def time_text(ns):
    if ns is None:
        return "-"
    us = ns / 1000
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def times_text(value):
    return "-" if value is None else f"{value:.2f}x" if value < 10 else f"{value:,.0f}x"


def table(cells, ranks):
    """Lines of one rank count's table, in Markdown."""
    gloos = cells.gloos()
    head = ["collective", "bytes", "weft", "min", "p99", "weft, malloc", "Open MPI", "MPICH"]
    head += [f"Gloo, MTU {who.split('-')[1]}" for who in gloos]
    head += ["vs better MPI", "malloc vs Open MPI", "vs Gloo", "of memcpy"]
    rows = [head, ["---"] * len(head)]
    for op, size in cells.keys(ranks):
        row = cells.row("weft-alloc", ranks, op, size) or {}
        mine, malloc = row.get("median_ns"), cells.time("weft-malloc", ranks, op, size)
        share = cells.memcpy_share(ranks, op, size)
        rows.append(
            [op, size_text(size), time_text(mine), time_text(row.get("min_ns")),
             time_text(row.get("p99_ns")), time_text(malloc)]
            + [time_text(cells.time(who, ranks, op, size)) for who in MPIS + gloos]
            + [times_text(over(cells.mpi(ranks, op, size), mine)),
               times_text(over(cells.time("openmpi", ranks, op, size), malloc)),
               times_text(over(cells.gloo(ranks, op, size), mine)),
               "-" if share is None else f"{share:.0%}"])
    return align(rows)


def align(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        texts = [text.ljust(w) if i == 0 else text.rjust(w)
                 for i, (text, w) in enumerate(zip(row, widths))]
        if row[1] == "---":
            texts = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
        lines.append("| " + " | ".join(texts) + " |")
    return lines


def worst(values, pick=min):
    """The worst of {(op, size): value}, with its name."""
    known = {key: value for key, value in values.items() if value is not None}
    if not known:
        return None, "not measured"
    cell = pick(known, key=known.get)
    return known[cell], f"{cell[0]} at {size_text(cell[1])}"


class Targets:
    """The speed targets, in the order of docs/performance.md."""

    def __init__(self, cells):
        self.cells = cells
        self.lines = []
        self.pairs()
        self.crowded()

    def add(self, text, value, met, where=""):
        self.lines.append({"target": text, "value": value, "met": met, "where": where})

    def ratio(self, other):
        return {(op, size): over(other(2, op, size), self.cells.time("weft-alloc", 2, op, size))
                for op, size in self.cells.keys(2)}

    def least(self, text, values, limit):
        value, where = worst(values)
        self.add(text, value, None if value is None else value >= limit, where)

    def pairs(self):
        cells = self.cells
        mpi = self.ratio(cells.mpi)
        known = [value for value in mpi.values() if value]
        mean = math.exp(sum(map(math.log, known)) / len(known)) if known else None
        self.least("2 ranks: every cell at least 0.9 times the better MPI", mpi, 0.9)
        self.add("2 ranks: geometric mean at least 2.5 times the better MPI", mean,
                 mean and mean >= 2.5)
        self.least("2 ranks: 64 MiB all-reduce at least 6 times the better MPI",
                   {k: v for k, v in mpi.items() if k == ("all_reduce", 64 * MIB)}, 6)
        for op in ("all_gather", "all_to_all"):
            self.least(f"2 ranks: 64 MiB {op} at 85 % of memcpy or more",
                       {(op, 64 * MIB): cells.memcpy_share(2, op, 64 * MIB)}, 0.85)
        malloc = {(op, size): over(cells.time("openmpi", 2, op, size),
                                   cells.time("weft-malloc", 2, op, size))
                  for op, size in cells.keys(2)}
        self.least("2 ranks, malloc memory: every cell at least 0.8 times Open MPI", malloc, 0.8)
        gloo = self.ratio(cells.gloo)
        self.least("2 ranks: every cell up to 1 MiB at least 10 times Gloo",
                   {k: v for k, v in gloo.items() if k[1] <= MIB}, 10)

    def crowded(self):
        cells = self.cells
        if 4 not in cells.ranks():
            return
        mine = cells.time("weft-alloc", 4, "all_reduce", 8)
        slower = over(mine, cells.time("openmpi", 4, "all_reduce", 8))
        self.add("4 ranks: 8 B all-reduce within 1.2 times Open MPI's time", slower,
                 None if slower is None else slower <= 1.2)
        growth = {}
        for op, size in cells.keys(4):
            few = cells.time("weft-alloc", 2, op, size)
            if few is None:  # 4 ranks need two more elements at 8 B
                few = cells.time("weft-alloc", 2, op, 8)
            growth[op, size] = over(cells.time("weft-alloc", 4, op, size), few)
        value, where = worst(growth, max)
        self.add("4 ranks: no cell over 20 times its 2-rank time", value,
                 None if value is None else value <= 20, where)


def machine():
    model = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    with open("/sys/class/net/lo/mtu", encoding="utf-8") as file:
        mtu = int(file.read())
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "lo_mtu": mtu, "load": os.getloadavg()[0]}


def memcpy_speeds(cells, ranks):
    speeds = {}
    for (who, n, _, size), row in cells.best.items():
        if who == "weft-alloc" and n == ranks and row.get("memcpy_gbps"):
            speeds[size] = row["memcpy_gbps"]
    return speeds


def left_out(work):
    try:
        with open(os.path.join(work, "left-out"), encoding="utf-8") as file:
            return sorted(set(file.read().splitlines()))
    except OSError:
        return []


def print_text(cells, targets, missing):
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, "
          f"default MTU of lo {facts['lo_mtu']}, load {facts['load']:.1f} at the end")
    for line in missing:
        print(f"left out: {line}")
    for ranks in cells.ranks():
        speeds = memcpy_speeds(cells, ranks)
        print(f"\n{ranks} ranks; median times in microseconds (min and p99 of weft beside)")
        if speeds:
            print("memcpy by all ranks: " + ", ".join(
                f"{size_text(size)} {speeds[size]:.1f} GB/s" for size in sorted(speeds)))
        print("\n".join(table(cells, ranks)))
    print()
    for line in targets.lines:
        verdict = {True: "met", False: "NOT MET", None: "not measured"}[line["met"]]
        value = "" if line["value"] is None else f" ({line['value']:.2f})"
        where = f", worst: {line['where']}" if line["where"] else ""
        print(f"{verdict:>12}  {line['target']}{value}{where}")


def print_json(cells, targets, missing):
    rows = [dict(row, who=key[0], ranks=key[1]) for key, row in sorted(cells.best.items())]
    print(json.dumps({"machine": machine(), "left_out": missing, "rows": rows,
                      "targets": targets.lines}, indent=1))


def main(arguments):
    as_json = "--json" in arguments
    work = [word for word in arguments if word != "--json"][0]
    cells = Cells(os.path.join(work, "rows"))
    targets = Targets(cells)
    (print_json if as_json else print_text)(cells, targets, left_out(work))
    return 0 if all(line["met"] for line in targets.lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
