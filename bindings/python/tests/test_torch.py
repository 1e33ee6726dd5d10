"""torch.distributed over weft: the same programs as over Gloo, with the same results."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

PROGRAMS = pathlib.Path(__file__).parent / "torch_programs.py"
NAMES = re.search(r"PROGRAMS = \[(.*?)\]", PROGRAMS.read_text(), re.DOTALL)[1].replace(",", " ").split()
RANKS = 3


def torchrun(ranks, *command, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *command],
        env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def torchrun_text(tmp_path):
    """Run the text of a program as several ranks."""

    def run(ranks, text, **variables):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(text))
        torchrun(ranks, program, **variables)

    return run


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder with what all programs keep, over Gloo and over weft."""
    folder = tmp_path_factory.mktemp("results")
    failures = {}
    for backend in ("weft", "gloo"):
        try:
            torchrun(RANKS, PROGRAMS, backend, folder / backend)
        except AssertionError as error:
            failures[backend] = error
    return folder, failures


@pytest.mark.parametrize("name", NAMES)
def test_results_equal_gloo(results, name):
    folder, failures = results
    for rank in range(RANKS):
        kept = []
        for backend in ("weft", "gloo"):
            path = folder / f"{backend}.{name}.{rank}"
            assert path.exists(), failures.get(backend)
            kept.append(torch.load(path))
        assert len(kept[0]) == len(kept[1]) > 0 or name == "groups"
        for a, b in zip(*kept, strict=True):
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


def test_tensors_whose_memory_has_other_elements_are_refused():
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    import weft

    imaginary = torch.ones(3, dtype=torch.complex64) * 1j
    with FakeTensorMode():
        fake = torch.ones(3)
    with weft.Context() as context:
        for tensor, text in (
            (imaginary.conj(), r"is_conj\(\) is true"),
            (torch._neg_view(torch.ones(3)), r"is_neg\(\) is true"),
            (fake, "the array has no memory, as a DTensor or a fake tensor"),
            (torch.eye(3).to_sparse(), "^the tensor cannot be shared: [^\n]*$"),
            (torch.ones(3, device="meta"), "^the tensor cannot be shared: [^\n]*$"),
        ):
            with pytest.raises(ValueError, match=text):
                weft.redistribute(tensor, "1", "S(0)", "R", context=context)
        with pytest.raises(ValueError, match="is_conj"):
            weft.redistribute(imaginary, "1", "S(0)", "R", out=imaginary.conj(), context=context)
        moved = weft.redistribute(imaginary.conj().resolve_conj(), "1", "S(0)", "R", context=context)
        assert torch.equal(moved, -imaginary)


def test_dtensors_are_converted_and_moved(torchrun_text):
    torchrun_text(4, """
        import torch, torch.distributed as dist, weft
        import weft.torch as wt
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
        from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
        from torch.distributed.tensor.placement_types import _StridedShard
        from weft.torch._redistribute import move_local

        dist.init_process_group("weft")
        rank = dist.get_rank()
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert str(wt.to_mesh(mesh)) == "dp=2,tp=2" and str(wt.to_mesh(mesh["tp"])) in ("tp=2", "tp=2@2-3")
        torch.manual_seed(0)
        whole = torch.randn(7, 6)

        # every layout to every layout, equal to DTensor's own
        layouts = [[Shard(0), Shard(1)], [Replicate(), Shard(0)], [Shard(0), Shard(0)], [Shard(1), Replicate()]]
        for source in layouts:
            x = distribute_tensor(whole, mesh, source)
            assert wt.from_spec(wt.to_spec(x)) == x.placements
            assert torch.equal(wt.full_tensor(x), whole)
            for target in layouts:
                y = wt.redistribute(x, mesh, target)
                assert torch.equal(y.to_local(), x.redistribute(mesh, target).to_local()), (source, target)

        # partial and strided placements
        p = DTensor.from_local(torch.full((4, 4), float(rank)), mesh, [Partial(), Replicate()], run_check=False)
        assert torch.equal(wt.redistribute(p, mesh, [Shard(0), Replicate()]).full_tensor(), p.full_tensor())
        strided = weft.spec("f32[8,6] S(0)[1],S(0)[0]", "dp=2,tp=2")
        assert wt.from_spec(strided) == (_StridedShard(0, split_factor=2), Shard(0))
        assert wt.to_placements(wt.from_spec(strided)) == "SS(0,2),S(0)"
        assert wt.to_placements([Shard(0), Shard(0)], ((0, (1, 0)),)) == "S(0)[1],S(0)[0]"

        # another mesh, memory that is shared
        line = init_device_mesh("cpu", (4,))
        x = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
        for wrong, text in ((lambda: wt.redistribute(x, mesh, Shard(1)), "placements must be a list, one for each axis"),
                            (lambda: wt.redistribute(x, "tp=2", [Shard(1)]), "device_mesh must be a DeviceMesh, not 'tp=2'"),
                            (lambda: wt.full_tensor(x, 1), "ranks must be a list of ranks of the job, such as [0], not 1")):
            try: wrong()
            except TypeError as error: assert text in str(error), error
            else: raise AssertionError(text)
        moved = wt.redistribute(x, line, [Shard(1)])
        assert torch.equal(moved.full_tensor(), whole)
        some = wt.full_tensor(x, ranks=[0, 3])
        assert torch.equal(some, whole) if rank in (0, 3) else some.numel() == 0
        tensor = wt.from_dtensor(x)
        tensor.fill(3)
        assert (x.to_local() == 3).all()
        back = wt.to_dtensor(tensor, mesh)
        assert back.to_local().data_ptr() == x.to_local().data_ptr() and back.placements == x.placements

        # gradients equal those of DTensor
        for source, target in (([Shard(0), Replicate()], [Replicate(), Replicate()]),
                               ([Replicate(), Replicate()], [Shard(1), Shard(0)])):
            gradients = []
            for move in (wt.redistribute, lambda t, m, p: t.redistribute(m, p)):
                leaf = distribute_tensor(whole, mesh, source).requires_grad_()
                (move(leaf, mesh, target) * 2).sum().full_tensor().backward()
                gradients.append(leaf.grad.full_tensor())
            assert torch.equal(*gradients) and gradients[0].abs().sum() == 2 * whole.numel()

        # the fake kernel has the shape of the shard
        with FakeTensorMode():
            fake = move_local(torch.empty(7, 6), "4", "f32[7,6] R", "4", "f32[7,6] S(0)")
            assert tuple(fake.shape) == ((1 if rank == 3 else 2), 6)
        del tensor, back
        dist.destroy_process_group()
    """)


