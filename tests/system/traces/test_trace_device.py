"""Times of streams come from the device's events.  Captured work has none, and does no harm.

The device is a stand-in for the vendor's libraries: every operation is on a stream, also on the
default one."""
import os
import shutil
import sys

import jobs
import pftrace

standin, kernels = sys.argv[3:5]
device = {"WEFT_BACKEND": "nccl", "WEFT_CUDA_LIB": f"{standin}/libcuda.so.1",
          "WEFT_NCCL_LIB": f"{standin}/libnccl.so.2", "WEFT_NCCL_KERNELS": kernels}


def count(trace, track):
    """Slices by category, on tracks whose name begins with TRACK."""
    found = {}
    for s in trace.slices:
        if trace.path(s.track)[-1].startswith(track):
            found[s.category] = found.get(s.category, 0) + 1
    return found


def missed(trace):
    return [i.notes["missed slices"] for i in trace.instants if i.name == "weft trace ends"]


on_stream = {"redistribute": 2, "all-to-all-v": 2, "all-gather": 1, "barrier": 1}
os.chdir(jobs.folder)
jobs.run_ranks(2, WEFT_TRACE="t", **device)
for rank in range(2):
    trace = pftrace.read(f"t.{rank}")
    assert missed(trace) == [0]
    assert count(trace, "host calls") == {"create": 1, "plan": 2}
    assert count(trace, "stream ") == on_stream
    assert count(trace, "default stream") == {
        "all-reduce": 3, "send": 1, "receive": 1, "redistribute": 5, "all-to-all-v": 5}
    send, = [s for s in trace.slices if s.category == "send"]
    receive, = [s for s in trace.slices if s.category == "receive"]
    # A slice that the device's clock puts before its call is empty: that clock is known within a bound, which a busy
    # machine widens.
    assert receive.parent is send or send.begin == send.end, "a group's operations run at the same time"
jobs.run_ranks(2, WEFT_TRACE="captured", STANDIN_RECORDING="1", **device)
trace = pftrace.read("captured.0")
assert count(trace, "default stream") == {} and count(trace, "stream ") == on_stream
assert missed(trace) == [10]
shutil.rmtree(jobs.folder)
