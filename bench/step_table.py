#!/usr/bin/env python3
"""step_table.py [--json] --costs FILE --simulator FILE --processors N ROWS - the table of bench/step.sh.

A row has the ranks, the mesh, the mode, the microseconds of a step on one rank and on all ranks, and the JSON of
`weft step`.  Rows of the same mesh and mode are rounds; each side has its least time."""
import argparse
import json

MODES = {"-": "sharded parameters", "=": "tensor parallel"}
LIMIT = 0.15


def read(path):
    cases = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            ranks, mesh, mode, one, measured, step = line.split(" ", 5)
            case = cases.setdefault((mesh, mode), {
                "ranks": int(ranks), "mesh": mesh, "mode": MODES.get(mode, mode), "one_rank_us": [], "measured_us": [],
                "predicted_us": [], "bubble_us": [], "exposed_us": []})
            it = json.loads(step)
            case["one_rank_us"].append(float(one))
            case["measured_us"].append(float(measured))
            case["predicted_us"].append(it["time_ns"] / 1000)
            case["bubble_us"].append(it["bubble_ns"] / 1000)
            case["exposed_us"].append(it["exposed_ns"] / 1000)
    for case in cases.values():
        for key in list(case):
            if isinstance(case[key], list):
                case[key] = round(min(case[key]), 1)
        case["ratio"] = round(case["predicted_us"] / case["measured_us"], 3)
        case["within"] = abs(case["ratio"] - 1) <= LIMIT
    return list(cases.values())


def rates(path):
    with open(path, encoding="utf-8") as file:
        return {words[0]: int(words[1]) for words in map(str.split, file)
                if len(words) == 2 and words[0] in ("flops", "memory")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--costs", required=True)
    parser.add_argument("--simulator", required=True, help="seconds and MiB of weft step for 2^20 ranks")
    parser.add_argument("--processors", type=int, required=True)
    parser.add_argument("rows")
    given = parser.parse_args()
    cases, table = read(given.rows), rates(given.costs)
    with open(given.simulator, encoding="ascii") as file:
        seconds, mib = map(float, file.read().split())
    within = sum(case["within"] for case in cases)
    if given.json:
        print(json.dumps({"processors": given.processors, "rates": table, "cases": cases, "within": within,
                          "simulator_s": round(seconds, 3), "simulator_mib": round(mib, 1)}, indent=1))
        return
    print(f"{given.processors} processors; calibrated: flops {table.get('flops', 0)} (millions/s), "
          f"memory {table.get('memory', 0)} (fs/byte); times in us")
    print(f"{'ranks':>5}  {'mesh':12}{'step':20}{'one rank':>9}{'predicted':>11}{'measured':>10}"
          f"{'ratio':>7}{'bubble':>9}{'exposed':>9}")
    for case in cases:
        print(f"{case['ranks']:5}  {case['mesh']:12}{case['mode']:20}{case['one_rank_us']:9.0f}"
              f"{case['predicted_us']:11.0f}{case['measured_us']:10.0f}{case['ratio']:7.2f}"
              f"{case['bubble_us']:9.0f}{case['exposed_us']:9.0f}")
    print(f"predictions within {LIMIT:.0%} of the measured step: {within} of {len(cases)}")
    print(f"weft step for 2^20 ranks: {seconds:.2f} s, {mib:.0f} MiB, with the start of the process")
    most = max(case["ranks"] for case in cases)
    if given.processors < most:
        print(f"{most} ranks share {given.processors} processors, so measured steps are longer than predicted")


if __name__ == "__main__":
    main()
