#!/usr/bin/env python3
"""Sizes and offsets of every struct of the plugin ABI, against the recorded ones in layout.txt.

    tests/abi/layout.py [--cc CC]            compare, fail when they differ
    tests/abi/layout.py [--cc CC] --record   record them anew

From 1.0.0-rc1 of weft on, lines may only be added to layout.txt.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER = ROOT / "core/include/weft/weft_plugin.h"
RECORDED = HERE / "layout.txt"


def fields(body):
    """Names of the fields declared in a struct's BODY, in order."""
    for declaration in filter(str.strip, body.split(";")):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        if function:
            yield function.group(1)
        else:
            for part in declaration.split(","):
                yield re.sub(r"\[.*", "", part).split()[-1].lstrip("*")


def structs(header):
    header = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", header, flags=re.S):
        yield name, list(fields(body))


def measuring_program(header):
    lines = ['#include "weft_plugin.h"', "#include <stdio.h>", "int main(void) {"]
    for name, names in structs(header):
        lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
        for field in names:
            lines.append('printf("%s.%s %%zu +%%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                         % (name, field, name, field, name, field))
    return "\n".join(lines + ["return 0; }"])


def measure(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(measuring_program(HEADER.read_text()))
        subprocess.run([compiler, "-I", str(HEADER.parent), "-o", str(program), str(source)],
                       check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cc", default=os.environ.get("CC", "cc"))
    options.add_argument("--record", action="store_true")
    args = options.parse_args()

    now = measure(args.cc)
    if args.record:
        RECORDED.write_text(now)
        return
    difference = list(difflib.unified_diff(RECORDED.read_text().splitlines(), now.splitlines(),
                                           "recorded", "now", lineterm="", n=0))
    if difference:
        print("\n".join(difference))
        sys.exit("the layout of weft_plugin.h changed; docs/abi.md says what a minor may append")
    print("%d sizes and offsets are as recorded" % len(now.splitlines()))


if __name__ == "__main__":
    main()
