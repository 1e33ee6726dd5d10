#!/usr/bin/env python3
"""Does every file include only what core/LAYERS, files/LAYERS, parallel/LAYERS and kit/LAYERS allow?

Holds for core: a module includes itself, the public headers and the modules its line lists; a line
lists only modules above it; pure modules include no system header with an effect.  Holds for files, parallel and kit: a
module includes itself, the public headers, the modules its line lists, core/kit, and of core/base the
headers without state of the process, and core/outside.  Holds elsewhere:
a plugin includes of weft nothing but weft_plugin.h and core/kit, the tool, the examples and the benchmarks
include public headers and their own (the tool also core/base, core/kit and core/outside, and DTensor's planners in bench what
makes plans), no folder of the tool includes another that includes it, and only core/config reads
the environment.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
CODE = {".c", ".h", ".hpp", ".cc", ".def", ".inc"}
IMPURE = {
    "stdio.h", "stdlib.h", "time.h", "threads.h", "pthread.h", "unistd.h", "fcntl.h", "dlfcn.h",
    "signal.h", "setjmp.h", "locale.h", "poll.h", "spawn.h", "netdb.h", "ifaddrs.h", "dirent.h",
    "errno.h",
}  # fmt: skip
IMPURE_FOLDERS = ("sys/", "net/", "netinet/", "arpa/", "linux/", "cuda", "hip/")
STATEFUL = {"base/fork.h"}  # of core/base
NOT_MODULES = {"include", "outside"}  # folders of libraries
UPPER = ("files", "parallel", "feed")  # libraries above libweft
LAYERED = (*UPPER, "kit")  # and the conformance kit
GETENV_CALLERS = ("core/config/", "cli/common/options.c")

problems = []


def complain(path, text, at, message):
    line = text.count("\n", 0, at) + 1
    problems.append(f"{path.relative_to(ROOT)}:{line}: {message}")


def read_layers(library):
    """Module -> (modules it may include, is it pure), in the file's order."""
    layers = {}
    path = ROOT / library / "LAYERS"
    for number, line in enumerate(path.read_text().splitlines(), 1):
        body, _, remark = line.partition("#")
        if not body.strip():
            continue
        name, colon, allowed = body.partition(":")
        name, allowed = name.strip(), allowed.split()
        if not colon or not re.fullmatch("[a-z]+", name):
            problems.append(f'{library}/LAYERS:{number}: want "module : modules  # remark"')
            continue
        for module in allowed:
            if module not in layers:
                problems.append(f"{library}/LAYERS:{number}: {name} lists {module}, which is not above it")
        if name in layers:
            problems.append(f"{library}/LAYERS:{number}: {name} stands here twice")
        layers[name] = (set(allowed), remark.strip().startswith("pure"))
    return layers


def code_below(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in CODE and p.is_file())


def is_impure(header):
    return header in IMPURE or header.startswith(IMPURE_FOLDERS)


def check_core_include(path, text, match, module, layers):
    quote, header = match.groups()
    allowed, pure = layers[module]
    target = header.split("/")[0]
    if quote == "<":
        if pure and is_impure(header):
            complain(path, text, match.start(), f"{module} is pure and may not include <{header}>")
    elif "/" in header:
        if target in layers and target != module and target not in allowed:
            complain(path, text, match.start(), f"{module} may not include {target} (core/LAYERS)")
        elif target not in layers and target != "weft":
            complain(path, text, match.start(), f'"{header}" is not part of the core')
    elif not (path.parent / header).exists() and (module, header) != ("kit", "weft_plugin.h"):
        complain(path, text, match.start(), f'"{header}" is not in {module}; write "module/{header}"')


def check_upper_include(path, text, match, module, layers):
    quote, header = match.groups()
    allowed, _ = layers[module]
    target = header.split("/")[0]
    if quote == "<" or target == "weft":
        return
    if header in STATEFUL:
        complain(path, text, match.start(), f"{header} has state of the process, which only libweft has")
    elif "/" not in header:
        library = ROOT / path.relative_to(ROOT).parts[0]
        if not (path.parent / header).exists() and not (library / header).exists():
            complain(path, text, match.start(), f'"{header}" is not in {module}; write "module/{header}"')
    elif target not in allowed | {module, "base", "kit", "outside"}:
        complain(path, text, match.start(), f"{module} may not include {target}")


