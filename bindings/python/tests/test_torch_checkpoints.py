"""Checkpoints of torch.distributed.checkpoint in files of weft."""

import pytest

torch = pytest.importorskip("torch")

from test_torch import torchrun_text  # noqa: E402, F401

PROGRAM = """
    import json, os, pathlib, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, weft
    import weft.torch as wt
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    folder = os.environ["FOLDER"]
    dist.init_process_group("weft")
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole = {name: (torch.arange(35) % 13).reshape(7, 5).to(dtype)
             for name, dtype in {"f": torch.float32, "b": torch.bfloat16, "i": torch.int64, "m": torch.bool}.items()}

    def state(layout, fill):
        "Tensors of a layout, a plain one, a scalar, one without elements, and items that are no tensors."
        tensors = {name: distribute_tensor(x if fill else torch.zeros_like(x), mesh, layout) for name, x in whole.items()}
        return {**tensors, "plain": torch.arange(3.0) * fill, "scalar": torch.tensor(2.5 * fill), "none": torch.empty(0, 4),
                "step": 7 * fill, "nested": {"names": ["a", "b"] if fill else [], "weight": torch.ones(2, 2) * fill}}

    def check(found):
        for name, x in whole.items():
            assert torch.equal(found[name].full_tensor(), x), name
        assert found["plain"].tolist() == [0, 1, 2] and found["scalar"].item() == 2.5 and found["none"].shape == (0, 4)
        assert found["step"] == 7 and found["nested"]["names"] == ["a", "b"]
        assert found["nested"]["weight"].tolist() == [[1, 1], [1, 1]]
"""


@pytest.fixture
def run(torchrun_text, tmp_path):  # noqa: F811
    def of_text(text):
        torchrun_text(4, PROGRAM + text, FOLDER=str(tmp_path))

    return of_text


def test_what_writer_writes_all_read(run, tmp_path):
    run("""
    path = f"{folder}/step-1"
    dcp.save(state([Shard(0), Shard(1)], 1), storage_writer=wt.Writer(path))
    assert sorted(os.listdir(folder)) == ["program.py", "step-1"]
    for layout in ([Replicate(), Shard(0)], [Shard(1), Shard(0)], [Shard(0), Shard(0)]):
        found = state(layout, 0)
        dcp.load(found, storage_reader=wt.Reader(path))
        check(found)
    # weft itself
    for name, x in whole.items():
        box = torch.empty(3, 2, dtype=x.dtype)
        weft.Checkpoint(path).read_into(name, box, (2, 1), (3, 2))
        assert torch.equal(box, x[2:5, 1:3]), name
    # no checkpoint is overwritten by mistake
    try: dcp.save({"x": torch.ones(2)}, storage_writer=wt.Writer(path))
    except BaseException as error: assert "step-1 exists" in str(error), error
    else: raise AssertionError("no error")
    found = state([Shard(0), Shard(1)], 0)
    dcp.load(found, storage_reader=wt.Reader(path))
    check(found)
    dcp.save({"x": torch.ones(2)}, storage_writer=wt.Writer(path, replace=True))
    found = {"x": torch.zeros(2)}
    dcp.load(found, checkpoint_id=path, storage_reader=wt.Reader("nowhere"))
    assert found["x"].tolist() == [1, 1] and sorted(os.listdir(folder)) == ["program.py", "step-1"]
    try: dcp.load({"y": torch.zeros(2)}, storage_reader=wt.Reader(path))
    except BaseException as error: assert "y" in str(error), error
    else: raise AssertionError("no error")
    dist.destroy_process_group()
    """)


def test_reader_reads_what_pytorch_writes(run):
    run("""
    path = f"{folder}/theirs"
    dcp.save(state([Shard(0), Shard(1)], 1), checkpoint_id=path)
    for layout in ([Replicate(), Shard(0)], [Shard(1), Shard(0)]):
        found = state(layout, 0)
        dcp.load(found, storage_reader=wt.Reader(path))
        check(found)
    # a checkpoint that weft has written
    tensor = weft.Tensor(wt.context_for("cpu"), weft.spec("f32[6,4] S(0)", "4"))
    tensor.fill(3)
    weft.save(f"{folder}/x.safetensors", {"x": tensor})
    del tensor
    found = {"x": distribute_tensor(torch.zeros(6, 4).double(), mesh, [Shard(1), Replicate()])}  # another dtype
    dcp.load(found, storage_reader=wt.Reader(f"{folder}/x.safetensors"))
    assert (found["x"].full_tensor() == 3).all()
    dist.destroy_process_group()
    """)


def test_pytorch_reads_what_writer_writes(run):
    pytest.importorskip("safetensors")
    run("""
    path = f"{folder}/ours"
    tensors = {name: distribute_tensor(x, mesh, [Shard(0), Shard(1)]) for name, x in whole.items()}
    dcp.save(tensors, storage_writer=wt.Writer(path))
    found = {name: distribute_tensor(torch.zeros_like(x), mesh, [Shard(1), Replicate()]) for name, x in whole.items()}
    dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(path))
    for name, x in whole.items():
        assert torch.equal(found[name].full_tensor(), x), name
    dist.destroy_process_group()
    """)


def test_a_model_and_its_optimizer(run):
    run("""
    def made():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3))
        for layer in model: fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
        return model, torch.optim.AdamW(model.parameters(), 0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        loss = model(torch.full((2, 6), mesh.get_coordinate()[0] + 1.0)).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    model, optimizer = made()
    step(model, optimizer)
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    future = dcp.async_save(states, storage_writer=wt.Writer(f"{folder}/async"), process_group=dist.new_group())
    future.result()
    after = [step(model, optimizer) for _ in range(2)]
    model, optimizer = made()
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    dcp.load(states, storage_reader=wt.Reader(f"{folder}/async"))
    set_state_dict(model, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    assert [step(model, optimizer) for _ in range(2)] == after
    dist.destroy_process_group()
    """)
