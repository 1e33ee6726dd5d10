#!/usr/bin/env python3
"""check_dump.py SCENARIO PREFIX RANKS...: the dumps of these ranks have what the scenario of dump_rank did.

The pickles are read without any class or function, as data only.
"""
import ast
import io
import json
import pickle
import sys

ALL_TO_ALL = ("all_to_all", [[]], [[]], "Float")
FIELDS = {
    "record_id": int, "pg_id": int, "process_group": tuple, "collective_seq_id": int, "p2p_seq_id": int, "op_id": int,
    "profiling_name": str, "time_created_ns": int, "input_sizes": list, "input_dtypes": list, "output_sizes": list,
    "output_dtypes": list, "state": str, "timeout_ms": int, "is_p2p": bool, "retired": bool, "frames": list,
    "waits_for": int,
}  # fmt: skip
problems = []


class Data(pickle.Unpickler):
    def find_class(self, module, name):
        raise ValueError(f"the pickle names {module}.{name}")


def claim(holds, text):
    if not holds:
        problems.append(text)


def read(prefix, rank):
    with open(f"{prefix}.{rank}", "rb") as file:
        content = file.read()
    stream = io.BytesIO(content)
    dump = Data(stream).load()
    claim(content[:2] == b"\x80\x02" and stream.read() == b"", f"rank {rank}: a pickle of protocol 2 and nothing else")
    with open(f"{prefix}-{rank}.json", encoding="utf-8") as file:
        return dump, json.load(file)


def check_entry(rank, entry, groups):
    for name, kind in FIELDS.items():
        claim(type(entry.get(name)) is kind, f"rank {rank}: {name} is a {kind.__name__}: {entry}")
    for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
        claim(entry[name] is None or isinstance(entry[name], int), f"rank {rank}: {name} is a time: {entry}")
    group, desc = entry["process_group"]
    claim(groups[group]["desc"] == desc, f"rank {rank}: {group} is in pg_config with {desc}")
    claim(entry["profiling_name"].startswith("gloo:"), f"rank {rank}: the transport of {entry}")
    claim(entry["state"] in ("scheduled", "started", "completed"), f"rank {rank}: the state of {entry}")
    if entry["state"] == "completed":
        times = [entry["time_created_ns"], entry["time_discovered_started_ns"], entry["time_discovered_completed_ns"]]
        claim(times == sorted(times), f"rank {rank}: the times of {entry}")
        taken = (times[2] - times[1]) / 1e6
        claim(abs(entry.get("duration_ms", taken) - taken) < 1e-3, f"rank {rank}: the duration of {entry}")


def check_form(rank, dump, text, is_busy):
    claim(dump["version"] == text["version"] == "2.10", f"rank {rank}: the version")
    claim(set(dump) == {"version", "pg_config", "pg_status", "entries"}, f"rank {rank}: keys {set(dump)}")
    claim(set(text) == set(dump) | {"weft"} and text["weft"]["rank"] == rank, f"rank {rank}: keys {set(text)}")
    for name, group in dump["pg_config"].items():
        claim(group["name"] == name and "gloo-cpu" in group["desc"], f"rank {rank}: group {name}")
        claim(rank in ast.literal_eval(group["ranks"]), f"rank {rank}: ranks of group {name}")
    for name, status in dump["pg_status"].items():
        numbers = [status[f"last_{what}_collective"] for what in ("completed", "started", "enqueued")]
        claim(numbers == sorted(numbers) and name in dump["pg_config"], f"rank {rank}: status of {name}")
    ids = [entry["record_id"] for entry in dump["entries"]]
    claim(ids == sorted(set(ids)), f"rank {rank}: record_id grows")
    numbers = [(*entry["process_group"], entry["collective_seq_id"]) for entry in dump["entries"]]
    claim(len(numbers) == len(set(numbers)), f"rank {rank}: an operation's number occurs once in its group")
    for entry in dump["entries"]:
        check_entry(rank, entry, dump["pg_config"])
    if is_busy:  # the recorder may have changed between the two files
        return
    by_id = {entry["id"]: entry for entry in text["entries"]}
    for entry in dump["entries"]:
        other = by_id.get(entry["op_id"], {})
        same = ("state", "input_sizes", "output_sizes", "input_dtypes", "time_created_ns", "collective_seq_id")
        claim(all(entry[name] == other.get(name) for name in same), f"rank {rank}: {entry} in JSON is {other}")


