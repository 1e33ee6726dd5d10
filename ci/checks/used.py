#!/usr/bin/env python3
"""Every public function is called by the tool (cli), by an example, or by libweft_file or libweft_parallel, which use
libweft as a program would.  examples/cuda calls what needs a device.

Comments and texts do not count, and neither do bindings: members of theirs exist for every function.  A function that
nobody calls is one that nobody has tried: call it in the tool or in an example that does a user's job, or delete it."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLERS = ["cli/**/*.[ch]", "examples/**/*.[ch]", "examples/**/*.cu"]
UPPER = ["files/**/*.[ch]", "parallel/**/*.[ch]", "core/outside/*.c"]  # the sources of libweft_file and libweft_parallel
NO_CALL = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:[^\'\\\n]|\\.)+\'|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
NAME = re.compile(r"(?<!enum )(?<!struct )\bweft_\w+(?=\s*[(,);])")


def public_functions():
    """name -> (header, library)"""
    headers = sorted(path for path in ROOT.glob("*/include/weft/*.h"))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, ROOT / "api/describe.py", out.name, "0", *headers], check=True)
        functions = json.loads(pathlib.Path(out.name).read_text())["functions"]
    return {name: (one["header"], one["library"]) for name, one in functions.items()}


def named_in(patterns):
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return {name for path in paths for name in NAME.findall(NO_CALL.sub(" ", path.read_text()))}


def called(functions):
    """Functions that are called, or that a caller passes on to be called."""
    return named_in(CALLERS) | {name for name in named_in(UPPER) if functions.get(name, ("", ""))[1] == "weft"}


def main():
    functions = public_functions()
    names = called(functions)
    unused = sorted(name for name in functions if name not in names)
    for name in unused:
        print(f"{functions[name][0]}: nobody calls {name}; call it in the tool or in an example, or delete it")
    if not unused:
        print(f"used: each of {len(functions)} public functions has a caller")
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main())
