"""Every slice, flow and counter of a known program is in its traces, and in the merged one."""
import json
import os
import re
import shutil

import jobs
import pftrace


def of_rank(trace, rank, events, track=""):
    """EVENTS of RANK, on tracks whose name begins with TRACK."""
    return [e for e in events if trace.path(e.track)[0].startswith(f"rank {rank} (")
            and trace.path(e.track)[-1].startswith(track)]


def check_facts(trace, rank, ranks):
    fact, = [i for i in of_rank(trace, rank, trace.instants) if i.name == "weft trace"]
    assert (fact.notes["rank"], fact.notes["size"]) == (rank, ranks), fact
    clocks = [i for i in of_rank(trace, rank, trace.instants) if i.name == "clock"]
    assert 1 <= len(clocks) <= 2, clocks
    end, = [i for i in of_rank(trace, rank, trace.instants) if i.name == "weft trace ends"]
    assert end.notes["missed slices"] == 0, end
    return clocks


def check_carriers(trace, rank, ranks, carrier):
    """Each communicator of the rank, and what carries its data."""
    comms = [i for i in of_rank(trace, rank, trace.instants) if i.name == "communicator"]
    assert [c.notes["communicator"].split("#")[0] for c in comms] == ["world", "comm"], comms
    for comm in comms:
        assert comm.notes["ranks"] == f"0-{ranks - 1}", comm
        assert re.fullmatch(carrier, comm.notes["carrier"]), comm


def check_host(trace, rank, ranks):
    """Slices of the calling thread."""
    host = of_rank(trace, rank, trace.slices, "host calls")
    create, = [s for s in host if s.category == "create"]
    assert create.name == "create world" and create.notes["label"] == "weft_comm_split", create
    assert create.notes["sequence"] == 1, create
    reduces = [s for s in host if s.category == "all-reduce"]
    assert [s.notes["sequence"] for s in reduces] == [1, 2, 3], reduces
    for s in reduces:
        assert s.name == "all-reduce world 8.0 KiB" and s.depth == 0, s
        assert s.notes["bytes"] == 8192 and s.notes["dtype"] == "f32 sum", s
    send, = [s for s in host if s.category == "send"]
    receive, = [s for s in host if s.category == "receive"]
    assert send.notes["sent bytes"] == receive.notes["received bytes"] == 16384
    assert send.notes["peer"] == (rank + 1) % ranks, send
    assert receive.notes["peer"] == (rank + ranks - 1) % ranks and receive.ends_flow, receive
    plans = [s for s in host if s.category == "plan"]
    assert [s.notes["label"] for s in plans] == ["weights", "packed"], plans
    moves = [s for s in host if s.category == "redistribute"]
    assert [s.notes["label"] for s in moves] == 4 * ["weights"] + ["packed"], moves
    for move in moves:
        steps = [s for s in host if s.parent is move]
        assert steps and all(s.notes["plan"] == move.notes["plan"] for s in steps), steps
        assert [s.notes["step"] for s in steps] == list(range(1, len(steps) + 1)), steps
        assert all(s.notes["predicted ns"] > 0 for s in steps + [move]), steps
        assert all(move.begin <= s.begin <= s.end <= move.end for s in steps)
    return reduces, send, receive, moves


def check_stream(trace, rank):
    """Slices of the stream, and the instants that lead to them."""
    slices = of_rank(trace, rank, trace.slices, "stream copies")
    moves = [s for s in slices if s.category == "redistribute"]
    assert len(moves) == 2 and all(s.depth == 0 for s in moves), moves
    gather, = [s for s in slices if s.category == "all-gather"]
    assert gather.depth == 0 and gather.notes["sent bytes"] == 4096, gather
    steps = [s for s in slices if s.parent in moves]
    assert len(steps) == len(slices) - 3 and len(steps) >= 2, slices
    second, = [s for s in of_rank(trace, rank, trace.slices, "stream ") if s.track != gather.track]
    assert second.category == "barrier" and trace.path(second.track)[-1] == "stream 2", second
    marks = of_rank(trace, rank, trace.instants, "host calls")
    for s in slices + [second]:
        mark, = [m for m in marks if m.flows[0] in s.flows]
        assert mark.name == s.name and mark.begin <= s.end, (mark, s)


