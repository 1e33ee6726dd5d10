"""ci/evidence.py on reports that are made up: the rows, the latest result of each part, and what is refused."""

import json
import os
import subprocess
import sys
import tempfile

ci = sys.argv[1]
GOAL = {"part": "rate", "goal": "0.8 of a copy", "measured": {"S(0) -> R": 0.9}, "met": True}
MANY = {"part": "rate", "goal": "in 30 us", "measured": {"us": {str(n): n for n in range(7)}}, "met": False}
REPORT = {"date": "2026-01-02 03:04 UTC", "commit": "0123456789ab", "command": "ci/gpu.sh",
          "device": "A Device, 1.2.3, 1000 MiB", "goals": [GOAL, MANY], "parts": [
              {"name": "build", "code": 0, "seconds": 9, "output": []},
              {"name": "rate", "code": 0, "seconds": 3, "result": {"rows": []}},
              {"name": "conform", "code": 0, "seconds": 4, "result": {"passed": 7, "failed": 0}},
              {"name": "none", "code": 77, "seconds": 0, "output": ["no device"]},
              {"name": "bad", "code": 9, "seconds": 1, "output": []},
              {"name": "cut", "code": "late", "seconds": 0, "output": []}]}
ABOUT = "| `ci/gpu.sh` | A Device, 1.2.3 | 01234567 | 2026-01-02 |"
ROWS = ["| bad | failed with code 9 " + ABOUT,
        "| conform | passed in 4 s; 7 cases passed, 0 failed " + ABOUT,
        "| cut | not run, no time left " + ABOUT,
        "| none | skipped: no device " + ABOUT,
        "| rate | passed in 3 s; met: 0.8 of a copy (S(0) -> R: 0.9); not met: in 30 us (us: 0 to 6 (7 figures)) "
        + ABOUT]
SOAK = "soak: 2 random tests, 1.0 minutes\n  test_a   3 runs\nsoak: 9 simulated\n5 passed, 0 failed\n"


def main():
    with tempfile.TemporaryDirectory() as folder:
        page, report, soak = (os.path.join(folder, name) for name in ("page.md", "report.json", "soak.txt"))

        def evidence(*arguments):
            return subprocess.run([sys.executable, os.path.join(ci, "evidence.py"), "--page", page, *arguments],
                                  capture_output=True, text=True, check=False).returncode

        def rows():
            with open(page, encoding="utf-8") as file:
                return [line for line in file.read().splitlines() if line.startswith("| ")][1:]

        def write(path, text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

        write(report, json.dumps(REPORT))
        assert evidence(report) == 0 and rows() == ROWS, rows()
        write(report, json.dumps({**REPORT, "goals": [], "parts": [
            {"name": "bad", "code": 0, "seconds": 2}, {"name": "rate", "code": "late", "seconds": 0}]}))
        assert evidence(report) == 0 and rows() == ["| bad | passed in 2 s " + ABOUT] + ROWS[1:], rows()
        write(soak, SOAK)
        about = ["--machine", "Z", "--commit", "c", "--date", "d"]
        assert evidence("--soak", soak, *about) == 0
        assert rows()[-1] == "| soak | 2 random tests, 1.0 minutes; 9 simulated; 5 passed, 0 failed " \
                             "| `ci/lanes/soak` | Z | c | d |", rows()
        assert evidence("--part", "p", "--command", "q", *about, "a | b") == 0
        assert rows()[-2] == "| p | a / b | `q` | Z | c | d |", rows()
        assert evidence("--check") == 0
        write(soak, "nothing")
        assert evidence("--soak", soak, *about) != 0 and evidence("--part", "p", "result") != 0
        with open(page, "a", encoding="utf-8") as file:
            file.write("by hand\n")
        assert evidence("--check") != 0


main()
