#!/usr/bin/env python3
"""Write the linker's list of the symbols that libweft exports: symbols.py OUT.map DESCRIPTION.json"""
import json
import pathlib
import sys


def main():
    out, description = map(pathlib.Path, sys.argv[1:])
    names = json.loads(description.read_text(encoding="utf-8"))["functions"]
    lines = ["WEFT_0 {", "    global:"] + [f"        {name};" for name in sorted(names)] + ["    local: *;", "};"]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
