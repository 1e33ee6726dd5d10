#!/usr/bin/env python3
"""next.py FOLDER - weft_plugin.h as a next minor could be, in FOLDER.

The next minor appends one optional function, `appended`, to each table.  FOLDER/weft_plugin.h and
FOLDER/weft/weft_plugin.h are its header.  FOLDER/plugin/older.h has the tables of the present minor, as
core/plugin/older.h then would have them."""
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("fingerprints", ROOT / "ci/fingerprints.py")
fingerprints = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fingerprints)


def next_header(header):
    minor = int(re.search(r"#define WEFT_ABI_MINOR (\d+)u", header).group(1))
    header = header.replace(f"WEFT_ABI_MINOR {minor}u", f"WEFT_ABI_MINOR {minor + 1}u")
    for table in fingerprints.TABLES:
        end = f"}} weft_{table}_table;"
        assert header.count(end) == 1, end
        header = header.replace(end, f"    weft_status (*appended)(void *object);\n{end}")
    for table, (number, _) in fingerprints.fingerprints(header).items():
        header = re.sub(rf"(#define WEFT_{table.upper()}_SIGNATURE +UINT64_C)\(\w+\)", rf"\1(0x{number})", header)
    return header


def older_tables(header):
    lines = ["/* older.h - the tables before `appended`. */"]
    for table, (number, _) in fingerprints.fingerprints(header).items():
        lines.append(f"#define WF_OLDER_{table.upper()}(X) X({table}, appended, 0x{number})")
    return "\n".join(lines) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    header = fingerprints.HEADER.read_text()
    for path, text in (("weft_plugin.h", next_header(header)), ("weft/weft_plugin.h", next_header(header)),
                       ("plugin/older.h", older_tables(header))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    main()