def test_profiles_name_collectives(torchrun_text):
    torchrun_text(1, """
        import datetime, torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("weft", timeout=datetime.timedelta(seconds=50))
        with torch.profiler.profile() as profile:
            dist.all_reduce(torch.ones(4))
        assert any(event.name == "weft:all_reduce" for event in profile.events())
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        assert backend.supports_coalescing and not backend.supports_splitting and backend.name() == "weft"
        dist.destroy_process_group()
    """)


def test_groups_with_all_ranks_have_messages_of_their_own(torchrun_text):
    torchrun_text(2, """
        import gc, torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("weft")
        rank, groups = dist.get_rank(), [None, dist.new_group([0, 1]), dist.new_group([0, 1])]
        if rank == 0:
            for number, group in enumerate(groups):
                dist.isend(torch.full((1 << 20,), float(number)), 1, group=group)  # nobody keeps tensor and work
                gc.collect()
                junk = [torch.full((1 << 20,), -1.0) for _ in range(4)]
        else:
            for number, group in reversed(list(enumerate(groups))):
                x = torch.empty(1 << 20)
                dist.recv(x, 0, group=group)
                assert (x == number).all(), (number, x)
        dist.barrier()
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        for work, _ in backend._under_way:
            work.wait()  # rank 1 may have a message before rank 0 knows that
        x = torch.ones(1)
        (dist.isend if rank == 0 else dist.irecv)(x, 1 - rank).wait()
        assert len(backend._under_way) == 1  # those before are over
        dist.destroy_process_group()
    """)


def test_parameters_that_are_not_contiguous(torchrun_text):
    torchrun_text(2, """
        import torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("weft")
        rank = dist.get_rank()
        weight = torch.nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last).weight
        assert not weight.is_contiguous() and weight.requires_grad
        with torch.no_grad():
            weight.fill_(rank + 1)
        dist.broadcast(weight, 0)
        assert (weight == 1).all() and weight.is_leaf and weight.grad_fn is None
        dist.all_reduce(weight)
        assert (weight == 2).all()
        dist.reduce(weight, 1)
        assert (weight == 2 + 2 * rank).all()
        dist.all_gather([weight, torch.empty(4, 3, 2, 2)], torch.full((4, 3, 2, 2), float(rank + 5)))
        assert (weight == 5).all() and weight.is_leaf
        if rank == 0:
            dist.send(weight + 1, 1)
        else:
            dist.recv(weight, 0)
            assert (weight == 6).all()
        dist.destroy_process_group()
    """)


def test_coalesced_calls_are_nested(torchrun_text):
    torchrun_text(2, """
        import torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("weft")
        backend, device = dist.group.WORLD._get_backend(torch.device("cpu")), torch.device("cpu")
        x, y, z = torch.ones(3), torch.ones(4), torch.ones(2, 2).t()
        backend.start_coalescing(device)
        dist.all_reduce(x)
        backend.start_coalescing(device)
        dist.all_reduce(y)
        backend.end_coalescing(device)
        dist.all_reduce(z)
        backend.end_coalescing(device)
        assert all((tensor == 2).all() for tensor in (x, y, z))
        dist.all_reduce(x)
        assert (x == 4).all()
        dist.destroy_process_group()
    """)


