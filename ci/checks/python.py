#!/usr/bin/env python3
"""Where is each public function of C in Python?  Usage: python.py [--page]

Most functions are generated members (api/python.py).  bindings/python/reach.txt has a line for each of the others: its
place in Python, or the reason why it has none.  This check compares the file with the headers and with the calls of the
extension.  A test of the package looks up the places.  --page prints all places as a page.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REACH = ROOT / "bindings/python/reach.txt"
sys.path.insert(0, str(ROOT / "api"))

import bound  # noqa: E402  of api/
import describe  # noqa: E402
import python as generator  # noqa: E402
import reach  # noqa: E402


def generated(path=REACH):
    """The generator with all members, and the lines of reach.txt."""
    headers = sorted(ROOT.glob("*/include/weft/*.h"))
    decided = reach.read(path)
    made = generator.Generator(bound.of(describe.describe(headers).json("")), decided)
    made.collect()
    return made


def places(made):
    """Header -> list of (function, place in Python or "", reason why it has none)."""
    lines = made.reach.lines()
    members = {member.function: made.place(member) for entries in made.members.values() for member, _, _ in entries}
    found = {}
    for name, one in made.api["functions"].items():
        handle = [argument["type"].split()[0] for argument in one["arguments"] if argument["direction"] == "released"]
        handle += [one["returns"]["type"].split()[0]] if one["returns"].get("owned") else []
        place, reason = members.get(name, ""), ""
        if name in lines and not place:
            place, reason = lines[name]["place"] or "", lines[name]["reason"] or ""
        elif not place:
            place = made.reach.place(handle[0])
            place = made.place(generator.constructor(made, handle[0])) if "._" in place else place
        found.setdefault(one["header"], []).append((name, place, reason))
    return found


def problems(made):
    text = "\n".join(path.read_text() for path in (ROOT / "bindings/python/src").glob("*.c"))
    calls = set(re.findall(r"\bweft_[a-z0-9_]+\b", text))
    headers = {name: one["header"] for name, one in made.api["functions"].items()}
    headers |= {f"{name}.{field['name']}": one["header"] for name, one in made.api["structs"].items() for field in one["fields"]}
    for header, matches in made.reach.sections.items():
        names = [match["function"] for match in matches]
        for match in matches:
            name = match["function"]
            if headers[name] != header:
                yield f"[{header}] lists {name}, which is in {headers[name]}"
            elif names.count(name) > 1:
                yield f"[{header}] lists {name} twice"
            if match["reason"] and name in calls:
                yield f"{name} is called by the extension: name its place"
            if match["place"] and not match["through"] and name not in calls:
                yield f"{name} is not called by the extension: add `through ...`, or delete the line"


def page(made):
    found = places(made)
    count = sum(map(len, found.values()))
    reached = sum(bool(place) for functions in found.values() for _, place, _ in functions)
    by_hand = sum(bool(match["place"]) for match in made.reach.lines().values())
    lines = [
        "# The functions of C in Python",
        "",
        f"{reached} of the {count} public functions of C are reached from Python: {reached - by_hand} by members that the build",
        f"generates from the headers, {by_hand} by code that is written by hand.",
    ]
    for header, functions in found.items():
        lines += ["", f"## {header}", "", "| C | Python |", "|---|--------|"]
        lines += [f"| `{name}` | {f'`{place}`' if place else reason} |" for name, place, reason in functions]
    return "\n".join(lines) + "\n"


def main():
    made = generated()
    if sys.argv[1:] == ["--page"]:
        print(page(made), end="")
        return
    found = list(problems(made))
    for problem in found:
        print(f"python.py: {problem}")
    if found:
        sys.exit(1)
    print("python: every public function of C has a place in Python, or a reason")


if __name__ == "__main__":
    main()
