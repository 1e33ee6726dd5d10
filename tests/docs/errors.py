"""docs/errors.md has a row for every status of weft_plugin.h, in order, with its number and text.

usage: errors.py SOURCE
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
header = (source / "core/include/weft/weft_plugin.h").read_text()
listed = re.search(r"#define WEFT_STATUS_LIST\(X\)(.*?)\n\n", header, re.S).group(1)
wanted = [(f"WEFT_{name}", number, text)
          for name, number, text in re.findall(r'X\((\w+), (-?\d+), "([^"]*)"\)', listed)]  # fmt: skip
rows = re.findall(r"^\| `(WEFT_\w+)` \| (-?\d+) \| ([^|]*) \|", (source / "docs/errors.md").read_text(), re.M)
rows = [(name, number, text.strip()) for name, number, text in rows]
for name, number, text in wanted:
    if (name, number, text) not in rows:
        print(f'docs/errors.md lacks the row | `{name}` | {number} | {text} |')
for row in rows:
    if row not in wanted:
        print(f"docs/errors.md has a row for what weft_plugin.h does not list: {row}")
print(f"docs/errors.md: {len(rows)} rows, weft_plugin.h: {len(wanted)} statuses")
sys.exit(0 if rows == wanted and wanted else 1)
