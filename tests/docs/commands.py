#!/usr/bin/env python3
"""commands.py DOCUMENT WEFT - every indented `$ weft ...` of a document prints the lines that follow it.

The time that weft itself took ("planned in 6.1 us") is not compared.
"""
import pathlib
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^    \$ (weft .*)\n((?:    .*\n)*)", re.MULTILINE)


def without_times(text):
    return re.sub(r"planned in [0-9.]+ [a-z]+", "planned in #", text)


def main():
    document, weft = sys.argv[1:]
    blocks = BLOCK.findall(pathlib.Path(document).read_text(encoding="utf-8"))
    if not blocks:
        sys.exit(f"{document} has no indented command")
    for command, printed in blocks:
        wanted = without_times("".join(line[4:] for line in printed.splitlines(keepends=True)))
        done = subprocess.run([weft, *shlex.split(command)[1:]], capture_output=True, text=True, check=False)
        if done.returncode != 0 or without_times(done.stdout) != wanted:
            sys.exit(f"{command}\nends with {done.returncode}, and prints\n{done.stdout}{done.stderr}\nnot\n{wanted}")
    print(f"{document}: {len(blocks)} commands")


main()
