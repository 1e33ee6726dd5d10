#!/usr/bin/env python3
"""complete.py INCLUDE DESCRIPTION.json - C++ reaches every public function: weft.hpp or handle.hpp in INCLUDE calls it."""
import json
import pathlib
import re
import sys


def main():
    folder, description = map(pathlib.Path, sys.argv[1:])
    text = "".join((folder / "weft" / name).read_text(encoding="utf-8") for name in ("weft.hpp", "handle.hpp"))
    named = set(re.findall(r"\bweft_\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
    functions = json.loads(description.read_text(encoding="utf-8"))["functions"]
    missing = [f"{one['header']}: weft.hpp does not call {name}" for name, one in functions.items() if name not in named]
    print("\n".join(missing) or f"weft.hpp calls all {len(functions)} functions")
    return 1 if missing or not functions else 0


sys.exit(main())
