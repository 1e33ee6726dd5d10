#!/usr/bin/env python3
"""Puts the logs of ci/gpu.sh together: gpu_report.py LOGS REPORT.json

Each part has its exit code and seconds; output that is JSON is taken as it is, other output as its
last lines.  "goals" says what was to be reached, what was, and whether it suffices.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys


def output_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def parse(text):
    """One JSON value, or several in a row as a list; None if it is something else."""
    decoder, values, at = json.JSONDecoder(), [], 0
    text = text.strip()
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return None
        values.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    return values[0] if len(values) == 1 else values or None


def part(logs, line):
    name, code, seconds = line.split("\t")
    entry = {"name": name, "code": int(code) if code != "late" else code, "seconds": int(seconds)}
    text = (logs / f"{name}.txt").read_text(errors="replace") if (logs / f"{name}.txt").exists() else ""
    error = (logs / f"{name}.err").read_text(errors="replace") if (logs / f"{name}.err").exists() else ""
    value = parse(text)
    if value is not None:
        entry["result"] = value
    else:
        entry["output"] = text.splitlines()[-15:]
    if entry["code"] != 0:
        entry["errors"] = error.splitlines()[-25:]
    return entry


# ---- goals ----


def goal(text, measured, met):
    return {"goal": text, "measured": measured, "met": bool(met)}


def kernel_goals(result):
    shares = {f"{row['kind']}, {row['detail']}": row["of_copy"] for row in result["speed"]
              if row["kind"] in ("pack", "unpack") and int(row["detail"].split()[-2]) >= 64}
    drawn = {row["detail"]: row["of_fill"] for row in result["speed"] if row["kind"] == "draw"}
    return [goal("packing and unpacking runs of 64 bytes and more, 256 MiB: 0.8 of a plain copy's rate",
                 shares, min(shares.values()) >= 0.8),
            goal("uniform random numbers of f32, 256 MiB: 0.8 of the rate of a fill",
                 drawn, drawn["uniform f32"] >= 0.8)]


def cost_goals(result):
    """In a row, and alone after a pause; there the driver's part of what is more is known, too."""
    found = []
    for kind, text in (("in_a_row", "in a row"), ("alone", "alone after a pause")):
        costs = {f"{row['from']} -> {row['to']}, {row['bytes']} B": row[kind] for row in result["rows"]}
        share = {name: round(cost["us"] / cost["raw_us"], 3) for name, cost in costs.items()}
        cpu = {name: cost["more_cpu_us"] for name, cost in costs.items()}
        measured = {"cpu_us_more": cpu, "times_of_raw": share}
        if kind == "alone":
            measured["cpu_us_more_by_driver"] = {name: cost["questions_cpu_us"] for name, cost in costs.items()}
        found.append(goal(f"a redistribution of one collective, {text}: 3 us of CPU time and 3 % more than NCCL's call",
                          measured, max(cpu.values()) <= 3 and max(share.values()) <= 1.03))
    return found


def dtensor_goal(result):
    ratios = {f"{row['from']} -> {row['to']}, {'x'.join(map(str, row['shape']))}, {row['ranks']} ranks":
              round(row["ratio"], 2) for row in result["rows"]}
    hard = [ratio for name, ratio in ratios.items() if name.startswith(("S(0) -> S(1)", "P -> S(1)"))]
    return goal("never slower than DTensor over NCCL; S(0) -> S(1) and P -> S(1) 1.5 times as fast",
                ratios, min(ratios.values()) >= 1 and min(hard) >= 1.5)


def rate_goal(result):
    least = {"S(0) -> R": 0.7, "S(0) -> S(1)": 0.7, "R -> S(1)": 0.7, "P -> R": 0.6, "P -> S(0)": 0.6}
    shares, casts, large_casts, small, plain = {}, {}, {}, {}, {}
    for row in result["rows"]:
        name = f"{row['from']} -> {row['to']}"
        size, casting = row["shape"][0], row["to_dtype"] != "f32"
        if size == 8192 and not casting:
            shares[name] = row["share"]
        elif size == 8192:
            large_casts[name] = round(row["share"] / shares[name], 3)
        elif size == 4096 and not casting:
            plain[name] = row["share"]
        elif size == 4096:
            casts[name] = round(row["share"] / plain[name], 3)
        elif size == 64 and not casting:
            small[name] = round(row["alone_ns"] / 1000, 1)
    return goal("of a plain copy's rate by the same number of ranks, f32 8192x8192: 0.7, partials 0.6; 64x64 in 30 us; "
                "f32 to bf16 4096x4096, S(0) -> S(1): 0.8 of the share without the cast",
                {"share": shares, "cast_of_share": casts, "cast_of_share_8192": large_casts,
                 "small_us": small},
                all(shares[name] >= bound for name, bound in least.items()) and max(small.values()) < 30
                and casts["S(0) -> S(1)"] >= 0.8)


def against_nccl_goal(results):
    times = [{f"{row['from']} -> {row['to']}": row["median_ns"] for row in result["rows"]} for result in results]
    ratios = {name: round(times[1][name] / times[0][name], 1) for name in times[0]}
    moved = [ratio for name, ratio in ratios.items() if name != "R -> S(1)"]
    return goal("20 times as fast as nccl, whose ranks on one device talk through sockets, f32 8192x8192",
                ratios, min(moved) >= 20)


