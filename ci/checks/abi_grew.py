#!/usr/bin/env python3
"""What a record of the ABI promised and another one lacks: abi_grew.py OLD.abi NEW.abi

An ABI grows if all functions stay as they are, and members and enumerators keep their places: both may be appended.  In a
record each of them is one line (ci/checks/abi.sh).  An enumerator that counts the others may change."""
import pathlib
import re
import sys

COUNTS = re.compile(r"name='WEFT_\w+_(COUNT|KINDS|OPERATION_COUNT)'")


def promised(path):
    """Functions, and members and enumerators with the name of their type."""
    lines, inside = set(), ""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if line.startswith(("<class-decl", "<enum-decl")):
            inside = re.search(r"name='(\w+)'", line)[1]
        if line.startswith(("<data-member", "<enumerator")) and not COUNTS.search(line):
            lines.add(f"{inside}: {line}")
        elif line.startswith(("<function-decl", "<elf-symbol", "<function-type")):
            lines.add(line)
    return lines


def main():
    old, new = map(promised, sys.argv[1:])
    for line in sorted(old - new):
        print(f"promised, and removed or changed: {line}")
    return 1 if old - new or not old else 0


sys.exit(main())
