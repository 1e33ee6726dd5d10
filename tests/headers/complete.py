#!/usr/bin/env python3
"""complete.py FOLDER DESCRIPTION.json - weft.hpp in FOLDER uses every public function that gives the caller an object
to release, and every function that releases or retains one."""
import json
import pathlib
import re
import sys


def passes_ownership(function):
    return function["returns"].get("owned") or any(
        argument["direction"] == "released" or argument.get("owned") for argument in function["arguments"])


def main():
    text = (pathlib.Path(sys.argv[1]) / "weft.hpp").read_text(encoding="utf-8")
    functions = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))["functions"]
    owning = {name: one for name, one in functions.items() if passes_ownership(one)}
    missing = [f"{one['header']}: {name} is not in weft.hpp" for name, one in owning.items()
               if not re.search(rf"\b{name}\b", text)]
    print("\n".join(missing) or f"weft.hpp uses all {len(owning)} functions that pass ownership")
    return 1 if missing or not owning else 0


sys.exit(main())
