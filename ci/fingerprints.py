#!/usr/bin/env python3
"""Fingerprints of the plugin ABI's tables.

A fingerprint is a hash over a table's functions and every struct, enum and constant they reach, as
written in weft_plugin.h but without comments, spacing and message texts. Plugins carry it in their
tables and weft compares it when it loads them, so a signature that changed under an unchanged
version number is caught. The device table, which every plugin has, also stands for weft_host and
weft_plugin.

    ci/fingerprints.py               write the four numbers into weft_plugin.h
    ci/fingerprints.py --check       fail if they are not what they should be
    ci/fingerprints.py --print comm  what is hashed for a table
    ci/fingerprints.py --header F    another header than core/include/weft/weft_plugin.h
"""
import argparse
import hashlib
import pathlib
import re
import sys

HEADER = pathlib.Path(__file__).resolve().parent.parent / "core/include/weft/weft_plugin.h"
TABLES = ("device", "comm", "symm", "kernel")
BEGIN, END = "/* fingerprints begin */\n", "/* fingerprints end */\n"

# The ABI passes enums as fixed-width integers, so their types do not show in a signature, and
# neither do constants; the names of fields and parameters do.
ENUM_OF_NAME = {
    "timeout_ns": "WEFT_FOREVER",
    "dtype": "weft_dtype", "from": "weft_dtype", "to": "weft_dtype",
    "reduction": "weft_reduction", "collective": "weft_collective", "level": "weft_support_level",
    "features": "weft_feature", "kind": "weft_memory_kind", "flags": "weft_comm_flag",
    "op": "weft_signal_op", "compare": "weft_compare", "weft_status": "weft_status_code",
    "distribution": "weft_distribution", "nonfinite": "weft_nonfinite",
}


def canonical(text):
    """TEXT without string literals, with one space between tokens."""
    text = re.sub(r'"[^"]*"', "", text).replace("\\\n", " ")
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def definitions(header):
    """Name -> canonical text of every struct, enum, typedef and macro of HEADER."""
    header = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", header, flags=re.S):
        found[name] = canonical("struct " + name + "{" + body + "}")
    for name, body in re.findall(r"\benum (\w+) \{(.*?)\};", header, flags=re.S):
        found[name] = canonical("enum " + name + "{" + body + "}")
    for target, name in re.findall(r"^typedef (\w+) (\w+);", header, flags=re.M):
        found[name] = canonical("typedef " + target + " " + name)
    for name, body in re.findall(r"^#define (\w+)(?:\([\w, ]*\))?((?:[^\n]*\\\n)*[^\n]*)$", header,
                                 flags=re.M):
        if body.strip() and not re.search(r"_SIGNATURE$|^WEFT_ABI_", name):
            found[name] = canonical("define " + name + " " + body)
    return found


def reach(roots, known):
    """The names of all definitions that ROOTS use, themselves included; tables only as roots."""
    reached, todo = set(), list(roots)
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for word in re.findall(r"\w+", known[name]):
            for other in (word, ENUM_OF_NAME.get(word)):
                if other in known and not other.endswith("_table"):
                    todo.append(other)
    return sorted(reached)


def fingerprints(header):
    """Table -> (number, hashed text)."""
    known = definitions(header)
    result, seen = {}, set()
    for table in TABLES:
        roots = ["weft_%s_table" % table]
        if table == "device":
            roots += ["weft_host", "weft_plugin"]
        names = reach(roots, known)
        seen.update(names)
        text = "\n".join(known[name] for name in names) + "\n"
        result[table] = (hashlib.sha256(text.encode()).digest()[:8].hex(), text)
    lost = [name for name, text in known.items()
            if text.startswith(("enum", "struct")) and name not in seen]
    if lost:
        sys.exit("fingerprints: no table reaches %s; add it to ENUM_OF_NAME" % ", ".join(lost))
    return result


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--check", action="store_true", help="compare only")
    options.add_argument("--print", choices=TABLES, help="show what is hashed for a table")
    options.add_argument("--header", type=pathlib.Path, default=HEADER)
    args = options.parse_args()

    header = args.header.read_text()
    result = fingerprints(header)
    if args.print:
        print(result[args.print][1], end="")
        return
    width = max(map(len, TABLES))
    lines = "".join("#define WEFT_%s_SIGNATURE%s UINT64_C(0x%s)\n"
                    % (table.upper(), " " * (width - len(table)), result[table][0])
                    for table in TABLES)
    before, rest = header.split(BEGIN)
    old, after = rest.split(END)
    if old == lines:
        print("fingerprints of %s are current" % args.header.name)
    if args.check and old != lines:
        sys.exit("fingerprints of %s are not current: a signature changed; have\n%swant\n%s"
                 "run ci/fingerprints.py, and read docs/abi.md about versions"
                 % (args.header, old, lines))
    if not args.check and old != lines:
        args.header.write_text(before + BEGIN + lines + END + after)
        print("fingerprints written to %s:\n%s" % (args.header, lines), end="")


if __name__ == "__main__":
    main()
