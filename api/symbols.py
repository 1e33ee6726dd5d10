#!/usr/bin/env python3
"""Write the linker's list of the symbols that a library exports: symbols.py OUT.map DESCRIPTION.json LIBRARY"""
import json
import pathlib
import sys


def main():
    out, description, library = sys.argv[1:]
    functions = json.loads(pathlib.Path(description).read_text(encoding="utf-8"))["functions"]
    names = sorted(name for name, one in functions.items() if one["library"] == library)
    lines = [f"{library.upper()}_0 {{", "    global:"] + [f"        {name};" for name in names] + ["    local: *;", "};"]
    pathlib.Path(out).write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
