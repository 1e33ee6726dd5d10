#!/usr/bin/env python3
"""The plugins of a build folder export weft_plugin_entry alone.  Usage: symbols.py BUILD

The test test_api_description compares the symbols of libweft with the public headers."""
import pathlib
import subprocess
import sys


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()  # fmt: skip
    fields = [line.split() for line in lines]
    return {f[-1].split("@")[0] for f in fields if f[-2] not in ("A", "a")}  # A: version names


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
    problems = [problem for plugin in plugins for problem in plugin_problems(plugin)]
    for problem in problems:
        print(problem)
    if not plugins:
        print(f"symbols: there is no plugin in {lib / 'weft'}")
    elif not problems:
        print(f"symbols: {len(plugins)} plugins export one symbol each")
    return 1 if problems or not plugins else 0


if __name__ == "__main__":
    sys.exit(main())
