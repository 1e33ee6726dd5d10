"""CHANGELOG.md of the next release names what exists: every weft_ name in the column `new` of its table, and in its section
Added and that of docs/history, is in the description of the API, with its field.  Without the table it is short.  Its table is sorted, and has no row twice; a name in the
column `old` that is there alone is no longer in the API.

usage: changelog.py SOURCE DESCRIPTION.json
"""
import json
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
api = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
text = (source / "CHANGELOG.md").read_text(encoding="utf-8")
release = text[text.index("\n## "):]
release = release[:release.find("\n## ", 4)]
NAME = re.compile(r"\b(weft_\w+|WEFT_\w+)(?:\.(\w+))?")
section = {part.partition("\n")[0]: part.partition("\n")[2] for part in release.split("\n### ")}

history = (source / "docs/history/0.9.0.md").read_text(encoding="utf-8")
history = history[history.index("\n## Added\n"):]
section["Added"] += history[:history.find("\n## ", 4)]

known = {name for kind in ("functions", "structs", "enums", "handles", "callbacks", "constants") for name in api[kind]}
known |= {value["name"] for enum in api["enums"].values() for value in enum["values"]} | {"WEFT_PREVIEW"}
lists = set(re.findall(r"#define (WEFT_\w+_LIST)\b", "".join(path.read_text() for path in source.glob("*/include/weft/*.h"))))
variables = set(re.findall(r"KNOB\w*\((\w+)", (source / "core/config/knobs.def").read_text()))
builds = [source / "CMakeLists.txt", *source.glob("cmake/*"), *source.glob("plugins/**/*.cmake"), *source.glob("plugins/**/CMakeLists.txt")]
options = set(re.findall(r"\b(WEFT_\w+)", "".join(path.read_text() for path in builds)))
others = lists | variables | options | {"weft_plugin"}  # options of the build; weft_plugin.h


def missing(where):
    for name, field in NAME.findall(where):
        if name in known:
            struct = api["structs"].get(name)
            if field and struct and field not in [one["name"] for one in struct["fields"]]:
                yield f"{name}.{field}"
        elif name not in others and not name.endswith("_"):
            yield name


rows = [re.fullmatch(r"\| (.*?) \| (.*) \| (.*) \|", line) for line in section["From old to new names"].split("\n")]
rows = [row.groups() for row in rows if row and set(row[1]) != {"-"}][1:]  # without the head
problems = [f"the table names {name}, which is not in the API" for row in rows for name in missing(row[2])]
problems += [f"Added names {name}, which is not in the API" for name in missing(section["Added"])]
problems += [f"the table has {row} twice" for at, row in enumerate(rows) if row in rows[:at]]
headers = [row[0] for row in rows]
starts = [header for at, header in enumerate(headers) if at == 0 or headers[at - 1] != header]
problems += [f"the rows of {header} are not together" for header in set(starts) if starts.count(header) > 1]
problems += [f"{header} is not a header" for header in starts if header.startswith("`") and header.strip("`") not in api["headers"]]
named = [header for header in starts if header.startswith("`")]
problems += [f"{b} stands behind {a}" for a, b in zip(named, named[1:]) if b < a]
for _, old, new in rows:
    gone = re.fullmatch(r"`(weft_\w+)`(?:, `(weft_\w+)`)*", old)
    for name in re.findall(r"weft_\w+", old) if gone and NAME.search(new) else ():
        if name in known and name not in ("weft_overlap",):
            problems.append(f"the table says that {name} has another name, but it is in the API")
lines = text.count("\n") - section["From old to new names"].count("\n")
if lines > 120:
    problems.append(f"without its table it has {lines} lines, wanted are 120 at most")
for problem in problems:
    print(f"CHANGELOG.md: {problem}")
print(f"CHANGELOG.md: {len(rows)} rows lead from old to new names")
sys.exit(1 if problems or len(rows) < 100 else 0)
