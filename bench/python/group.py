#!/usr/bin/env python3
"""torch.distributed over weft beside Gloo, in one run.  Usage: PYTHONPATH=BUILD/python group.py [RANKS]

The same processes have a group of each backend and use them in turns, so both see the same machine.  Two more times
show what no group can do better: a copy by all ranks at once, because an all-reduce reads and writes the whole tensor;
and DTensor over PyTorch's "fake" group, which moves nothing, because DTensor copies before and after the collective.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed import fake_pg  # noqa: F401

import weft.torch  # noqa: F401

ROUNDS = 5


def measure(function, calls):
    """Microseconds per call on the slowest rank."""
    dist.barrier()
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    mean = torch.tensor([(time.perf_counter_ns() - begin) / calls / 1e3], dtype=torch.float64)
    dist.all_reduce(mean, op=dist.ReduceOp.MAX)
    return float(mean)


def compare(name, make, calls):
    """Print the least time over each backend, measured in turns."""
    functions = {backend: make(backend) for backend in ("weft", "gloo")}
    times = {backend: [] for backend in functions}
    for _ in range(ROUNDS):
        for backend, function in functions.items():
            function()
            times[backend].append(measure(function, calls))
    ours, theirs = min(times["weft"]), min(times["gloo"])
    if dist.get_rank() == 0:
        print(f"{name:36} weft {ours:10.1f} us   Gloo {theirs:10.1f} us   ratio {theirs / ours:5.1f}", flush=True)


def show_alone(name, function):
    """Print the least time of what every rank does for itself."""
    function()
    least = min(measure(function, 2) for _ in range(ROUNDS))
    if dist.get_rank() == 0:
        print(f"{name:36}      {least:10.1f} us", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("weft")
    size = dist.get_world_size()
    groups = {"weft": dist.group.WORLD, "gloo": dist.new_group(backend="gloo"), "fake": dist.new_group(backend="fake")}

    def all_reduce(count):
        x = torch.ones(count)
        return lambda backend: lambda: dist.all_reduce(x, group=groups[backend])

    def redistribute(backend):
        mesh = DeviceMesh.from_group(groups[backend], "cpu")
        x = DTensor.from_local(torch.randn(4096 // size, 4096), mesh, [Shard(0)])
        return lambda: x.redistribute(mesh, [Shard(1)])

    if dist.get_rank() == 0:
        print(f"{size} ranks")
    compare("all-reduce of 1 KiB", all_reduce(256), 200)
    compare("all-reduce of 64 MiB", all_reduce(1 << 24), 2)
    x, y = torch.ones(1 << 24), torch.empty(1 << 24)
    show_alone("copy of 64 MiB by each rank", lambda: y.copy_(x))
    compare("DTensor 4096 x 4096, S(0) to S(1)", redistribute, 2)
    show_alone("the same, nothing moved", redistribute("fake"))
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:
        ranks = sys.argv[1] if len(sys.argv) > 1 else "2"
        arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, __file__]
        os.execv(sys.executable, [sys.executable, *arguments])