def test_a_job_after_another(torchrun_text):
    torchrun_text(2, """
        import torch, torch.distributed as dist, weft
        import weft.torch as wt

        def reduce():
            x = torch.ones(3)
            dist.all_reduce(x)
            return x[0].item()

        dist.init_process_group("weft")
        rank = dist.get_rank()
        assert reduce() == 2
        dist.destroy_process_group()

        kept = weft.Stream(wt.context_for("cpu"))
        try: dist.init_process_group("weft", store=dist.HashStore(), rank=0, world_size=1)
        except RuntimeError as error: assert f"rank {rank} of 2" in str(error), error
        else: raise AssertionError("no error")
        del kept
        dist.init_process_group("weft", store=dist.HashStore(), rank=0, world_size=1)
        assert reduce() == 1 and wt.context_for("cpu").size == 1
        dist.destroy_process_group()
    """)


@pytest.mark.parametrize("backend", ["gloo", "weft"])
def test_the_port_of_a_store_is_free_after_the_job(backend):
    program = textwrap.dedent(f"""
        import gc, socket, torch, torch.distributed as dist
        import weft.torch

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        dist.init_process_group("{backend}", init_method=f"tcp://127.0.0.1:{{port}}", rank=0, world_size=1)
        dist.all_reduce(torch.ones(3))
        group = dist.new_group([0])
        dist.all_reduce(torch.ones(3), group=group, async_op=True).wait()
        socket.create_connection(("127.0.0.1", port)).close()
        dist.destroy_process_group()
        del group
        gc.collect()
        try: socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError: pass
        else: raise AssertionError("the store listens")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_devices_are_registered_if_they_can_be_served(torchrun_text):
    torchrun_text(2, """
        import torch, torch.distributed as dist
        from torch.distributed import _shard
        from torch.distributed._shard.sharded_tensor import rand
        from torch.distributed._shard.sharding_spec import ChunkShardingSpec
        import weft.torch

        dist.init_process_group("weft")
        served = ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]
        assert dist.Backend.backend_capability["weft"] == served
        assert [device.type for device in dist.group.WORLD._device_types] == served
        if served == ["cpu"]:
            sharded = rand(ChunkShardingSpec(dim=0, placements=["rank:0/cpu", "rank:1/cpu"]), 6, 2)
            whole = torch.empty(6, 2) if dist.get_rank() == 0 else None
            sharded.gather(0, whole)
            assert whole is None or torch.equal(whole[:3], sharded.local_shards()[0].tensor)
        dist.destroy_process_group()
    """, WEFT_BACKEND="auto")


AUTOLOAD = """
    import sys, torch, torch.distributed as dist
    assert not any(name.partition(".")[0] == "weft" for name in sys.modules)
    dist.init_process_group("weft", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(2))
"""


@pytest.mark.parametrize(("switch", "text"), [("1", None), ("0", "weft")])
def test_the_backend_needs_no_import(tmp_path, switch, text):
    """PyTorch finds the backend by the entry point of the installed package; here one is written beside the package."""
    entry = re.search(r'"torch.backends"]\nweft = "(.*)"', (PROGRAMS.parents[3] / "pyproject.toml").read_text())[1]
    folder = tmp_path / "other-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[torch.backends]\nweft = {entry}\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(AUTOLOAD)],
        env={**os.environ, "PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": switch},
        capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert (done.returncode == 0) if text is None else (done.returncode != 0 and text in done.stderr), done.stderr


DEVICES = """
    import torch, torch.distributed as dist, weft
    import weft.torch as wt

    torch.cuda.current_device = lambda: 0  # the device is simulated: PyTorch does not see it
    dist.init_process_group("weft")
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD._get_backend(torch.device("cpu"))

    class Array:
        def __init__(self, tensor): self._tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__
"""


def test_each_kind_of_device_has_a_context(torchrun_text, device):
    torchrun_text(2, DEVICES + """
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2, 2] and weft.current().backend == "gloo-cpu"
    pair = dist.new_group([1, 0])
    for one in (group, pair._get_backend(torch.device("cpu"))):
        comm = one._comm(torch.device("cuda", 0))
        assert comm.context.backend == "nccl" and wt.context_for("cuda") is comm.context is not wt.context_for("cpu")
        assert comm is one._comm(torch.device("cuda", 0)) and comm.world_rank(comm.rank) == rank
        tensor = weft.Tensor(comm.context, weft.spec("f32[4] R", weft.mesh("2")))
        tensor.fill(rank + 1)
        comm.all_reduce(Array(tensor))
        out = bytearray(16)
        tensor.to_host(out)
        assert memoryview(out).cast("f").tolist() == [3.0] * 4
        del tensor, comm
    dist.destroy_process_group()
    """, STANDIN_DEVICES="1", WEFT_SHARE_GPU="1", **device)


def test_a_backend_of_the_cpu_refuses_devices(torchrun_text):
    torchrun_text(2, DEVICES + """
    try: group._comm(torch.device("cuda", 0))
    except weft.UnsupportedError as error: assert "WEFT_BACKEND has chosen gloo-cpu" in str(error), error
    else: raise AssertionError("no error")
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2, 2]
    dist.destroy_process_group()
    """, WEFT_BACKEND="gloo-cpu")
