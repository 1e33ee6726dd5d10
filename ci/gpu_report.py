#!/usr/bin/env python3
"""Puts the logs of ci/gpu.sh together: gpu_report.py LOGS REPORT.json

Each part has its exit code and seconds; output that is JSON is taken as it is, other output as its
last lines.
"""
import datetime
import json
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
    entry = {"name": name, "code": int(code) if code != "skipped" else code, "seconds": int(seconds)}
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


def main():
    logs, report = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = (logs / "parts.tsv").read_text().splitlines()
    data = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": output_of(["git", "rev-parse", "HEAD"]),
        "device": output_of(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]),
        "nvcc": (output_of(["nvcc", "--version"]) or "").splitlines()[-1:],
        "parts": [part(logs, line) for line in lines],
    }
    report.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
