#!/usr/bin/env python3
"""complete.py API INCLUDE DESCRIPTION.json - C++ reaches every public function: a header of C++ in INCLUDE calls it."""
import pathlib
import re
import sys

sys.path.insert(0, sys.argv[1])

import bound  # noqa: E402  of api/


def main():
    folder, description = map(pathlib.Path, sys.argv[2:])
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("weft/*.hpp"))
    named = set(re.findall(r"\bweft_\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
    functions = bound.read(description)["functions"]
    missing = [f"{one['header']}: no header of C++ calls {name}" for name, one in functions.items() if name not in named]
    print("\n".join(missing) or f"the headers of C++ call all {len(functions)} functions")
    return 1 if missing or not functions else 0


sys.exit(main())
