"""Programs over torch.distributed that tests run over several backends: torch_programs.py BACKEND[@cuda] PATH [NAME...]

Each gets rank, size and a function `keep` for the tensors that must be equal.  With @cuda, all tensors are on the CUDA
device that the ranks share, and programs that need more than one device are left out.
"""

import os
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

DEVICE = "cpu"


def collectives(rank, size, keep):
    x = torch.arange(6.0) * (rank + 1)
    dist.all_reduce(x)
    keep(x)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    keep(x)
    dist.broadcast(x, src=1)
    parts = [torch.empty(6) for _ in range(size)]
    dist.all_gather(parts, torch.arange(6.0) + rank)
    keep(*parts)
    whole = torch.empty(6 * size)
    dist.all_gather_into_tensor(whole, torch.arange(6.0) - rank)
    keep(whole)
    part = torch.empty(3)
    dist.reduce_scatter_tensor(part, torch.arange(3.0 * size) * (rank + 1))
    keep(part)
    dist.reduce(x, dst=0)
    gathered = [torch.empty(2) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.full((2,), float(rank)), gathered, dst=0)
    if rank == 0:
        keep(x, *gathered)
    mine = torch.empty(2)
    dist.scatter(mine, list(torch.arange(2.0 * size).split(2)) if rank == 0 else None, src=0)
    keep(mine)
    dist.barrier()


def dtypes(rank, size, keep):
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float64, torch.float16, torch.bfloat16):
        x = (torch.arange(5) + rank).to(dtype)
        dist.all_reduce(x)
        keep(x.to(torch.float64))
    strided = (torch.arange(12.0) * (rank + 1)).reshape(3, 4).t()
    if dist.get_backend() == "nccl":  # it takes contiguous tensors alone
        strided = strided.contiguous()
    dist.all_reduce(strided)
    keep(strided)


def uneven(rank, size, keep):
    sends = [rank + other + 1 for other in range(size)]
    receives = [other + rank + 1 for other in range(size)]
    out = torch.empty(sum(receives), 2)
    dist.all_to_all_single(out, torch.randn(sum(sends), 2), receives, sends)
    keep(out)


def messages(rank, size, keep):
    token = torch.full((5,), float(rank))
    if rank == 0:
        dist.send(token, 1)
    elif rank == 1:
        dist.recv(token, 0)
    keep(token)
    large, columns = torch.full((1 << 18,), float(rank)), torch.empty(3, 4)
    received = torch.empty_like(large)
    following, before = (rank + 1) % size, (rank - 1) % size
    works = [
        dist.isend(large, following), dist.irecv(received, before),
        dist.isend((torch.arange(12.0) + rank).reshape(3, 4), following, tag=7), dist.irecv(columns, before, tag=7),
    ]  # fmt: skip
    for work in works:
        work.wait()
    keep(received[:3], columns)
    parts = [torch.empty_like(large) for _ in range(3)]
    works = [dist.isend(large * tag, following, tag=tag) for tag in (1, 2, 3)]
    works += [dist.irecv(parts[tag - 1], before, tag=tag) for tag in (3, 1, 2)]  # not in the order of the sends
    for work in works:
        work.wait()
    keep(*(part[-2:] for part in parts))


