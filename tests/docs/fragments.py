"""What documents call exists: in every code block and every code text of README.md and docs, a function of weft has as many
arguments as its declaration, a constant of weft is declared, and a command of the tool has the options that it is given.

usage: fragments.py SOURCE DESCRIPTION.json WEFT
"""
import json
import pathlib
import re
import subprocess
import sys

source, description, weft = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
api = json.loads(description.read_text(encoding="utf-8"))
problems, calls, commands = [], 0, 0
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
INDENTED = re.compile(r"(?:^    .*\n(?:\n(?=    ))?)+", re.M)
# What is no function of the description: inline functions for kernels, what a program defines, and placeholders.
HEADERS = "".join(path.read_text(encoding="utf-8") for path in source.glob("*/include/weft/*.h"))
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
CALL = re.compile(r"(?<![\w.>])(weft_\w+)\(")
COMMAND = re.compile(r"(?:^|[|&(] ?|-- |\$ ?|[\"'])weft ([a-z]+)((?: [^|&;#)`\n]*)?)", re.M)


def arguments(text, begin):
    """The arguments of the call whose parenthesis is before BEGIN; None if it does not end."""
    depth, found, quote = 0, [""], ""
    for at, letter in enumerate(text[begin:], begin):
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter == ")" and depth == 0:
            return [one.strip() for one in found] if "".join(found).strip() else []
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append("")
            continue
        found[-1] += letter
    return None


def check_calls(where, code):
    global calls
    for found in CALL.finditer(code):
        function = api["functions"].get(found[1])
        given = arguments(code, found.end())
        if function is None and found[1] not in HEADERS and not found[1].startswith(("weft_x_", "weft_main")):
            problems.append(f"{where}: there is no function {found[1]}")
        if function is None or given is None or any("..." in one or "->" in one and " " in one for one in given):
            continue
        calls += 1
        wanted = len(function["arguments"])
        if given and len(given) != wanted and not (function["variadic"] and len(given) > wanted):
            problems.append(f"{where}: {found[1]} has {wanted} arguments, not {len(given)}: {', '.join(given)}")


def helps():
    """The options of each command."""
    pages = {}
    listed = subprocess.run([weft, "--help"], capture_output=True, text=True, check=True).stdout
    inner = subprocess.run([weft, "bench", "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z]+) ", listed, re.M)
    for words in [[name] for name in names] + [["bench", name] for name in re.findall(r"^  ([a-z]+) ", inner, re.M) if name != "weft"]:
        page = subprocess.run([weft, *words, "--help"], capture_output=True, text=True, check=True).stdout
        pages[" ".join(words)] = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", page, re.M)) | set(re.findall(r"^  (-\w),", page, re.M))
    return pages


def check_commands(where, code, pages):
    global commands
    for found in COMMAND.finditer(code.replace("\\\n", " ")):
        name, rest = found[1], found[2]
        if name not in pages:
            continue
        word = rest.split()[:1]
        if name == "bench" and word and f"bench {word[0]}" in pages:
            name = f"bench {word[0]}"
        if name == "run":  # the program has options of its own
            rest = re.split(r" (?![-\d])(?!\S*=)", re.sub(r"(--?[a-z-]+) [\w.:\[\]]+", r"\1", rest))[0]
        commands += 1
        for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z](?=[ \d]))", re.sub(r"\"[^\"]*\"|'[^']*'", "", rest)):
            if option not in pages[name] and option not in ("--help", "-h"):
                problems.append(f"{where}: weft {name} has no option {option}: weft {found[1]}{found[2]}")


pages = helps()
documents = [source / "README.md", *sorted((source / "docs").rglob("*.md"))]
for path in documents:
    where = path.relative_to(source).as_posix()
    if where.startswith("docs/history/"):
        continue
    text = path.read_text(encoding="utf-8")
    blocks = [found[2] for found in FENCE.finditer(text)]
    rest = FENCE.sub("", text)
    blocks += INDENTED.findall(rest)
    blocks += [found[1] for found in INLINE.finditer(INDENTED.sub("", rest))]
    for block in blocks:
        check_calls(where, block)
        check_commands(where, block, pages)
print("\n".join(problems))
print(f"{len(documents)} documents, {calls} calls, {commands} commands")
sys.exit(1 if problems or calls < 100 or commands < 100 else 0)
