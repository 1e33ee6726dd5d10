"""torch.distributed over weft: the same programs as over Gloo, with the same results."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

PROGRAMS = {
    "collectives": """
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
    """,
    "messages": """
        token = torch.full((5,), float(rank))
        if rank == 0:
            dist.send(token, 1)
        elif rank == 1:
            dist.recv(token, 0)
        keep(token)
    """,
    "groups": """
        pair = dist.new_group([0, 1])
        x = torch.ones(3) * (rank + 2)
        if rank < 2:
            dist.all_reduce(x, group=pair)
        keep(x)
        objects = [None] * size
        dist.all_gather_object(objects, {"rank": rank})
        keep(torch.tensor([o["rank"] for o in objects]))
    """,
    "dtensor": """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        mesh = init_device_mesh("cpu", (size,))
        torch.manual_seed(0)
        w = distribute_tensor(torch.randn(7, 6), mesh, [Shard(0)])
        v = w.redistribute(mesh, [Shard(1)])
        keep(v.full_tensor(), (w @ v.redistribute(mesh, [Replicate()]).T).full_tensor())
    """,
    "ddp": """
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
        for step in range(3):
            loss = model(torch.full((2, 4), float(rank + step))).square().sum()
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
        keep(*[p.detach() for p in model.parameters()])
    """,
}

FRAME = """
import sys
import torch
import torch.distributed as dist

backend, path = sys.argv[1:]
if backend == "weft":
    import weft.torch
dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
kept = []
keep = lambda *tensors: kept.extend(t.clone() for t in tensors)
{program}
torch.save(kept, f"{{path}}.{{rank}}")
dist.destroy_process_group()
"""


def run(tmp_path, backend, ranks, program):
    import torch

    script = tmp_path / f"over_{backend}.py"
    script.write_text(FRAME.format(program=textwrap.dedent(program)))
    path = tmp_path / backend
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(ranks), script, backend, path],
        capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [torch.load(f"{path}.{rank}") for rank in range(ranks)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_gloo(tmp_path, name):
    import torch

    ours = run(tmp_path, "weft", 3, PROGRAMS[name])
    theirs = run(tmp_path, "gloo", 3, PROGRAMS[name])
    for mine, other in zip(ours, theirs, strict=True):
        assert len(mine) == len(other)
        for a, b in zip(mine, other):
            torch.testing.assert_close(a, b)


def test_results_are_torch_tensors():
    import torch

    import weft

    with weft.Context() as context:
        x = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
        y = weft.redistribute(x, "1", "S(0)", "S(1)", context=context)
        assert isinstance(y, torch.Tensor) and torch.equal(x, y)
        with pytest.raises(ValueError, match="requires grad"):
            weft.redistribute(torch.ones(3, requires_grad=True), "1", "S(0)", "R", context=context)
