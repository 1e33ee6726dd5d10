#!/usr/bin/env python3
"""torch.distributed over weft with CUDA tensors beside NCCL, ranks share a device: torchrun --nproc-per-node N group.py"""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import weft
import weft.torch as wt


def close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def both(groups, program):
    """Run a program over both groups and compare what it returns."""
    close(*(program(group) for group in groups))


def reductions(group):
    rank, results = dist.get_rank(), []
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8):
        x = (torch.arange(1000, device="cuda") % 7 + rank).to(dtype)
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
            y = x.clone()
            dist.all_reduce(y, op=op, group=group)
            results.append(y)
    x = torch.arange(1000.0, device="cuda") * rank
    dist.all_reduce(x, op=dist.ReduceOp.AVG, group=group)
    return [*results, x]


def shapes(group):
    rank, size = dist.get_rank(), dist.get_world_size()
    columns = (torch.arange(12.0, device="cuda") * (rank + 1)).reshape(3, 4).t()
    if dist.get_backend(group) == "nccl":  # it takes contiguous tensors alone
        columns = columns.contiguous()
    dist.all_reduce(columns, group=group)
    whole = torch.empty(size * 5, device="cuda")
    dist.all_gather_into_tensor(whole, torch.arange(5.0, device="cuda") + rank, group=group)
    part = torch.empty(5, device="cuda")
    dist.reduce_scatter_tensor(part, torch.arange(5.0 * size, device="cuda") * rank, group=group)
    sends, receives = [rank + i + 1 for i in range(size)], [i + rank + 1 for i in range(size)]
    out = torch.empty(sum(receives), 3, device="cuda")
    dist.all_to_all_single(out, torch.full((sum(sends), 3), float(rank), device="cuda"), receives, sends, group=group)
    parts = [torch.empty(4, device="cuda") for _ in range(size)]
    dist.all_gather(parts, torch.full((4,), float(rank), device="cuda"), group=group)
    token = torch.full((6,), float(rank), device="cuda")
    dist.broadcast(token, src=size - 1, group=group)
    return [columns, whole, part, out, *parts, token]


def works(group):
    """Work objects order streams; the host does not wait for the device."""
    rank = dist.get_rank()
    side, x = torch.cuda.Stream(), torch.zeros(1 << 16, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x.fill_(float(rank + 1))
        work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()  # the current stream is now behind the side stream
    y = x * 2
    future = dist.all_reduce(x, group=group, async_op=True).get_future()
    z = future.then(lambda done: done.value()[0] + 1).wait()
    torch.cuda.synchronize()
    return [y, z]


def messages(group):
    rank, size = dist.get_rank(), dist.get_world_size()
    large, received = torch.full((1 << 20,), float(rank), device="cuda"), torch.empty(1 << 20, device="cuda")
    batch = [dist.P2POp(dist.isend, large, (rank + 1) % size, group=group),
             dist.P2POp(dist.irecv, received, (rank - 1) % size, group=group)]  # fmt: skip
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [received]


def functions(group):
    x = torch.arange(4.0 * dist.get_world_size(), device="cuda") + dist.get_rank()
    return [
        functional.all_reduce(x, "sum", group) + 0, functional.all_gather_tensor(x, 0, group) + 0,
        functional.reduce_scatter_tensor(x, "sum", 0, group) + 0,
    ]  # fmt: skip


def two_devices():
    """Tensors on the CPU and on the device in one group."""
    rank, size = dist.get_rank(), dist.get_world_size()
    total = size * (size + 1) / 2
    on_host, on_device = torch.full((9,), rank + 1.0), torch.full((9,), rank + 1.0, device="cuda")
    dist.all_reduce(on_host)
    dist.all_reduce(on_device)
    assert on_host.tolist() == on_device.tolist() == [total] * 9
    assert wt.context_for("cpu").kind == "cpu" and wt.context_for("cuda").kind == "cuda"
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    assert objects == list(range(size))
    dist.barrier()


def moves(group):
    """weft moves DTensors on the device as DTensor does."""
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = DeviceMesh.from_group(group, "cuda")
    torch.manual_seed(0)
    x = distribute_tensor(torch.randn(37, 64, device="cuda"), mesh, [Shard(0)])
    for target in ([Shard(1)], [Replicate()]):
        close([wt.redistribute(x, mesh, target).to_local()], [x.redistribute(mesh, target).to_local()])
    local = torch.full((4, 6 * size), float(rank), device="cuda")
    y = weft.redistribute(local, f"tp={size}", "S(0)", "S(1)", context=wt.context_for("cuda"))
    assert y.is_cuda and y.shape == (4 * size, 6) and y[::4, 0].tolist() == [float(r) for r in range(size)]
    leaf = distribute_tensor(torch.randn(8, 8, device="cuda"), mesh, [Shard(0)]).requires_grad_()
    (wt.redistribute(leaf, mesh, [Replicate()]) * 2).sum().full_tensor().backward()
    assert (leaf.grad.full_tensor() == 2).all()


def main():
    os.environ["NCCL_HOSTID"] = f"weft-{os.environ['RANK']}"  # ranks that share a device are hosts for NCCL
    torch.cuda.set_device(0)
    dist.init_process_group("weft")
    groups = [dist.group.WORLD, dist.new_group(backend="nccl")]
    two_devices()
    for program in (reductions, shapes, works, messages, functions):
        both(groups, program)
        if dist.get_rank() == 0:
            print(f"{program.__name__}: equal", flush=True)
    moves(groups[0])
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks over {wt.context_for('cuda').backend}: all as expected", flush=True)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
