#!/usr/bin/env python3
"""Where is each public function of C in Python?  Usage: python.py [--page]

bindings/python/reach.txt has a line for each function of the public headers: its place in Python, or the
reason why it has none.  This check compares it with the headers and with the calls of the extension.  A
test of the package looks up the places.  --page prints docs/python-functions.md (docs.list).
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REACH = ROOT / "bindings/python/reach.txt"
DECLARATION = re.compile(r"^WEFT_API\b[^;{]*?\b(weft_[a-z0-9_]+)\s*\(", re.M)
LINE = re.compile(r"(?P<function>weft_\w+) (?:= (?P<place>[\w.]+)(?: through (?P<through>.+))?|- (?P<reason>.+))")


def read_reach(path=REACH):
    """Header -> list of matches of LINE."""
    sections, current = {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if match is None or current is None:
                sys.exit(f"{path.name}:{number}: expected `function = place` or `function - reason`")
            current.append(match)
    return sections


def declared():
    """Header -> list of its functions."""
    headers = sorted((ROOT / "core/include/weft").glob("*.h"))
    found = {header.name: DECLARATION.findall(header.read_text()) for header in headers}
    return {name: functions for name, functions in found.items() if functions}


def called():
    text = "\n".join(path.read_text() for path in (ROOT / "bindings/python/src").glob("*.c"))
    return set(re.findall(r"\bweft_[a-z0-9_]+\b", text))


def problems(sections):
    wanted, calls = declared(), called()
    for header in sorted(set(wanted) | set(sections)):
        listed = [match["function"] for match in sections.get(header, [])]
        for name in wanted.get(header, []):
            if name not in listed:
                yield f"[{header}] has no line for {name}"
        for name in listed:
            if name not in wanted.get(header, []):
                yield f"[{header}] lists {name}, which {header} does not declare"
            elif listed.count(name) > 1:
                yield f"[{header}] lists {name} twice"
    for match in (match for matches in sections.values() for match in matches):
        is_called = match["function"] in calls
        if match["reason"] and is_called:
            yield f"{match['function']} is called by the extension: name its place"
        if match["place"] and not match["through"] and not is_called:
            yield f"{match['function']} is not called by the extension: add `through ...`, or a reason"


def page(sections):
    count = sum(len(matches) for matches in sections.values())
    reached = sum(bool(match["place"]) for matches in sections.values() for match in matches)
    lines = [
        "# The functions of C in Python",
        "",
        f"{reached} of the {count} public functions of C are reached from Python. `ci/checks/docs.sh BUILD --fix`",
        "writes this page from `bindings/python/reach.txt`.",
    ]
    for header, matches in sections.items():
        lines += ["", f"## {header}", "", "| C | Python |", "|---|--------|"]
        for match in matches:
            place = f"`{match['place']}`" if match["place"] else match["reason"]
            lines.append(f"| `{match['function']}` | {place} |")
    return "\n".join(lines) + "\n"


def main():
    sections = read_reach()
    if sys.argv[1:] == ["--page"]:
        print(page(sections), end="")
        return
    found = list(problems(sections))
    for problem in found:
        print(f"python.py: {problem}")
    if found:
        sys.exit(1)
    print("python: every public function of C has a place in Python, or a reason")


if __name__ == "__main__":
    main()