def check_library(library, layers, check_include):
    for folder in sorted((ROOT / library).iterdir()):
        if folder.is_dir() and folder.name not in NOT_MODULES and folder.name not in layers:
            problems.append(f"{library}/{folder.name}: not listed in {library}/LAYERS")
    for module in layers:
        for path in code_below(ROOT / library / module):
            text = path.read_text()
            for match in INCLUDE.finditer(text):
                check_include(path, text, match, module, layers)


def check_public_headers():
    folders = [ROOT / library / "include" for library in ("core", *UPPER)]
    for path in (path for folder in folders for path in code_below(folder)):
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            quote, header = match.groups()
            places = [path.parent] if path.is_relative_to(ROOT / "core") else folders
            if quote == '"' and not any((place / header).exists() for place in places):
                complain(path, text, match.start(), f'"{header}" is not a public header')
            if path.name == "weft_plugin.h" and header not in ("stddef.h", "stdint.h"):
                complain(path, text, match.start(), "weft_plugin.h includes stddef.h and stdint.h only")


def check_plugins():
    core = {p.name for p in code_below(ROOT / "core")}
    for path in code_below(ROOT / "plugins"):
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            header = match.group(2)
            ours = header.split("/")[-1] in core and not (path.parent / header).exists()
            if match.group(1) == '"' and ours and header != "weft_plugin.h" and not header.startswith("kit/"):
                complain(path, text, match.start(), "a plugin includes of weft only weft_plugin.h and kit/")


def users_of_public_headers():
    """Folder -> modules of the core that its files may include besides the public headers."""
    return {"cli": {"base", "kit"}, "examples": set(), "examples/plugin": {"kit"}, "bench": set(),
            "bench/peers/dtensor_planner": {"plan"}}


def check_public_users(layers):
    users = users_of_public_headers()
    for top, allowed in users.items():
        roots = {ROOT / top, ROOT / "cli", *(ROOT / library / "include" for library in ("core", *UPPER))}
        for path in code_below(ROOT / top):
            if any(other.startswith(top + "/") and ROOT / other in path.parents for other in users):
                continue  # has a line of its own
            text = path.read_text()
            for match in INCLUDE.finditer(text):
                quote, header = match.groups()
                if quote == "<" or (path.parent / header).exists():
                    continue
                if any((root / header).exists() for root in roots):
                    continue
                module = header.split("/")[0]
                if module in layers and module not in allowed:
                    complain(path, text, match.start(), f"{top} includes public headers only, "
                             f"not {header} of the core")


def check_tool_folders():
    """common <- timing <- ... <- commands: no circle of folders."""
    folders = {p.name for p in (ROOT / "cli").iterdir() if p.is_dir()}
    uses = {folder: set() for folder in folders}
    for folder in folders:
        for path in code_below(ROOT / "cli" / folder):
            for match in INCLUDE.finditer(path.read_text()):
                header = match.group(2)
                target = header.split("/")[0]
                if "/" in header and target in folders - {folder} and (ROOT / "cli" / header).exists():
                    uses[folder].add(target)
    while True:
        done = {folder for folder, targets in uses.items() if not targets & uses.keys()}
        if not done:
            break
        for folder in done:
            del uses[folder]
    for folder, targets in sorted(uses.items()):
        problems.append(f"cli/{folder}: part of a circle, through {', '.join(sorted(targets))}")


def check_getenv():
    for top in ("core", *LAYERED, "cli", "plugins"):
        for path in code_below(ROOT / top):
            name = str(path.relative_to(ROOT))
            if name.startswith(GETENV_CALLERS):
                continue
            text = path.read_text()
            for match in re.finditer(r"\b(?:secure_)?getenv\s*\((\"\w+\")?", text):
                vendors = top == "plugins" and match.group(1) and "WEFT_" not in match.group(1)
                if not vendors:
                    complain(path, text, match.start(), "only core/config reads the environment, "
                             "and plugins what is their vendor's")


def main():
    layers, upper = read_layers("core"), {library: read_layers(library) for library in LAYERED}
    check_library("core", layers, check_core_include)
    for library, modules in upper.items():
        check_library(library, modules, check_upper_include)
    check_public_headers()
    check_plugins()
    check_public_users(layers)
    check_tool_folders()
    check_getenv()
    for problem in problems:
        print(problem)
    if not problems:
        print(f"layers: {len(layers)} modules of core and {sum(map(len, upper.values()))} of {', '.join(LAYERED)} keep to their LAYERS")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
