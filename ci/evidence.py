#!/usr/bin/env python3
"""evidence.py - writes docs/evidence.md: what ran where, one row per part and machine, the latest result of each.

evidence.py REPORT.json...                            the parts of reports of ci/gpu.sh
evidence.py --soak OUTPUT --machine M [--commit C]    the summary that ci/lanes/soak printed
evidence.py --part P --command C --machine M RESULT   one result
evidence.py --check                                   is the page as this program writes it?

--page names another file, --commit and --date replace HEAD and today.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/evidence.md"
NOT_RUN = "not run, no time left"  # an earlier result stays
COLUMNS = ("part", "result", "command", "machine", "commit", "date")
HEAD = f"""# Evidence

`ci/evidence.py` writes this page from the reports of `ci/gpu.sh` and of the soak and flight-recorder lanes. A row has
the latest result of a part on a machine. [performance.md](performance.md) has the figures side by side.

| {' | '.join(COLUMNS)} |
|{'|'.join('---' for _ in COLUMNS)}|
"""


def row_line(row):
    return "| " + " | ".join(row[column].replace("|", "/") for column in COLUMNS) + " |\n"


def read_page(page):
    """The rows of a page by machine and part."""
    text = page.read_text() if page.exists() else ""
    lines = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    return {(cells[3], cells[0]): dict(zip(COLUMNS, cells)) for cells in lines}


def page_text(rows):
    return HEAD + "".join(row_line(rows[key]) for key in sorted(rows))


def figures(value):
    """Numbers by name, as text: all of a few, else the least and the greatest."""
    if not isinstance(value, dict):
        return str(value)
    if any(isinstance(inner, dict) for inner in value.values()):
        return "; ".join(f"{name}: {figures(inner)}" for name, inner in value.items())
    if len(value) > 5:
        return f"{min(value.values())} to {max(value.values())} ({len(value)} figures)"
    return ", ".join(f"{name}: {number}" for name, number in value.items())


def goal_text(goal):
    return f"{'met' if goal['met'] else 'not met'}: {goal['goal']} ({figures(goal['measured'])})"


def part_result(entry, goals):
    """What a part of a report found."""
    code, result = entry["code"], entry.get("result")
    if code == 77:
        return "skipped: " + (entry.get("output") or ["no reason given"])[-1]
    if code != 0:
        return NOT_RUN if code == "late" else f"failed with code {code}"
    texts = [f"passed in {entry['seconds']} s" if "seconds" in entry else "passed"]
    if isinstance(result, dict):
        if "failed" in result and "passed" in result:
            texts.append(f"{result['passed']} cases passed, {result['failed']} failed")
        if "cases" in result and "seed" in result:
            texts.append(f"{result['cases']} random cases of seed {result['seed']}")
    return "; ".join(texts + [goal_text(goal) for goal in goals if goal["part"] == entry["name"]])


def report_rows(report):
    machine = re.sub(r"(, [0-9.]+), [0-9]+ MiB$", r"\1", report["device"] or "no device")
    for entry in report["parts"]:
        if entry["name"] not in ("build", "info"):
            yield {"part": entry["name"], "result": part_result(entry, report["goals"]),
                   "command": f"`{report['command']}`", "machine": machine,
                   "commit": (report.get("commit") or "not recorded")[:8], "date": report["date"][:10]}


def soak_result(text):
    """The lines of a soak's summary, joined."""
    found = [line.removeprefix("soak: ") for line in text.splitlines()
             if line.startswith("soak: ") or re.match(r"\d+ passed, \d+ failed$", line)]
    if not found:
        sys.exit("evidence: this is no output of ci/lanes/soak")
    return "; ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--soak", "--part", "--command", "--machine", "--commit"):
        parser.add_argument(name)
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("inputs", nargs="*")
    given = parser.parse_args()
    rows = read_page(given.page)
    if given.check:
        if given.page.read_text() != page_text(rows):
            sys.exit(f"{given.page} is not as ci/evidence.py writes it")
        return
    if given.soak or given.part:
        if not given.machine:
            parser.error("--machine says where this ran")
        commit = given.commit or subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], check=True, text=True,
                                                capture_output=True).stdout.strip()
        about = {"machine": given.machine, "commit": commit, "date": given.date}
        new = [{"part": given.part or "soak", "command": f"`{given.command or 'ci/lanes/soak'}`",
                "result": soak_result(pathlib.Path(given.soak).read_text()) if given.soak else " ".join(given.inputs),
                **about}]
    else:
        new = [row for path in given.inputs for row in report_rows(json.loads(pathlib.Path(path).read_text()))]
    for row in new:
        key = row["machine"], row["part"]
        if row["result"] != NOT_RUN or key not in rows:
            rows[key] = row
    given.page.write_text(page_text(rows))
    print(f"evidence: {len(new)} rows of {len(rows)} are new")


if __name__ == "__main__":
    main()
