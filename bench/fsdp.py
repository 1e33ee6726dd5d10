"""One rank of PyTorch's FSDP2: the step and the clipping of fsdp_speed, timed the same way, over Gloo,
or with a last argument "cuda" over NCCL, all ranks on one device.  bench/fsdp.sh starts it with
torchrun; rank 0 writes {"rows": [...]}.

    fsdp.py ROUNDS OUT.json [cuda]"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard

CHANNELS, VOCABULARY, LENGTH, BLOCKS, CLIPPED, WARM_UP = 768, 50257, 1024, 12, 1500, 2


class Parameters(nn.Module):
    """Parameters whose use costs next to nothing: one element of each."""

    def __init__(self, shapes, inner=()):
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.ones(shape)) for shape in shapes])
        self.inner = nn.ModuleList(inner)

    def forward(self, x):
        for parameter in self.all:
            x = x + parameter.view(-1)[0]
        for module in self.inner:
            x = module(x)
        return x


def block():
    c = CHANNELS
    return Parameters([(c,)] * 4 + [(3 * c, c), (3 * c,), (c, c), (c,), (4 * c, c), (4 * c,), (c, 4 * c), (c,)])


def make_model(mesh, device):
    model = Parameters([(VOCABULARY, CHANNELS), (LENGTH, CHANNELS), (CHANNELS,), (CHANNELS,)],
                       [block() for _ in range(BLOCKS)]).to(device)
    for module in model.inner:
        fully_shard(module, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def time_of(run, rounds, device):
    """Times of the slowest rank, the least processor time of this one, and that of the calling thread; nanoseconds."""
    samples, cpu, host = [], [], 0
    for i in range(WARM_UP + rounds):
        dist.barrier()
        finish(device)
        begin, process, thread = time.monotonic_ns(), time.process_time_ns(), time.thread_time_ns()
        run()
        host = time.thread_time_ns() - thread
        finish(device)
        if i >= WARM_UP:
            samples.append(time.monotonic_ns() - begin)
            cpu.append(time.process_time_ns() - process)
    slowest = torch.tensor(samples, dtype=torch.int64, device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.tolist(), min(cpu), host


def row(what, times):
    samples, cpu, host = times
    return {"what": what, "ranks": dist.get_world_size(), "median_ns": int(statistics.median(samples)),
            "min_ns": min(samples), "cpu_ns": cpu, "host_ns": host}


def time_step(mesh, rounds, device):
    model, x = make_model(mesh, device), torch.zeros(1, device=device)

    def step():
        model(x).sum().backward()
        model.zero_grad(set_to_none=True)

    return row("step", time_of(step, rounds, device))


def time_clip(mesh, rounds, device):
    parameters = []
    for _ in range(CLIPPED):
        local = torch.ones(64 // mesh.size(), 64, device=device)
        parameter = nn.Parameter(DTensor.from_local(local, mesh, [Shard(0)], run_check=False))
        parameter.grad = DTensor.from_local(local.clone(), mesh, [Shard(0)], run_check=False)
        parameters.append(parameter)
    return row("clip", time_of(lambda: nn.utils.clip_grad_norm_(parameters, 1.0), rounds, device))


def main():
    rounds, device = int(sys.argv[1]), "cuda" if sys.argv[3:] == ["cuda"] else "cpu"
    torch.set_num_threads(1)
    if device == "cuda":  # two ranks of one host may not share a device; two hosts' may
        os.environ["NCCL_HOSTID"] = f"fsdp-{os.environ['RANK']}"
        torch.cuda.set_device(0)
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    rows = [time_step(mesh, rounds, device), time_clip(mesh, rounds, device)]
    if dist.get_rank() == 0:
        with open(sys.argv[2], "w", encoding="ascii") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
