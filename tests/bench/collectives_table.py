"""The table of bench/collectives.sh on rows that are made up, so that the verdicts are known."""

import contextlib
import io
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import collectives_table as table  # noqa: E402

MIB = 1 << 20
SIZES = [8, 1024, 65536, MIB, 64 * MIB]


def row(op, size, ns, **more):
    return dict(op=op, dtype="f32", bytes=size, min_ns=ns, median_ns=ns, p99_ns=ns, **more)


def write(folder, name, ns_of, document=False):
    rows = [row(op, size, ns_of(op, size), memcpy_gbps=40.0) for op in table.OPS for size in SIZES]
    with open(os.path.join(folder, "rows", name), "w", encoding="utf-8") as file:
        if document:
            json.dump({"bench": "coll", "rows": rows}, file)
        else:
            file.writelines(json.dumps(r) + "\n" for r in rows)
            file.write('{"op": "all_re')  # as a run that was cut short leaves it


def run(folder, *options):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = table.main([*options, folder])
    return code, out.getvalue()


def good(_, size):
    return 100 + size // 20  # 40 GB/s by two ranks together is all that memcpy does


def fill(folder, weft):
    os.mkdir(os.path.join(folder, "rows"))
    write(folder, "1-2-weft-alloc", lambda op, size: 50 * weft(op, size), True)  # a noisy round
    write(folder, "2-2-weft-alloc", weft, True)
    write(folder, "1-2-weft-malloc", lambda op, size: 2 * weft(op, size), True)
    write(folder, "1-2-openmpi", lambda op, size: 7 * good(op, size))
    write(folder, "1-2-mpich", lambda op, size: 9 * good(op, size))
    write(folder, "1-2-gloo-default", lambda op, size: 100 * good(op, size))
    write(folder, "1-2-gloo-16384", lambda op, size: 20 * good(op, size))
    write(folder, "1-4-weft-alloc", lambda op, size: 3 * weft(op, size), True)
    write(folder, "1-4-openmpi", lambda op, size: 3 * good(op, size))


def verdicts(folder):
    code, text = run(folder, "--json")
    return code, {line["target"]: line for line in json.loads(text)["targets"]}


def check_all_met():
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, good)
        code, lines = verdicts(folder)
        assert code == 0, lines
        assert len(lines) == 9 and all(line["met"] for line in lines.values()), lines
        worst = lines["2 ranks: every cell at least 0.9 times the better MPI"]
        assert abs(worst["value"] - 7) < 0.01, worst
        gloo = lines["2 ranks: every cell up to 1 MiB at least 10 times Gloo"]
        assert abs(gloo["value"] - 20) < 0.01, gloo
        code, text = run(folder)
        assert code == 0 and "NOT MET" not in text and "| all_reduce     |    8 B |" in text, text


def check_one_missed():
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, lambda op, size: good(op, size) * (8 if (op, size) == ("broadcast", 1024) else 1))
        code, lines = verdicts(folder)
        missed = [name for name, line in lines.items() if not line["met"]]
        assert code == 1, lines
        assert missed == ["2 ranks: every cell at least 0.9 times the better MPI",
                          "2 ranks, malloc memory: every cell at least 0.8 times Open MPI",
                          "2 ranks: every cell up to 1 MiB at least 10 times Gloo"], missed
        assert lines[missed[0]]["where"] == "broadcast at 1 KiB", lines[missed[0]]


def check_nothing_measured():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "rows"))
        code, lines = verdicts(folder)
        assert code == 1 and all(line["met"] is None for line in lines.values()), lines


check_all_met()
check_one_missed()
check_nothing_measured()
print("ok")
