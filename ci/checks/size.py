#!/usr/bin/env python3
"""Files of at most 500 lines, functions of at most 60, folders of core, plugins and cli of 25 files.
Public headers, whose contracts need room, have no limit.

size.allow beside this script lists the exceptions, `path`, `path:function` or `folder/`, each with a
reason after a #.  An entry that is no longer needed is an error too.
"""
import collections
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_FILE, MAX_FUNCTION, MAX_FOLDER = 500, 60, 25
ROOMS = ("core/", "plugins/", "cli/")
NO_LIMIT = ("core/include/weft/",)
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
    """(key for size.allow, complaint)"""
    counts = collections.Counter(
        name.rpartition("/")[0] for name in tracked_names() if name.startswith(ROOMS))
    for folder, count in sorted(counts.items()):
        if count > MAX_FOLDER:
            yield f"{folder}/", f"{folder}: {count} files, at most {MAX_FOLDER}"


def function_name(lines, brace):
    """The name before the parameter list that ends above line BRACE."""
    start = brace
    while start > 0 and lines[start - 1].strip() and not lines[start - 1].startswith(("}", "#")):
        start -= 1
    match = NAME.search(" ".join(lines[start:brace]))
    if not match:
        return None
    return match.group(2) if match.group(1) == "START_TEST" else match.group(1)


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


def read_allowed():
    path = pathlib.Path(__file__).with_name("size.allow")
    entries = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return {entry for entry in entries if entry}


def oversized():
    """(key for size.allow, complaint)"""
    for name, path in tracked_files():
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > MAX_FILE and not name.startswith(NO_LIMIT):
            yield name, f"{name}: {len(lines)} lines, at most {MAX_FILE}"
        if path.suffix in BRACED:
            for function, length in functions(lines):
                if length > MAX_FUNCTION:
                    yield (f"{name}:{function}",
                           f"{name}: {function} has {length} lines, at most {MAX_FUNCTION}")


def main():
    allowed, used, bad = read_allowed(), set(), 0
    for key, complaint in itertools.chain(oversized(), crowded_folders()):
        if key in allowed:
            used.add(key)
        else:
            print(complaint)
            bad += 1
    for key in sorted(allowed - used):
        print(f"size.allow: {key} is no longer needed")
        bad += 1
    if not bad:
        print(f"size: files within {MAX_FILE} lines, functions within {MAX_FUNCTION}, folders within "
              f"{MAX_FOLDER} files")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
