"""The table of bench/fsdp.sh on rows that are made up."""

import contextlib
import io
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import fsdp_table as table  # noqa: E402


def step(ns, cpu):
    return {"what": "step", "ranks": 2, "median_ns": 2 * ns, "min_ns": ns, "cpu_ns": cpu, "host_ns": 500}


def run(folder, rows, *options):
    """What the table prints of ROWS, a list for each file; "--" separates the two sides."""
    names = []
    for number, file_rows in enumerate(rows):
        if file_rows == "--":
            names.append("--")
            continue
        names.append(os.path.join(folder, f"{number}.json"))
        with open(names[-1], "w", encoding="ascii") as file:
            json.dump({"rows": file_rows}, file)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        sys.argv[1:] = [*options, *names]
        table.main()
    return out.getvalue()


def main():
    unshard = {"what": "unshard", "ranks": 2, "min_ns": 1000, "of_copy": 0.83}
    overlap = {"what": "overlap", "ranks": 2, "min_ns": 3000, "of_longer": 1.17}
    ours = [[unshard, step(9000, 4000), overlap], [unshard, step(4000, 6000), overlap]]
    with tempfile.TemporaryDirectory() as folder:
        both = json.loads(run(folder, [*ours, "--", [step(40000, 30000)]], "--json"))["rows"]
        found = next(row for row in both if row["what"] == "step")
        assert found["weft_ns"] == 4000 and found["ratio"] == 10, found  # the quieter round
        assert found["fsdp2_ns"] == 40000 and found["fsdp2_cpu_ns"] == 30000, found
        text = run(folder, [*ours, "--", [step(40000, 30000)]])
        for part in ("10.0  weft: 6 us of processors", "FSDP2: 30 us", "0.83 of the rate", "1.17 of the longer"):
            assert part in text, (part, text)
        assert "FSDP2:" not in run(folder, ours)


main()
