#!/usr/bin/env python3
"""tutorial.py DOCUMENT WEFT HEADER [--fix] - do what a tutorial says, exactly as it says it.

In the order of the text: a block that opens with ```c NAME, ```cpp NAME or ```python NAME is written to the file NAME
(one without a NAME is part of a program, and is skipped), a ```sh block is run, and the lines of a ```text block must all
turn up, in order, in what the last ```sh block printed.  Numbers of seconds, of processes and of jobs are not compared.
The folder it all happens in holds nothing else but HEADER.  If that is a folder of headers and the variable LIBRARIES
names the folder of the libraries, pkg-config finds weft as if it were installed.
With --fix, ```text blocks are replaced by what was printed by the command before them, less its first line.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only"]
COMPILERS = {".c": ("CC", "cc", "-std=c17"), ".cc": ("CXX", "c++", "-std=c++17")}


def without_times(text):
    return re.sub(r"\b(job|pid) [0-9a-f]+", r"\1 #", re.sub(r"\b[0-9.]+ m?s\b", "# s", text))


def compare(wanted, printed):
    """The lines of WANTED turn up in PRINTED, in order."""
    rest = iter(without_times(printed).splitlines())
    for line in without_times(wanted).splitlines():
        if line.strip() and not any(line.rstrip() == other.rstrip() for other in rest):
            sys.exit(f"the text promises this line, which did not come (in this order):\n  {line}\n"
                     f"what came:\n{printed}")


def compile_strictly(name, folder):
    variable, fallback, standard = COMPILERS[pathlib.Path(name).suffix]
    command = [os.environ.get(variable, fallback), standard, *WARNINGS, name]
    subprocess.run(command, cwd=folder, check=True)


def run(commands, folder, environment):
    result = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder,
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, check=False)
    print(commands + result.stdout)
    if result.returncode != 0:
        sys.exit(f"exit code {result.returncode}")
    return result.stdout


def install(headers, environment, folder):
    """What an installation has for pkg-config and for the linker at run time."""
    libraries = environment["LIBRARIES"]
    for name, requires in (("weft", ""), ("weft-file", "weft"), ("weft-parallel", "weft")):
        pathlib.Path(folder, f"{name}.pc").write_text(
            f"Name: {name}\nDescription: weft\nVersion: 0\nRequires: {requires}\nCflags: -I{headers}\n"
            f"Libs: -L{libraries} -l{name.replace('-', '_')}\n", encoding="utf-8")
    environment["PKG_CONFIG_PATH"] = folder
    environment["LD_LIBRARY_PATH"] = libraries


def main():
    document, weft, header = sys.argv[1:4]
    fix = sys.argv[4:] == ["--fix"]
    header = pathlib.Path(header)
    text = open(document, encoding="utf-8").read()
    environment = dict(os.environ)
    environment["PATH"] = os.path.dirname(os.path.abspath(weft)) + ":" + environment["PATH"]
    printed, ran, fixed = "", 0, text
    with tempfile.TemporaryDirectory(prefix="weft-tutorial-") as folder, tempfile.TemporaryDirectory() as packages:
        if header.is_dir():
            if "LIBRARIES" in environment:
                install(header, environment, packages)
            WARNINGS.append(f"-I{header}")
        else:
            shutil.copy(header, folder)
        for language, name, body in FENCE.findall(text):
            if language in ("c", "cpp", "python") and name:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(body)
            elif language == "sh":
                for source in sorted(os.listdir(folder)):
                    if pathlib.Path(source).suffix in COMPILERS:
                        compile_strictly(source, folder)
                printed = run(body, folder, environment)
                ran += 1
            elif language == "text" and fix:
                kept = printed[printed.rindex(", seed "):].split("\n", 1)[1]
                fixed = fixed.replace("```text\n" + body, "```text\n" + kept)
            elif language == "text":
                compare(body, printed)
    if ran == 0:
        sys.exit(f"{document} has no ```sh block")
    if fix:
        open(document, "w", encoding="utf-8").write(fixed)


main()