def summary(entry):
    return (entry["profiling_name"].removeprefix("gloo:"), entry["input_sizes"], entry["output_sizes"],
            entry["input_dtypes"][0])  # fmt: skip


def collectives_of(rank):
    mine = rank + 1
    return [
        ("all_reduce", [[8]], [[8]], "Float"),
        ("all_gather", [[8]], [[32]], "BFloat16"),
        ("reduce_scatter", [[32]], [[8]], "Double"),
        ("all_to_all", [[32]], [[32]], "Byte"),
        ("broadcast", [[8]], [[8]], "Int"),
        ("reduce", [[8]], [[8]], "Long"),
        ("gather", [[8]], [[32 if rank == 3 else 0]], "Half"),
        ("scatter", [[32 if rank == 0 else 0]], [[8]], "Short"),
        ("all_reduce_barrier", [[0]], [[0]], "Bool"),
        ("all_gather_v", [[]], [[10]], "Float"),
        ("reduce_scatter_v", [[10]], [[]], "Float"),
        ("all_to_all", [[8]], [[8]], "Float"),
        ("gather", [[]], [[10 if mine == 2 else 0]], "Float"),
        ("scatter", [[10 if mine == 3 else 0]], [[]], "Float"),
    ]


# Label, analyser's operation, sizes and dtype of the steps that communicate.
STEPS = [
    ("gathered, step all-gather along dp", ("all_gather_v", [[]], [[4096]], "Float")),
    ("gathered unevenly, step all-gather along dp", ("all_gather_v", [[]], [[4032]], "Float")),
    ("scattered, step reduce-scatter along dp", ("reduce_scatter_v", [[4096]], [[]], "Float")),
    ("scattered unevenly, step reduce-scatter along dp", ("reduce_scatter_v", [[4032]], [[]], "Float")),
    ("reduced, step all-reduce along dp", ("all_reduce", [[4096]], [[4096]], "Float")),
    ("turned, step all-to-all along dp", ALL_TO_ALL),
    ('a\n?"???\\\u20ac, step permute along dp,tp', ALL_TO_ALL),
    ("exchanged, step exchange along dp,tp", ALL_TO_ALL),
    ("widened, step all-gather along dp", ("all_gather_v", [[]], [[8192]], "BFloat16")),
    ("narrowed, step all-reduce along dp", ("all_reduce", [[4096]], [[4096]], "Float")),
]


def check_messages(rank, dump):
    following, previous = (rank + 1) % 4, (rank + 3) % 4
    want = []
    for number in (1, 2):
        want.append((f"{rank}->{following}", number, "send", [[10]]))
        want.append((f"{previous}->{rank}", number, "recv", [[10]]))
    if rank in (1, 3):
        want.append(("3->1", 1, "send" if rank == 3 else "recv", [[5]]))
    have = []
    for entry in (e for e in dump["entries"] if e["is_p2p"]):
        name, places = entry["profiling_name"].removeprefix("gloo:").split()
        comm, way = entry["process_group"][0].split(":")
        ranks = ast.literal_eval(dump["pg_config"][entry["process_group"][0]]["ranks"])
        source, target = (int(place) for place in places.split("->" if name == "send" else "<-")[:: 1 if name == "send" else -1])
        claim(f"{ranks[source]}->{ranks[target]}" == way and comm == "1", f"rank {rank}: {places} of {ranks} is {way}")
        claim(entry["input_sizes"] == entry["output_sizes"], f"rank {rank}: sizes of {entry}")
        have.append((way, entry["p2p_seq_id"], name, entry["input_sizes"]))
    claim(have == want, f"rank {rank}: messages {have}")


