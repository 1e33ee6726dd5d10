#!/usr/bin/env python3
"""Every public function has a caller outside the library: the tool, an example, a
binding's own code, or another library of weft.

ci/checks/used.allow lists the functions that have none yet, with the reason.  A function that nobody calls is one that
nobody has tried: give it a caller, or delete it.  Generated members of bindings do not count, because they exist for every
function.  A line of bindings/python/reach.txt counts if code of a person stands behind it: `= PLACE`, or `as _NAME for
PLACE`."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["cli/**/*.[ch]", "examples/**/*.[ch]", "examples/**/*.cu", "bindings/python/src/*.[ch]"]
UPPER = ["files/**/*.[ch]", "parallel/**/*.[ch]", "core/outside/*.c"]  # they use libweft as a program would
REACHED = re.compile(r"(weft_\w+) (?:= |as _\w+ for )")
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
    return {name for path in paths for name in re.findall(r"(?<!enum )(?<!struct )\bweft_\w+(?=\s*[(,);])", path.read_text())}


def called(functions):
    names = named_in(SOURCES) | {name for name in named_in(UPPER) if functions.get(name, ("", ""))[1] == "weft"}
    lines = (ROOT / "bindings/python/reach.txt").read_text().splitlines()
    return names | {found[1] for found in map(REACHED.match, lines) if found}


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
