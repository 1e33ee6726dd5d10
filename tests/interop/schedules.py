#!/usr/bin/env python3
"""schedules.py WEFT - schedules of pipelines as CSV files, weft's read by torch and torch's by weft.

torch's own functions check, lower and simulate what weft writes.  What torch writes, weft reads, and
it equals weft's schedule of the same name.  Exit code 77: Python has no torch with pipelines here."""
import os
import subprocess
import sys
import tempfile

try:
    from torch.distributed.pipelining import schedules as theirs
except ImportError:
    print("schedules: Python has no torch with pipelines here")
    sys.exit(77)

# weft's name: torch's class, stages on a rank
NAMES = {
    "interleaved": (theirs.ScheduleInterleaved1F1B, 2),
    "looped-bfs": (theirs.ScheduleLoopedBFS, 2),
    "zb1p": (theirs.ScheduleInterleavedZeroBubble, 2),
    "zbv": (theirs.ScheduleZBVZeroBubble, 2),
    "dualpipev": (theirs.ScheduleDualPipeV, 2),
    "gpipe": (None, 1),  # torch has no list of actions for these two
    "1f1b": (None, 1),
}
SIZES = [(1, 2), (2, 4), (2, 6), (3, 6), (4, 8), (4, 16)]  # ranks, microbatches


class Stage:
    """As much of a stage as a schedule needs to write its actions."""

    def __init__(self, ranks, stages, index):
        self.group_size, self.num_stages, self.stage_index = ranks, stages, index
        self.group_rank, self.group = 0, None
        self.is_first, self.is_last, self.has_backward = index == 0, index == stages - 1, False
        self.submod, self.device, self.stage_index_to_group_rank = None, "cpu", None


def run(weft, *arguments):
    done = subprocess.run([weft, "schedule", *arguments, "--csv"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"weft schedule {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def actions_of(text):
    return [[word for word in line.split(",") if word] for line in text.splitlines()]


def rows_of(text):
    return {rank: [theirs._Action.from_str(word) for word in row] for rank, row in enumerate(actions_of(text))}


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        for rank in sorted(rows):
            file.write(",".join("" if action is None else str(action) for action in rows[rank]) + "\n")


def check_waits(weft, words, rows, rank_of, stages, microbatches, folder):
    """torch finds a wait for each send and reduction of weft's file; weft reads what torch lowers."""
    if not hasattr(theirs, "_add_wait_send"):
        return False
    theirs._validate_send_waits(rows_of(run(weft, *words, "--reduce", "--waits")))
    path = os.path.join(folder, "lowered.csv")
    reduced = {rank: theirs._add_reduce_grad(list(row), microbatches) for rank, row in rows.items()}
    write_rows(path, theirs._add_wait_send(theirs._add_send_recv(reduced, rank_of, stages)))
    read = rows_of(run(weft, path, "--waits"))
    theirs._validate_send_waits(read)
    for rank, row in read.items():
        count = {kind: sum(action.computation_type == kind for action in row)
                 for kind in (theirs.REDUCE_GRAD, theirs.WAIT_REDUCE_GRAD)}
        if len(set(count.values())) != 1 or 0 in count.values():
            sys.exit(f"{words}: rank {rank} reduces and waits {count}")
    return True


def check_ours(weft, words, text, lowered, ranks, stages, microbatches, folder):
    """torch reads weft's TEXT, finds it valid, lowers it, and can carry both forms out."""
    rows = rows_of(text)
    count = sum(map(len, rows.values()))
    where = theirs._validate_schedule(rows, ranks, stages, microbatches)

    def rank_of(stage):  # torch asks for the stages before the first and behind the last one too
        return where[stage % stages]

    by_torch = theirs._add_send_recv(rows, rank_of, stages)
    by_weft = rows_of(lowered)
    if "OVERLAP" not in text:  # torch's simulator does not know pairs
        theirs._simulate_comms_compute(by_torch, rank_of, stages)
        theirs._simulate_comms_compute(by_weft, rank_of, stages)
    return count, check_waits(weft, words, rows_of(text), rank_of, stages, microbatches, folder)


def check_theirs(weft, name, ranks, chunks, microbatches, ours, folder):
    """weft reads what torch writes, as its own schedule."""
    kind = NAMES[name][0]
    schedule = kind([Stage(ranks, ranks * chunks, i) for i in range(chunks)], microbatches)
    path = os.path.join(folder, "theirs.csv")
    write_rows(path, {rank: schedule.pipeline_order[rank] for rank in range(ranks)})
    if actions_of(run(weft, path)) != actions_of(ours):
        sys.exit(f"{name}, {ranks} ranks, {microbatches} microbatches: torch's schedule is another one")


def main():
    weft, count, with_waits = sys.argv[1], 0, False
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, chunks) in NAMES.items():
            for ranks, microbatches in SIZES:
                words = (name, "--ranks", str(ranks), "--microbatches", str(microbatches))
                ours = run(weft, *words)
                lowered = run(weft, *words, "--lower")
                more, with_waits = check_ours(weft, words, ours, lowered, ranks, ranks * chunks, microbatches, folder)
                count += more
                if kind is not None:
                    check_theirs(weft, name, ranks, chunks, microbatches, ours, folder)
    print(f"schedules: {len(NAMES)} schedules of {len(SIZES)} sizes, {count} actions, both ways, "
          f"{'with' if with_waits else 'without'} waits")


main()