def check_all(rank, dump, text):
    entries = [entry for entry in dump["entries"] if not entry["is_p2p"]]
    for have, want in zip(entries, collectives_of(rank)):
        claim(summary(have) == want, f"rank {rank}: {summary(have)} is {want}")
    steps = [(entry["frames"][0]["name"], summary(entry)) for entry in entries if entry["frames"]]
    for have, want in zip(steps, STEPS):
        claim(have == want, f"rank {rank}: step {have} is {want}")
    claim(all(entry["frames"][0]["filename"].startswith("plan ") for entry in entries if entry["frames"]), "plans")
    claim(len(steps) >= len(STEPS) + 2, f"rank {rank}: the steps of the batch")
    check_messages(rank, dump)
    odd = [group for group in dump["pg_config"].values() if group["desc"].startswith('odd"\\\u00e9')]
    claim(len(odd) == 1 and odd[0]["ranks"] == str([rank % 2 + 2, rank % 2]), f"rank {rank}: {odd}")
    kinds = {entry["step_kind"] for entry in text["entries"]}
    claim(kinds == {None, "slice", "partial", "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute",
                    "exchange"}, f"rank {rank}: kinds {kinds}")  # fmt: skip
    operations = {entry["operation"] for entry in text["entries"]}
    claim({"redistribute", "plan", "copy", "pull", "symmetric barrier", "create", "release"} <= operations,
          f"rank {rank}: {operations}")  # fmt: skip
    numbers = [entry["collective_seq_id"] for entry in text["entries"] if entry["pg_id"] == 1 and not entry["is_p2p"]
               and entry["operation"] not in ("create", "release")]  # fmt: skip
    claim(text["pg_status"]["1"]["last_enqueued_collective"] == max(numbers), f"rank {rank}: creations are not counted")
    claim(all(entry["state"] == "completed" for entry in text["entries"]), f"rank {rank}: all is complete")
    moved = [entry for entry in text["entries"] if entry["parent"] != 0]
    claim(all(by["operation"] == "redistribute" for by in text["entries"] if by["id"] in {e["parent"] for e in moved}),
          f"rank {rank}: steps have a parent")  # fmt: skip


def check_lost(rank, dump, text, lost):
    """The rank that it waits for; -1 if another rank has reported the failure."""
    last, status = dump["entries"][-1], text["pg_status"]["1"]
    claim(status["failed"] is not None and status["waits_for"] in (lost, -1), f"rank {rank}: {status}")
    if last["state"] != "completed":  # it may have failed between two operations
        claim(last["state"] == "started" and last["retired"] is True, f"rank {rank}: {last}")
        # it may become known while the dump is written
        claim(last["waits_for"] in (status["waits_for"], lost), f"rank {rank}: {last}, {status}")
        entry, = [entry for entry in text["entries"] if entry["id"] == last["op_id"]]
        claim(entry["failed"] == status["failed"], f"rank {rank}: {entry} has failed with {status}")
    return status["waits_for"]


def main():
    scenario, prefix, ranks = sys.argv[1], sys.argv[2], [int(rank) for rank in sys.argv[3:]]
    awaited = set()
    for rank in ranks:
        dump, text = read(prefix, rank)
        check_form(rank, dump, text, scenario == "busy")
        if scenario == "all":
            check_all(rank, dump, text)
        if scenario.startswith("lost-"):
            awaited.add(check_lost(rank, dump, text, int(scenario.removeprefix("lost-"))))
        if scenario == "busy":
            claim(len(dump["entries"]) > 0, f"rank {rank}: it has entries")
    claim(not awaited or awaited != {-1}, "a rank names the one that it waits for")
    for problem in problems[:20]:
        print(f"not so: {problem}")
    sys.exit(1 if problems else 0)


main()
