#!/usr/bin/env python3
"""test_needs.py WEFT DOCUMENT - the table "What weft needs" of docs/writing-a-plugin.md is true.

Runs each row of it on the plugin bare, which denies all operations but those of the row, with and
without a kernel table as the row says.
"""
import os
import re
import subprocess
import sys

ANSWERS = {"work": True, "are refused when they are bound": False}
KERNELS = {"with": [""], "without": ["kernel"], "with or without": ["", "kernel"]}
PAIRS = [("P", "R"), ("S(0)", "R"), ("S(0)", "S(1)")]


def read_rows(document):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    section = text.split("## What weft needs", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines() if line.startswith("|")][2:]
    return [(re.findall(r"^`(\w+)`", has), KERNELS[kernels], ANSWERS[answer])
            for has, kernels, answer in rows]


def main():
    weft, document = sys.argv[1:]
    rows = read_rows(document)
    if len(rows) < 6:
        sys.exit(f"{document} has {len(rows)} rows; the table was not found")
    for operations, kernels, works in rows:
        for lacks in kernels:
            environment = dict(os.environ, BARE_DENIES="all", BARE_KEEPS=",".join(operations),
                               BARE_LACKS=lacks)
            for source, target in PAIRS:
                run = subprocess.run([weft, "redistribute", "--mesh", "3", "--shape", "11x18",
                                      "--from", source, "--to", target], env=environment,
                                     text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                right = ("is right on all 3 ranks" in run.stdout if works
                         else "has nothing to carry it" in run.stdout and "weft_plan_bind" in run.stdout)
                if (run.returncode == 0) != works or not right:
                    sys.exit(f"only {operations}, without {lacks or 'nothing'}, {source} -> {target}:\n{run.stdout}")
    print(f"{len(rows)} rows are true")


if __name__ == "__main__":
    main()