def check_counters(trace, rank):
    values = {trace.path(u)[1]: v for u, v in trace.counters.items()
              if trace.path(u)[0].startswith(f"rank {rank} (")}
    in_flight = [v for _, v in values["bytes in flight"]]
    assert in_flight[:6] == 3 * [8192, 0], in_flight
    assert in_flight[6:8] == [16384, 32768] and in_flight[-1] == 0, in_flight
    scratch = [v for _, v in values["scratch"]]
    assert max(scratch) > 0, scratch


def check_flows(trace, ranks):
    """Each collective joins all ranks, each message its two ranks."""
    flows = trace.flows()
    for category in ("create", "all-reduce", "all-gather"):
        for s in (s for s in trace.slices if s.category == category):
            joined, = [flows[f] for f in s.flows if all(e.end for e in flows[f])]
            assert len({trace.path(e.track)[0] for e in joined}) == ranks, joined
            assert {e.notes["sequence"] for e in joined} == {s.notes["sequence"]}, joined
    for s in (s for s in trace.slices if s.category == "send"):
        ends = flows[s.flows[0]]
        assert sorted(e.category for e in ends) == ["receive", "send"], ends
        receive, = [e for e in ends if e.category == "receive"]
        peer = s.notes["peer"]
        assert trace.path(receive.track)[0].startswith(f"rank {peer} ("), receive


def check_rank(trace, rank, ranks, carrier="shared memory"):
    clocks = check_facts(trace, rank, ranks)
    check_carriers(trace, rank, ranks, carrier)
    check_host(trace, rank, ranks)
    check_stream(trace, rank)
    check_counters(trace, rank)
    return clocks


def check_job(name, ranks, hosts=False):
    """The files NAME.RANK of a job, alone and merged."""
    files = [f"{name}.{rank}" for rank in range(ranks)]
    carrier = f"(UCX|Gloo).* \\(tcp.*\\) between 2 hosts: (all ranks have it|rank 0 lacks UCX: .*)" if hosts else "shared memory"
    bounds, uuids = [], set()
    for rank, file in enumerate(files):
        trace = pftrace.read(file)
        assert len({s["pid"] for s in trace.tracks.values() if s["pid"]}) == 1
        assert set(trace.clocks[0]) == {1, 3, 6}, trace.clocks
        assert uuids.isdisjoint(trace.tracks), (uuids, trace.tracks)
        assert {uuid >> 24 for uuid in trace.tracks} == {rank + 1}, trace.tracks
        uuids |= set(trace.tracks)
        for clock in check_rank(trace, rank, ranks, carrier):
            offset, bound = clock.notes["offset ns"], clock.notes["bound ns"]
            assert abs(offset) <= bound, clock  # the clocks are the same
            assert hosts or bound == 0, clock
            bounds.append(bound)
    merged = f"{name}.all"
    said = jobs.call([jobs.weft, "trace", "merge", *files, "-o", merged])
    assert f"{ranks} of {ranks} ranks, on the clock of rank 0" in said, said
    trace = pftrace.read(merged)
    assert len(trace.clocks) == 1
    assert set(trace.tracks) == uuids, trace.tracks
    for rank in range(ranks):
        check_rank(trace, rank, ranks, carrier)
    check_flows(trace, ranks)
    stated, = [i.notes["bound ns"] for i in trace.instants if i.name == "weft merge"]
    assert stated <= 2 * max(bounds), (stated, bounds)
    check_summary(merged, trace)


