#!/usr/bin/env python3
"""complete.py FOLDER - weft.hpp in FOLDER uses every function of the other headers that gives the
caller an object to release, and every function that releases or retains one."""
import pathlib
import re
import sys

FUNCTION = re.compile(r"WEFT_API[^;{]*?\b(weft_\w+)\(([^;{]*)\);", re.S)
OBJECT = re.compile(r"\bweft_\w+ \*\*out\b")


def owning_functions(folder):
    for header in sorted(folder.glob("*.h")):
        for name, parameters in FUNCTION.findall(header.read_text()):
            if OBJECT.search(parameters) or re.search("_(release|retain|close)$", name):
                yield header.name, name


def main():
    folder = pathlib.Path(sys.argv[1])
    text = (folder / "weft.hpp").read_text()
    functions = list(owning_functions(folder))
    missing = [f"{header}: {name} is not in weft.hpp" for header, name in functions
               if not re.search(rf"\b{name}\b", text)]
    print("\n".join(missing) or f"weft.hpp uses all {len(functions)} functions that pass ownership")
    return 1 if missing or not functions else 0


sys.exit(main())
