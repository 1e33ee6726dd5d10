#!/usr/bin/env python3
"""Write C that has the stable functions of libweft, without their bodies: abi.py DESCRIPTION.json OUT.c

Compiled with debug information, it has the ABI that libweft promises and nothing else: functions with WEFT_PREVIEW and
the contents of handles are not in it.  The compiler compares each function with its header."""
import json
import pathlib
import sys


def declared(type_, name):
    if "(*)" in type_:
        return type_.replace("(*)", f"(*{name})", 1)
    return type_ + ("" if type_.endswith("*") else " ") + name


def definition(name, function):
    arguments = [declared(one["type"], one["name"]) for one in function["arguments"]] + ["..."] * function["variadic"]
    return f"{declared(function['returns']['type'], name)}({', '.join(arguments) or 'void'})\n{{\n    __builtin_trap();\n}}\n"


def main():
    description, out = map(pathlib.Path, sys.argv[1:])
    functions = json.loads(description.read_text(encoding="utf-8"))["functions"]
    stable = {name: one for name, one in functions.items() if one["library"] == "weft" and one["tier"] == "stable"}
    headers = sorted({one["header"] for one in stable.values()})
    text = "".join(f"#include <weft/{header}>\n" for header in headers)
    text += "".join("\n" + definition(name, one) for name, one in stable.items())
    out.write_text(text, encoding="utf-8")


main()
