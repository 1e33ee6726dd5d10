"""One rank of PyTorch's DTensor: the redistributions of `weft bench redistribute`, timed the same way,
over Gloo, or with a last argument "cuda" over NCCL, all ranks on one device.  bench/dtensor.sh
starts it with torchrun; rank 0 writes {"rows": [...]}.

    dtensor.py SIZES BUDGET_MS OUT.json [cuda]"""
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


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def time_one(mesh, size, source, target, budget, device):
    """Nanoseconds of the slowest rank, a sample being one call begun after a barrier."""
    local = torch.ones(local_shape(size, mesh.size(), source), device=device)
    tensor = DTensor.from_local(local, mesh, [source], run_check=False)
    samples = []
    for _ in range(3):
        tensor.redistribute(mesh, [target]).to_local()
    end = time.monotonic() + budget
    while True:
        dist.barrier()
        finish(device)
        begin = time.monotonic_ns()
        tensor.redistribute(mesh, [target]).to_local()
        finish(device)
        samples.append(time.monotonic_ns() - begin)
        done = torch.tensor([1 if time.monotonic() > end and len(samples) >= 5 else 0], device=device)
        dist.broadcast(done, 0)
        if done.item():
            break
    slowest = torch.tensor(samples, dtype=torch.int64, device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.tolist()


def main():
    sizes = [int(size) for size in sys.argv[1].split(",")]
    budget = int(sys.argv[2]) / 1000
    device = "cuda" if sys.argv[4:] == ["cuda"] else "cpu"
    torch.set_num_threads(1)
    if device == "cuda":  # two ranks of one host may not share a device; two hosts' may
        os.environ["NCCL_HOSTID"] = f"dtensor-{os.environ['RANK']}"
        torch.cuda.set_device(0)
        TRANSITIONS.insert(4, ("P", "S(1)", Partial(), Shard(1)))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    ranks = dist.get_world_size()
    mesh = init_device_mesh(device, (ranks,))
    rows = []
    for size in sizes:
        for source_text, target_text, source, target in TRANSITIONS:
            samples = time_one(mesh, size, source, target, budget, device)
            rows.append({
                "from": source_text, "to": target_text, "shape": [size, size], "ranks": ranks,
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
