"""README.md says what is so: its C code stands in an example, its commands succeed, and it is short.

usage: readme.py SOURCE WEFT PROGRAMS      (PROGRAMS: the folder of the built examples)
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

source, weft, programs = (pathlib.Path(word) for word in sys.argv[1:4])
readme = (source / "README.md").read_text()
problems = []


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(block, text):
    """Do the block's lines follow each other in the text?"""
    return "\n".join(lines_of(block)) in "\n".join(lines_of(text))


examples = [path.read_text() for path in (source / "examples").rglob("*.c")]
for block in re.findall(r"```c\n(.*?)```", readme, re.S):
    if not any(stands_in(block, text) for text in examples):
        problems.append(f"no example holds these lines:\n{block}")

commands = re.findall(r"^\$ (.+)$", "\n".join(re.findall(r"```console\n(.*?)```", readme, re.S)), re.M)
for command in commands:
    path = os.pathsep.join((str(weft.parent), str(programs), os.environ["PATH"]))
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=900,
                          env=os.environ | {"PATH": path})  # fmt: skip
    if done.returncode != 0:
        problems.append(f"$ {command}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")

if readme.count("\n") >= 150:
    problems.append(f"README.md has {readme.count(chr(10))} lines, wanted are fewer than 150")
print("\n".join(problems) or f"README.md: {len(commands)} commands, {readme.count(chr(10))} lines")
sys.exit(1 if problems else 0)
