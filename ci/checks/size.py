#!/usr/bin/env python3
"""Functions of at most 60 lines, and 5,000 lines of C for Python that are written by hand.  Advice, which does not fail: files of at most 500 lines, and folders of shipped
sources of 25 files.  Public headers, whose contracts need room, have no limit.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_FILE, MAX_FUNCTION, MAX_FOLDER = 500, 60, 25
PYTHON, MAX_PYTHON = "bindings/python/src/", 5000  # the rest is generated (api/python.py)
ROOMS = ("core/", "files/", "parallel/", "plugins/", "cli/", "kit/", "bindings/")
NO_LIMIT = ("core/include/weft/", "files/include/weft/", "parallel/include/weft/", "feed/include/weft/")
CODE = {".c", ".h", ".hpp", ".cc", ".cu", ".hip", ".def", ".py", ".sh", ".cmake", ".zig", ".rs"}
BRACED = {".c", ".h", ".cc", ".cu", ".hip"}  # .hpp: classes, whose braces are in column one too
# Looks like `name(` in the lines just above the brace that opens a function in column one.
NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(([A-Za-z_][A-Za-z0-9_]*)?")


def tracked_names():
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
        text=True)  # fmt: skip
    return [name for name in sorted(set(listing.stdout.splitlines())) if (ROOT / name).is_file()]


def tracked_files():
    for name in tracked_names():
        path = ROOT / name
        if path.suffix in CODE or path.name == "CMakeLists.txt":
            yield name, path


def crowded_folders():
    counts = collections.Counter(
        name.rpartition("/")[0] for name in tracked_names() if name.startswith(ROOMS))
    for folder, count in sorted(counts.items()):
        if count > MAX_FOLDER and not f"{folder}/".startswith(NO_LIMIT):
            yield f"{folder}: {count} files; more than {MAX_FOLDER}"


def function_name(lines, brace):
    """The name before the parameter list that ends above line BRACE."""
    start = brace
    while start > 0 and lines[start - 1].strip() and not lines[start - 1].startswith(("}", "#")):
        start -= 1
    match = NAME.search(" ".join(lines[start:brace]))
    if not match:
        return None
    return match.group(2) if match.group(1) == "TEST" else match.group(1)


def functions(lines):
    """(name, lines of the body with its braces) of each; clang-format puts both in column one."""
    open_at = None
    for number, line in enumerate(lines):
        if line.rstrip() == "{":
            open_at = number
        elif open_at is not None and line.startswith("}"):
            name = function_name(lines, open_at)
            if name:
                yield name, number - open_at + 1
            open_at = None


def main():
    bad = python = 0
    for complaint in crowded_folders():
        print(f"advice: {complaint}")
    for name, path in tracked_files():
        lines = path.read_text(errors="replace").splitlines()
        python += len(lines) if name.startswith(PYTHON) else 0
        if len(lines) > MAX_FILE and not name.startswith(NO_LIMIT):
            print(f"advice: {name}: {len(lines)} lines; more than {MAX_FILE}")
        for function, length in functions(lines) if path.suffix in BRACED else ():
            if length > MAX_FUNCTION:
                print(f"{name}: {function} has {length} lines, at most {MAX_FUNCTION}")
                bad += 1
    if python > MAX_PYTHON:
        print(f"{PYTHON}: {python} lines, at most {MAX_PYTHON}")
        bad += 1
    if not bad:
        print(f"size: functions within {MAX_FUNCTION} lines")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
