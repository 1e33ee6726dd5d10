"""DTensor's redistributions in a block of weft.torch.planned."""

import pytest

torch = pytest.importorskip("torch")

from test_torch import torchrun_text  # noqa: E402, F401

PROGRAM = """
    import itertools, sys, torch, torch.distributed as dist, weft
    import weft.torch as wt
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module)

    dist.init_process_group(BACKEND)
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
"""


@pytest.mark.parametrize("backend", ["weft", "gloo"])
def test_every_layout_forward_and_backward(torchrun_text, backend):  # noqa: F811
    torchrun_text(4, PROGRAM.replace("BACKEND", repr(backend)) + """
    torch.manual_seed(0)
    whole = torch.randint(-50, 50, (7, 6)).float()  # sums are exact in every order
    layouts = [list(pair) for pair in itertools.product([Shard(0), Shard(1), Replicate(), Partial()], repeat=2)]

    def results(source, target):
        local = distribute_tensor(whole, mesh, [Replicate() if p.is_partial() else p for p in source]).to_local()
        leaf = DTensor.from_local(
            local.clone(), mesh, source, run_check=False, shape=whole.shape, stride=whole.stride()).requires_grad_()
        moved = leaf.redistribute(mesh, target)
        (moved * 3).to_local().sum().backward()
        return moved.to_local(), leaf.grad.to_local(), moved.full_tensor(), leaf.grad.placements

    def kinds(layout): return [placement.is_partial() for placement in layout]

    compared = 0
    for source, target in itertools.product(layouts, repeat=2):
        try:
            before = results(source, target)
        except RuntimeError:
            continue  # what DTensor refuses
        with wt.planned() as counts:
            now = results(source, target)
        assert not counts.left, (source, target, counts)
        assert now[3] == before[3], (source, target, now[3], before[3])
        for number in (2,) if any(kinds(target)) else (0, 1, 2):
            assert torch.equal(now[number], before[number]), (source, target, number, now[number], before[number])
        compared += source != target and counts.redistributions > 0
    assert compared > 150, compared
    dist.barrier()  # rows of the mesh are independent, and one may be ready before
    dist.destroy_process_group()
    """)


def test_a_gather_that_is_merged_is_right(torchrun_text):  # noqa: F811
    torchrun_text(4, PROGRAM.replace("BACKEND", '"gloo"') + """
    mesh._flatten()
    split = distribute_tensor(torch.arange(5), mesh, [Shard(0), Shard(0)])
    gathered = lambda: split.redistribute(mesh, [Replicate(), Replicate()]).to_local().tolist()
    wrong = gathered()
    with wt.planned(compare=True) as counts:
        assert gathered() == [0, 1, 2, 3, 4]
        assert split.full_tensor().tolist() == [0, 1, 2, 3, 4]
    assert gathered() == wrong  # the block is over
    assert counts.redistributions == 2 and counts.weft.moves == 2 and counts.dtensor.moves == 2, counts
    assert 0 < counts.weft.bytes <= counts.dtensor.bytes, counts
    dist.barrier()  # rows of the mesh are independent, and one may be ready before
    dist.destroy_process_group()
    """)


def test_both_planners_are_counted(torchrun_text):  # noqa: F811
    torchrun_text(4, PROGRAM.replace("BACKEND", '"weft"') + """
    x = distribute_tensor(torch.arange(4096.0).reshape(64, 64), mesh, [Shard(0), Replicate()])
    with wt.planned() as counts:
        x.redistribute(mesh, [Replicate(), Shard(1)])
        assert counts.dtensor is None and counts.redistributions == 1, counts
        with wt.planned(compare=True) as inner:
            x.redistribute(mesh, [Replicate(), Shard(1)])
        x.redistribute(mesh, [Replicate(), Replicate()])
    # DTensor gathers whole rows and takes a part of them; the part alone is half of that
    assert inner.redistributions == 1 and inner.dtensor == (1, 8192) and inner.weft == (1, 4096), inner
    assert counts.redistributions == 3 and counts.weft == (3, 2 * 4096 + 8192), counts
    assert "3 redistributions" in repr(counts)
    try:
        with wt.planned():
            raise KeyError
    except KeyError: pass
    from torch.distributed.tensor import _redistribute
    assert _redistribute.redistribute_local_tensor.__module__ == _redistribute.__name__
    dist.barrier()  # rows of the mesh are independent, and one may be ready before
    dist.destroy_process_group()
    """)


def test_models_train_alike(torchrun_text):  # noqa: F811
    torchrun_text(4, PROGRAM.replace("BACKEND", '"weft"') + """
    def train():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(16, 8), nn.LayerNorm(8), nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 16))
        parallelize_module(model, mesh["tp"], {
            "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "1": SequenceParallel(),
            "2": ColwiseParallel(input_layouts=Shard(1)), "4": RowwiseParallel(output_layouts=Replicate())})
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for step in range(3):
            loss = model((torch.arange(8).reshape(2, 4) + step) % 16).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    before = train()
    with wt.planned() as counts:
        now = train()
    torch.testing.assert_close(torch.tensor(now), torch.tensor(before), rtol=1e-6, atol=0)
    assert counts.redistributions > 9, counts
    assert set(counts.left) == {"weft has no placement for _MaskPartial"}, counts  # of the embedding
    dist.barrier()  # rows of the mesh are independent, and one may be ready before
    dist.destroy_process_group()
    """)


def test_ranks_outside_of_the_mesh_and_traced_programs(torchrun_text):  # noqa: F811
    torchrun_text(4, PROGRAM.replace("BACKEND", '"weft"') + """
    few = dist.device_mesh.DeviceMesh("cpu", [0, 2])
    x = DTensor.from_local(torch.full((2,), float(rank)), few, [Shard(0)], run_check=False)
    with wt.planned() as counts:
        y = x.redistribute(few, [Replicate()]).to_local()
        assert y.tolist() == ([0, 0, 2, 2] if rank in (0, 2) else []) or rank in (1, 3), y
        assert counts.redistributions == (rank in (0, 2)), counts

        @torch.compile(backend="aot_eager", fullgraph=True)
        def gather(tensor):
            return tensor.redistribute(mesh, [Replicate(), Replicate()]).to_local() * 2

        split = distribute_tensor(torch.arange(10.0), mesh, [Shard(0), Shard(0)])
        assert gather(split).tolist() == [2.0 * value for value in range(10)]
    dist.barrier()  # rows of the mesh are independent, and one may be ready before
    dist.destroy_process_group()
    """)