def placement_goal(results):
    """The minimum of the runs of each kind, and its ratio to the S(0) of the same target."""
    least = {}
    for row in results:
        key = row["to"], row["from"]
        least[key] = min(row["min_ns"], least.get(key, row["min_ns"]))
    ratios = {f"{source} -> {target}": round(ns / least[target, "S(0)"], 3)
              for (target, source), ns in least.items() if source != "S(0)"}
    ranks, shape = results[0]["ranks"], "x".join(map(str, results[0]["shape"]))
    return goal(f"B and G take at most 1.1 times S, f32 {shape}, {results[0]['backend']}, {ranks} ranks",
                {"times_of_S": ratios,
                 "us": {f"{source} -> {target}": round(ns / 1000, 1) for (target, source), ns in least.items()}},
                max(ratios.values()) <= 1.1)


def fsdp_goals(least, overlap=None):
    """LEAST: how many times as fast as FSDP2 a step is.  OVERLAP: the most time of a step with compute."""
    def of(result):
        rows = {row["what"]: row for row in result["rows"]}
        step, clip, longer = rows["step"], rows["clip"], rows["overlap"]["of_longer"]
        found = []
        if overlap is not None:
            found.append(goal(f"with compute as long as communication, a step takes {overlap} times the longer one",
                              longer, longer <= overlap))
        if "ratio" not in step:  # without PyTorch
            return found
        host = step["fsdp2_host_ns"] / step["host_ns"]
        return found + [
            goal(f"the communication of a training step, {step['ranks']} ranks: {least} times as fast as FSDP2 over "
                 "NCCL, 5 times less time of the host", {"step": round(step["ratio"], 2), "host": round(host, 1)},
                 step["ratio"] >= least and host >= 5),
            goal("clipping 1,500 tensors: 20 times as fast as PyTorch", round(clip["ratio"], 1), clip["ratio"] >= 20)]
    return of


def overlap_goal(result):
    """The call that costs have chosen, of the shapes whose gather takes 50 to 100 % of the matmul's time."""
    rows = [row for row in result["rows"] if row["what"] == "gather" and row["by_costs"] and row["symmetric"]
            and 0.5 <= row["communication_of_matmul"] <= 1]
    have = {f"{row['rows']} x {row['width']} x {row['columns']}": row["of_longer"] for row in rows}
    return goal("a matmul of gathered rows takes 1.3 times the longer of gather and matmul", have,
                bool(have) and max(have.values()) <= 1.3)


def ring_goal(result):
    longer = result["rows"][0]["of_longer"]
    return goal("with attention as long as a rotation, a step of a ring takes 1.2 times the longer one", longer,
                longer <= 1.2)


def experts_goal(result):
    have = {f"{row['what']}, {row['per_rank']} experts per rank": row["of_exchange"] for row in result["rows"]}
    return goal("dispatch and combine within 10 % of one exchange", have, max(have.values()) <= 1.1)


GOALS = {"nvshmem_rate_4": rate_goal, "nvshmem_against_nccl": against_nccl_goal,
         "kernels": kernel_goals, "cost_2": cost_goals, "dtensor": dtensor_goal,
         "placements_nccl_2": placement_goal, "placements_nvshmem_2": placement_goal,
         "placements_nvshmem_4": placement_goal,
         "fsdp_speed_nccl_2": fsdp_goals(1), "fsdp_speed_nccl_4": fsdp_goals(1),
         "fsdp_speed_nvshmem_2": fsdp_goals(10, 1.2), "fsdp_speed_nvshmem_4": fsdp_goals(10, 1.2),
         "overlap_speed_nvshmem": overlap_goal, "experts_speed_nvshmem": experts_goal,
         "experts_speed_nccl": experts_goal, "ring_speed_nvshmem_2": ring_goal, "ring_speed_nvshmem_4": ring_goal}


def goals(parts):
    found = []
    for entry in parts:
        if entry["name"] in GOALS and entry["code"] == 0 and "result" in entry:
            one = GOALS[entry["name"]](entry["result"])
            found.extend({"part": entry["name"], **each} for each in (one if isinstance(one, list) else [one]))
    return found


def library(parts):
    """What the nccl plugin says of the libraries it found."""
    for entry in parts:
        for plugin in entry["result"].get("plugins", []) if entry["name"] == "info" and "result" in entry else []:
            if plugin.get("name") == "nccl":
                return plugin.get("library")
    return None


def main():
    logs, report = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = (logs / "parts.tsv").read_text().splitlines()
    parts = [part(logs, line) for line in lines]
    data = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": os.environ.get("GPU_COMMIT") or output_of(["git", "rev-parse", "HEAD"]),
        "command": f"GPU_PARTS='{os.environ['GPU_PARTS']}' ci/gpu.sh" if os.environ.get("GPU_PARTS") else "ci/gpu.sh",
        "device": output_of(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]),
        "nccl": library(parts),
        "nvcc": (output_of(["nvcc", "--version"]) or "").splitlines()[-1:],
        "goals": goals(parts),
        "parts": parts,
    }
    here = str(pathlib.Path(__file__).resolve().parent.parent) + "/"
    report.write_text(json.dumps(data, indent=1).replace(here, "") + "\n")


if __name__ == "__main__":
    main()
