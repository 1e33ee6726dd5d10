#!/usr/bin/env python3
"""What the libraries of a build folder export.  Usage: symbols.py BUILD

libweft exports weft_* alone, and each symbol is declared with a comment in a public header.  A
plugin exports weft_plugin_entry alone.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARATION = re.compile(r"^WEFT_API\b[^;{]*?\b(weft_[a-z0-9_]+)\s*\(", re.M)


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()  # fmt: skip
    fields = [line.split() for line in lines]
    return {f[-1].split("@")[0] for f in fields if f[-2] not in ("A", "a")}  # A: version names


def declared():
    """Function -> does a comment stand above it, or above the unbroken run of lines it is in?"""
    found = {}
    for header in sorted((ROOT / "core/include/weft").glob("*.h")):
        text = header.read_text()
        for match in DECLARATION.finditer(text):
            above = text[: match.start()].rsplit("\n\n", 1)[-1].rstrip()
            same_line = text[match.start() :].split(";", 1)[1].split("\n", 1)[0]
            found[match.group(1)] = "*/" in above or "/*" in same_line
    return found


def library_problems(library):
    known = declared()
    symbols = exported(library)
    for name in sorted(symbols):
        if not name.startswith("weft_"):
            yield f"{library.name} exports {name}, which is not weft_*"
        elif name not in known:
            yield f"{library.name} exports {name}, which no public header declares"
        elif not known[name]:
            yield f"{name} has no comment in its public header"
    ahead = len(set(known) - symbols)
    if ahead:
        print(f"symbols: {ahead} functions of the public headers are yet to be written")


def plugin_problems(plugin):
    extra = exported(plugin) - {"weft_plugin_entry"}
    if extra:
        yield f"{plugin.name} exports more than weft_plugin_entry: {' '.join(sorted(extra))}"
    if "weft_plugin_entry" not in exported(plugin):
        yield f"{plugin.name} does not export weft_plugin_entry"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: symbols.py BUILD")
    lib = pathlib.Path(sys.argv[1]) / "lib"
    plugins = sorted((lib / "weft").glob("libweft_plugin_*.so"))
    problems = list(library_problems(lib / "libweft.so"))
    for plugin in plugins:
        problems += plugin_problems(plugin)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"symbols: libweft exports {len(exported(lib / 'libweft.so'))} documented functions; "
              f"{len(plugins)} plugins export one symbol each")  # fmt: skip
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
