#!/usr/bin/env python3
"""Every public function is called by the tool (cli) or by an example.  examples/cuda calls what needs a device.

Comments and texts do not count.  Neither do libweft_file and libweft_parallel, though they use libweft as a program
would, nor bindings, which have a member for every function.  A function that nobody calls is one that nobody has tried:
call it in the tool or in an example that does a user's job, or delete it."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLERS = ["cli/**/*.[ch]", "examples/**/*.[ch]", "examples/**/*.cu"]
NO_CALL = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:[^\'\\\n]|\\.)+\'|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
NAME = re.compile(r"(?<!enum )(?<!struct )\bweft_\w+(?=\s*[(,);])")


def public_functions():
    """name -> header"""
    headers = sorted(path for path in ROOT.glob("*/include/weft/*.h"))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, ROOT / "api/describe.py", out.name, "0", *headers], check=True)
        functions = json.loads(pathlib.Path(out.name).read_text())["functions"]
    return {name: one["header"] for name, one in functions.items()}


def called():
    """What is called, or passed on to be called."""
    paths = [path for pattern in CALLERS for path in ROOT.glob(pattern)]
    return {name for path in paths for name in NAME.findall(NO_CALL.sub(" ", path.read_text()))}


def main():
    functions = public_functions()
    names = called()
    unused = sorted(name for name in functions if name not in names)
    for name in unused:
        print(f"{functions[name]}: nobody calls {name}; call it in the tool or in an example, or delete it")
    if not unused:
        print(f"used: each of {len(functions)} public functions has a caller")
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main())
