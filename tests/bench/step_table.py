"""The table of bench/step.sh on rows that are made up, and the script itself on two ranks."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
bench, build = sys.argv[1:]
sys.path.insert(0, bench)
import step_table as table  # noqa: E402

STEP = {"time_ns": 5000000, "bubble_ns": 400000, "exposed_ns": 0}


def run(folder, rows, *options):
    """What the table prints of ROWS."""
    costs, path = os.path.join(folder, "costs"), os.path.join(folder, "rows")
    with open(costs, "w", encoding="ascii") as file:
        file.write("weft-cost 1\nname here\nflops 28000\nmemory 18000\n")
    simulator = os.path.join(folder, "simulator")
    with open(simulator, "w", encoding="ascii") as file:
        file.write("0.3 7.5\n")
    with open(path, "w", encoding="ascii") as file:
        for head, step in rows:
            file.write(f"{head} {json.dumps(step)}\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        sys.argv[1:] = [*options, "--simulator", simulator, "--costs", costs, "--processors", "2", path]
        table.main()
    return out.getvalue()


def main():
    rows = [("2 pp=2,dp=1 1f1b 10000 9000", STEP), ("2 pp=2,dp=1 1f1b 9500 4800", {**STEP, "time_ns": 6000000}),
            ("4 dp=4,tp=1 - 8000 9000", STEP)]
    with tempfile.TemporaryDirectory() as folder:
        it = json.loads(run(folder, rows, "--json"))
        first, second = it["cases"]
        assert first["measured_us"] == 4800 and first["one_rank_us"] == 9500, first  # the quieter round
        assert first["ratio"] == 1.042 and first["within"] and not second["within"], it
        assert it["rates"] == {"flops": 28000, "memory": 18000} and it["within"] == 1, it
        text = run(folder, rows)
        for part in ("predictions within 15% of the measured step: 1 of 2", "4 ranks share 2 processors",
                     "sharded parameters", "calibrated: flops 28000", "2^20 ranks: 0.30 s, 8 MiB"):
            assert part in text, (part, text)
    done = subprocess.run([os.path.join(bench, "step.sh"), "--json", "--build", build, "--ranks", "2", "--rounds", "1",
                           "--steps", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    assert [case["mesh"] for case in cases] == ["pp=2,dp=1", "pp=2,dp=1", "dp=2,tp=1", "dp=1,tp=2"], cases
    assert all(case["predicted_us"] > 0 and case["measured_us"] > 0 for case in cases), cases


main()