def check_summary(file, trace):
    said = json.loads(jobs.call([jobs.weft, "trace", file, "--json"]))
    steps = {(s["plan"], s["step"], s["label"]): s for s in said["steps"]}
    assert len(steps) == len(said["steps"]), said["steps"]
    for (plan, step, label), row in steps.items():
        times = sorted(s.end - s.begin for s in trace.slices
                       if s.notes.get("plan") == plan and s.notes.get("step", 0) == step
                       and s.notes.get("label") == label and s.category != "plan")
        assert (row["count"], row["min_ns"], row["median_ns"]) == \
            (len(times), times[0], times[len(times) // 2]), row
        assert abs(row["ratio"] - row["median_ns"] / row["predicted_ns"]) < 1e-6, row
    assert abs(sum(k["share"] for k in said["kinds"]) - 1) < 1e-9, said["kinds"]
    assert {k["kind"]: k["count"] for k in said["kinds"]} == \
        {c: sum(s.category == c for s in trace.slices) for c in {s.category for s in trace.slices}}
    jobs.call([jobs.weft, "trace", file], text="share of the time in operations")
    check_usage(said, trace)


def data(s):
    return max(s.notes.get(name, 0) for name in ("bytes", "sent bytes", "received bytes"))


def along(s):
    return s.notes.get("axes", s.notes.get("communicator"))


def check_usage(said, trace):
    """The time of each rank that is weft's, and how much of an operation is waiting: until all ranks have begun it."""
    own = {id(s): s.end - s.begin for s in trace.slices}
    for s in trace.slices:
        if s.parent is not None:
            own[id(s.parent)] -= s.end - s.begin
    flows = {flow: max(e.begin for e in joined if id(e) in own) for flow, joined in trace.flows().items()
             if any(id(e) in own for e in joined)}
    waits = {id(s): min(own[id(s)], max((flows[f] for f in s.flows), default=s.begin) - s.begin) for s in trace.slices}
    for row in said["ranks"]:
        mine = [s for s in trace.slices if trace.path(s.track)[0].startswith(f"rank {row['rank']} (")]
        begin, end, covered = min(s.begin for s in mine), max(s.end for s in mine), 0
        weft = 0
        for s in sorted((s for s in mine if s.parent is None), key=lambda s: s.begin):
            weft += max(0, s.end - max(s.begin, covered))
            covered = max(covered, s.end)
        assert (row["wall_ns"], row["weft_ns"]) == (end - begin, weft), row
        assert row["waiting_ns"] == sum(waits[id(s)] for s in mine), row
        assert row["waiting_ns"] + row["moving_ns"] == sum(own[id(s)] for s in mine), row
    for row in said["uses"]:
        mine = [s for s in trace.slices if (s.category, along(s)) == (row["kind"], row["along"])
                and (row["bytes_most"] // 2 < data(s) <= row["bytes_most"] or data(s) == row["bytes_most"] == 0)]
        assert row["count"] == len(mine), (row, mine)
        assert row["time_ns"] == sum(own[id(s)] for s in mine), row
        assert row["waiting_ns"] == sum(waits[id(s)] for s in mine), row
    assert sum(u["time_ns"] for u in said["uses"]) == sum(k["time_ns"] for k in said["kinds"])


os.chdir(jobs.folder)
for _ in range(2):  # a job that starts again replaces the files
    jobs.run_ranks(2, WEFT_TRACE="two")
    check_job("two", 2)
jobs.run_ranks(4, "--wait-not", WEFT_TRACE="four")
check_job("four", 4)
if jobs.has_gloo:
    jobs.run_ranks(3, hosts=True, WEFT_TRACE="hosts")
    check_job("hosts", 3, hosts=True)
else:
    print("traces of ranks on several hosts are not checked: this gloo-cpu was built without the Gloo library")
jobs.call([jobs.rank_program, "--threads", "3"], WEFT_TRACE="threads")
check_job("threads", 3)
jobs.run_ranks(2, WEFT_TRACE="named.%r.pftrace", WEFT_RECORDER="0")
check_rank(pftrace.read("named.1.pftrace"), 1, 2)
shutil.rmtree(jobs.folder)
