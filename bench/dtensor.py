"""One rank of PyTorch's DTensor over Gloo: the redistributions of `weft bench redistribute`, timed
the same way.  bench/dtensor.sh starts it with torchrun; rank 0 writes {"rows": [...]}."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

TRANSITIONS = [
    ("S(0)", "R", Shard(0), Replicate()),
    ("S(0)", "S(1)", Shard(0), Shard(1)),
    ("P", "R", Partial(), Replicate()),
    ("P", "S(0)", Partial(), Shard(0)),
    ("R", "S(1)", Replicate(), Shard(1)),
]


def local_shape(size, ranks, placement):
    shape = [size, size]
    if isinstance(placement, Shard):
        shape[placement.dim] //= ranks
    return shape


def time_one(mesh, size, source, target, budget):
    """Nanoseconds of the slowest rank, a sample being one call begun after a barrier."""
    local = torch.ones(local_shape(size, mesh.size(), source))
    tensor = DTensor.from_local(local, mesh, [source], run_check=False)
    samples = []
    for _ in range(3):
        tensor.redistribute(mesh, [target]).to_local()
    end = time.monotonic() + budget
    while True:
        dist.barrier()
        begin = time.monotonic_ns()
        tensor.redistribute(mesh, [target]).to_local()
        samples.append(time.monotonic_ns() - begin)
        done = torch.tensor([1 if time.monotonic() > end and len(samples) >= 5 else 0])
        dist.broadcast(done, 0)
        if done.item():
            break
    slowest = torch.tensor(samples, dtype=torch.int64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.tolist()


def main():
    sizes = [int(size) for size in sys.argv[1].split(",")]
    budget = int(sys.argv[2]) / 1000
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks,))
    rows = []
    for size in sizes:
        for source_text, target_text, source, target in TRANSITIONS:
            samples = time_one(mesh, size, source, target, budget)
            rows.append({
                "from": source_text, "to": target_text, "shape": f"{size}x{size}", "ranks": ranks,
                "median_ns": int(statistics.median(samples)), "min_ns": min(samples),
            })
    if dist.get_rank() == 0:
        with open(sys.argv[3], "w", encoding="ascii") as file:
            json.dump({"rows": rows, "version": torch.__version__}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
