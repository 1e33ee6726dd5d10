#!/usr/bin/env python3
"""Every public function is called by the tool (cli), by an example, or by libweft_file or libweft_parallel, which use
libweft as a program would.  examples/cuda calls what needs a device.

Comments and texts do not count, and neither do bindings: members of theirs exist for every function.  A function that
nobody calls is one that nobody has tried: call it in the tool or in an example that does a user's job, or delete it.
ci/checks/used.allow lists the exceptions, with the reason."""
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
ALLOW = ROOT / "ci/checks/used.allow"


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


def allowed():
    """name -> reason"""
    rows = [line.partition("#") for line in ALLOW.read_text().splitlines() if line.startswith("weft_")]
    return {name.strip(): reason.strip() for name, _, reason in rows}


def main():
    functions, reasons = public_functions(), allowed()
    names = called(functions)
    unused = {name for name in functions if name not in names}
    if sys.argv[1:] == ["--list"]:
        for name in sorted(unused, key=lambda one: (functions[one], one)):
            print(f"{functions[name][0]:20} {name:32} {reasons.get(name, '')}")
    problems = [f"{functions[name][0]}: nobody calls {name}; call it in the tool or in an example, or delete it"
                for name in sorted(unused - set(reasons))]
    problems += [f"used.allow: {name} {'has a caller now' if name in functions else 'is not a public function'}; remove the line"
                 for name in sorted(set(reasons) - unused)]
    problems += [f"used.allow: {name} has no reason" for name, reason in reasons.items() if not reason]
    for problem in problems:
        print(problem)
    if not problems:
        print(f"used: of {len(functions)} public functions, {len(unused)} have no caller yet")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
