"""check_device.py FOLDER - traces of a job whose work ran on a device: FOLDER/t.RANK of each rank, FOLDER/all.pftrace
merged.  Prints JSON; ends with 1 if a slice has no time of the device, or a slice is missing."""
import collections
import glob
import json
import sys

import pftrace

folder = sys.argv[1]
merged = pftrace.read(f"{folder}/all.pftrace")
ranks = []
for file in sorted(glob.glob(f"{folder}/t.*")):
    trace = pftrace.read(file)
    on_stream = [s for s in trace.slices
                 if trace.path(s.track)[-1].startswith(("stream", "default stream"))]
    seen_by_host = [s for s in on_stream if "seen by the host" in trace.path(s.track)[-1]]
    missed, = [i.notes["missed slices"] for i in trace.instants if i.name == "weft trace ends"]
    assert on_stream, f"{file}: no slice is on a stream"
    assert not seen_by_host, f"{file}: {seen_by_host[0]} has no time of the device"
    assert all(s.end >= s.begin for s in on_stream), file
    assert any(s.end > s.begin for s in on_stream), f"{file}: every slice takes no time"
    ranks.append({"file": file.rsplit("/", 1)[1], "slices": len(on_stream), "missed": missed,
                  "kinds": collections.Counter(s.category for s in on_stream),
                  "longest_us": max(s.end - s.begin for s in on_stream) / 1000})
assert len(ranks) > 1
assert len(merged.slices) >= sum(r["slices"] for r in ranks)
print(json.dumps({"ranks": ranks, "merged_slices": len(merged.slices), "flows": len(merged.flows())}, indent=1))