def batches(rank, size, keep):
    following, before = (rank + 1) % size, (rank - 1) % size
    large, received = torch.full((1 << 18,), float(rank)), torch.empty(1 << 18)
    batch = [dist.P2POp(dist.isend, large, before), dist.P2POp(dist.irecv, received, following)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    keep(received[-3:])


def groups(rank, size, keep):
    pair = dist.new_group([0, 1])
    x = torch.ones(3) * (rank + 2)
    if rank < 2:
        dist.all_reduce(x, group=pair)
    keep(x)


def objects(rank, size, keep):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    shared = [{"step": 7}, "text"] if rank == 1 else [None, None]
    dist.broadcast_object_list(shared, src=1)
    mine = [None]
    dist.scatter_object_list(mine, list(range(10, 10 + size)) if rank == 0 else None, src=0)
    keep(torch.tensor([*(one["rank"] for one in gathered), shared[0]["step"], mine[0]]))


def coalesced(rank, size, keep):
    a, b = torch.arange(3.0) + rank, torch.ones(2, 2) * rank
    with dist._coalescing_manager():
        dist.all_reduce(a)
        dist.all_reduce(b)
    wholes = [torch.empty(2 * size), torch.empty(3 * size)]
    with dist._coalescing_manager():
        for whole, count in zip(wholes, (2, 3)):
            dist.all_gather_into_tensor(whole, torch.arange(float(count)) + rank)
    keep(a, b, *wholes)


def functions(rank, size, keep):
    group = dist.group.WORLD
    x = torch.arange(float(2 * size)) + rank
    keep(functional.all_reduce(x, "sum", group) + 0)
    keep(functional.all_gather_tensor(x, 0, group) + 0)
    keep(functional.reduce_scatter_tensor(x, "sum", 0, group) + 0)
    keep(functional.all_to_all_single(x, None, None, group) + 0)


def futures(rank, size, keep):
    x = torch.full((4,), float(rank))
    work = dist.all_reduce(x, async_op=True)
    keep(work.get_future().then(lambda future: future.value()[0] * 2).wait())
    work.wait()
    keep(x)


def dtensor(rank, size, keep):
    mesh = init_device_mesh(DEVICE, (size,))
    w = distribute_tensor(torch.randn(7, 6), mesh, [Shard(0)])
    v = w.redistribute(mesh, [Shard(1)])
    keep(v.full_tensor(), (w @ v.redistribute(mesh, [Replicate()]).T).full_tensor())


def tensor_parallel(rank, size, keep):
    mesh = init_device_mesh(DEVICE, (size,))
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    model(torch.ones(4, 8)).square().sum().backward()
    keep(*(p.grad.full_tensor() for p in model.parameters()))


def ddp(rank, size, keep):
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    for step in range(3):
        loss = model(torch.full((2, 4), float(rank + step))).square().sum()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
    keep(*[p.detach() for p in model.parameters()])


def make_sharded(mesh, **options):
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def train(model, rank, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.full((2, 8), float(rank + step))).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return optimizer


def fsdp2(rank, size, keep):
    model = make_sharded(init_device_mesh(DEVICE, (size,)))
    train(model, rank, 3)
    keep(*(p.full_tensor().detach() for p in model.parameters()))


def fsdp2_mixed(rank, size, keep):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = make_sharded(init_device_mesh(DEVICE, (size,)), mp_policy=policy, reshard_after_forward=False)
    train(model, rank, 2)
    keep(*(p.full_tensor().detach() for p in model.parameters()))


def checkpoints(rank, size, keep):
    model = make_sharded(init_device_mesh(DEVICE, (size,)))
    train(model, rank, 1)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder[0])
    torch.manual_seed(9)
    other = make_sharded(init_device_mesh(DEVICE, (size,)))
    state = {"model": other.state_dict()}
    dcp.load(state, checkpoint_id=folder[0])
    other.load_state_dict(state["model"])
    for a, b in zip(model.parameters(), other.parameters()):
        assert torch.equal(a.full_tensor(), b.full_tensor())
    keep(*(p.full_tensor().detach() for p in other.parameters()))


PROGRAMS = [
    collectives, dtypes, uneven, messages, batches, groups, objects, coalesced, functions, futures, dtensor,
    tensor_parallel, ddp, fsdp2, fsdp2_mixed, checkpoints,
]  # fmt: skip


ON_ONE_DEVICE = [program for program in PROGRAMS if program is not messages]


def main(backend, path, *names):
    """Run the programs, and write what each keeps to PATH.NAME.RANK."""
    global DEVICE
    backend, _, DEVICE = backend.partition("@")
    DEVICE = DEVICE or "cpu"
    if DEVICE == "cuda":
        os.environ["NCCL_HOSTID"] = f"weft-{os.environ['RANK']}"  # ranks that share a device are hosts for NCCL
        torch.cuda.set_device(0)
        torch.set_default_device("cuda")
    if backend == "weft":
        import weft.torch  # noqa: F401
    dist.init_process_group(backend)
    rank = dist.get_rank()
    for program in PROGRAMS if DEVICE == "cpu" else ON_ONE_DEVICE:
        if names and program.__name__ not in names:
            continue
        kept = []
        torch.manual_seed(0)
        program(rank, dist.get_world_size(), lambda *tensors: kept.extend(t.clone() for t in tensors))  # noqa: B023
        kept = [tensor.cpu() for tensor in kept]
        torch.save(kept, pathlib.Path(f"{path}.{program.__name__}.{rank}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
