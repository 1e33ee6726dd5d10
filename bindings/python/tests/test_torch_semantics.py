"""What a group over weft tells beside its results is what Gloo's tells, apart from the differences listed here."""

import json
import pathlib

import pytest

torch = pytest.importorskip("torch")

from test_torch import torchrun, torchrun_text  # noqa: E402, F401

PROGRAM = pathlib.Path(__file__).parent / "torch_semantics.py"
PARTS = ("all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter", "all_to_all_single")

# PyTorch keeps the work of a backend in Python inside of an object that forwards `wait` and `get_future` alone.
BRIDGE = {
    *(f"completion.{name}" for name in (*PARTS, "barrier", "send", "receive")),
    *(f"results.{name}" for name in (*PARTS, "barrier")), "sources.receive",
}  # fmt: skip
# weft's messages have one sender, and the bridge does not tell it.
ANY = {"receive_from_any", "receive_from_any_later"}
# As NCCL's: the output, not its parts.  Gloo has no future of a reduce-scatter.
FUTURES = {f"values_of_futures.{name}" for name in ("all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor")}

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C._distributed_c10d.Backend, "split"),
    reason="in PyTorch 2.11 a group of Python is no Backend")


def flat(outcomes):
    """Names with the kind of work -> outcomes."""
    found = {}
    for name, value in outcomes.items():
        found |= {f"{name}.{kind}": v for kind, v in value.items()} if isinstance(value, dict) else {name: value}
    return found


def is_error(outcome):
    return isinstance(outcome, str) and "Error: " in outcome


@pytest.fixture(scope="module", params=[2, 3])
def outcomes(request, tmp_path_factory):
    """By backend and rank, what became of each fact."""
    folder = tmp_path_factory.mktemp("semantics")
    for backend in ("weft", "gloo"):
        torchrun(request.param, PROGRAM, backend, folder / backend)
    return {
        (backend, rank): flat(json.loads((folder / f"{backend}.{rank}").read_text()))
        for backend in ("weft", "gloo") for rank in range(request.param)
    }  # fmt: skip


def test_facts_equal_gloo(outcomes):
    different = set()
    for (backend, rank), theirs in outcomes.items():
        if backend == "gloo":
            ours = outcomes["weft", rank]
            assert ours.keys() == theirs.keys()
            for name, fact in theirs.items():
                if is_error(fact) and is_error(ours[name]):
                    continue
                if name == "values_of_futures.reduce" and rank > 0:  # only the root has the result
                    continue
                if ours[name] != fact:
                    different.add(name)
    assert different == BRIDGE | ANY | FUTURES


def test_errors_tell_what_is_wrong(outcomes):
    ours = outcomes["weft", 0]
    assert ours["sparse_maximum"] == "UnsupportedError: weft: all_reduce: max of a sparse tensor is not defined, but the sum is"
    assert "the sparse tensor is float32[" in ours["sparse_sum_of_other_shapes"]
    size = 1 + max(rank for _, rank in outcomes)
    text = f"[Rank 0]: Rank {size - 1} failed to pass monitoredBarrier in 5000 ms"
    assert ours["monitored_barrier_without_a_rank"] == f"TimeoutError: {text}"
    if size == 3:
        text = f"Rank 1 successfully reached monitoredBarrier, but received errors while waiting for rank 0; it told: {text}"
        assert outcomes["weft", 1]["monitored_barrier_without_a_rank"] == f"TimeoutError: {text}"


@pytest.mark.parametrize("backend", ["gloo", "weft"])
def test_debug_mode_compares_the_calls_of_ranks(torchrun_text, backend):  # noqa: F811
    torchrun_text(2, f"""
        import gc, torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("{backend}")
        rank, x, parts = dist.get_rank(), torch.ones(3), [torch.empty(2), torch.empty(2)]
        pair = dist.new_group([0, 1])
        gc.collect()
        assert type(pair._get_backend(torch.device("cpu"))).__name__ == "_ProcessGroupWrapper"
        dist.all_reduce(x)
        dist.all_reduce(x, group=pair)
        dist.all_gather(parts, torch.full((2,), float(rank)), group=pair, async_op=True).wait()
        assert x.tolist() == [4, 4, 4] and parts[1].tolist() == [1, 1]
        assert pair._get_sequence_number_for_group() == 2
        dist.monitored_barrier(pair)
        try: dist.all_reduce(torch.ones(3 + rank), group=pair)
        except RuntimeError as error: assert "SequenceNumber=" in str(error) and "TensorShape=[4]" in str(error), error
        else: raise AssertionError("no error")
        dist.destroy_process_group()
    """, TORCH_DISTRIBUTED_DEBUG="DETAIL")


@pytest.mark.parametrize("backend", ["gloo", "weft"])
def test_a_group_after_rank_0_has_left(torchrun_text, tmp_path, backend):  # noqa: F811
    torchrun_text(3, f"""
        import os, pathlib, sys, time
        import torch, torch.distributed as dist
        import weft.torch

        dist.init_process_group("{backend}")
        rank, place = dist.get_rank(), pathlib.Path("{tmp_path}/process")
        dist.all_reduce(torch.ones(3))
        if rank == 0:
            dist.destroy_process_group()
            place.with_suffix(".new").write_text(str(os.getpid()))
            place.with_suffix(".new").rename(place)
            sys.exit()
        while not place.exists(): time.sleep(0.01)
        def runs(process):
            try: return pathlib.Path(f"/proc/{{process}}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except FileNotFoundError: return False
        while runs(place.read_text()): time.sleep(0.01)
        group, x = dist.new_group([1, 2], use_local_synchronization=True), torch.ones(1 << 18)
        dist.all_reduce(x, group=group)
        if rank == 1: dist.send(x + 1, 2, group=group)
        else: dist.recv(x, 1, group=group)
        assert (x == rank + 1).all(), x
        dist.monitored_barrier(group)
        dist.destroy_process_group()
    """)
