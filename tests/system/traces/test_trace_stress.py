"""Traces of ranks with several threads, of more open operations than the recorder remembers, and of more
texts than have numbers."""
import os
import shutil
import sys

import jobs
import pftrace

ranks, rounds, messages, levels = 2, 100, 80, 128
os.chdir(jobs.folder)
jobs.call([jobs.weft, "run", "-n", str(ranks), "--timeout", "120", sys.argv[3]], WEFT_TRACE="s",
          WEFT_RECORDER="64")
for rank in range(ranks):
    trace = pftrace.read(f"s.{rank}")
    for name in ("one", "two"):
        reduces = [s for s in trace.slices if s.category == "all-reduce"
                   and s.notes["communicator"].startswith(name)]
        assert sorted(s.notes["sequence"] for s in reduces) == list(range(1, 2 * rounds + 1))
        tracks = {trace.path(s.track)[-1].split()[0] for s in reduces}
        assert tracks == {"host", "stream"}, tracks
        assert sum(trace.path(s.track)[-1].startswith("stream") for s in reduces) == rounds
    sent = [s for s in trace.slices if s.category in ("send", "receive")]
    end, = [i for i in trace.instants if i.name == "weft trace ends"]
    assert len(sent) + end.notes["missed slices"] == 2 * messages, (len(sent), end)
    assert len(sent) >= levels, len(sent)
    barrier, = [s for s in trace.slices if s.category == "barrier"]
    assert barrier.depth == 0, barrier
    assert [v for _, v in next(iter(trace.counters.values()))][-1] == 0
jobs.call([jobs.weft, "trace", "merge", "s.0", "s.1", "-o", "all"])
merged = pftrace.read("all")
flows = merged.flows()
for s in merged.slices:
    if s.category == "all-reduce":
        joined, = [flows[f] for f in s.flows if all(e.end for e in flows[f])]
        assert len(joined) == ranks and len({e.notes["communicator"] for e in joined}) == 1, joined


def check_many():
    """The numbers of texts begin again, and every slice still has its name."""
    jobs.call([jobs.rank_program, "--many"], WEFT_TRACE="many")
    trace = pftrace.read("many.0")
    assert trace.restarts > 1, trace.restarts
    for kind in "all-gather", "broadcast", "all-reduce", "all-to-all", "reduce":
        found = [s for s in trace.slices if s.category == kind and "odd" in s.notes["communicator"]]
        assert [s.notes["bytes"] for s in found] == list(range(1, 2001)), kind
        for s in found:
            size = s.notes["bytes"]
            shown = f"{size} B" if size < 1024 else f"{size / 1024:.1f} KiB"
            assert s.name == f"{kind} {s.notes['communicator']} {shown}", s
            assert s.notes["communicator"].startswith("odd????"), s
    marks = [i.name for i in trace.instants if i.name.startswith("all-reduce odd")]
    assert marks == [s.name for s in trace.slices if s.name.startswith("all-reduce odd")]
    assert any(t["name"].startswith("stream ?(") for t in trace.tracks.values()), trace.tracks
    said = jobs.call([jobs.weft, "trace", "many.0"])
    assert sum(line.split()[-1] in ("all-gather", "broadcast", "all-to-all", "reduce")
               and int(line.split()[2]) in (2000, 2001) for line in said.splitlines()
               if "%" in line) == 4, said


check_many()
shutil.rmtree(jobs.folder)
