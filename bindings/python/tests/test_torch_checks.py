"""What Gloo refuses, weft refuses before anything moves; what Gloo does, weft does with the same result."""

import pathlib

import pytest

torch = pytest.importorskip("torch")

from test_torch import torchrun, torchrun_text  # noqa: E402, F401

PROGRAM = pathlib.Path(__file__).parent / "torch_checks.py"
BACKENDS = ("weft", "gloo") if hasattr(torch.distributed, "set_timeout") else ("weft",)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By backend and rank, what became of each call."""
    folder = tmp_path_factory.mktemp("outcomes")
    for backend in BACKENDS:
        torchrun(2, PROGRAM, backend, folder / backend)
    return {(backend, rank): torch.load(folder / f"{backend}.{rank}") for backend in BACKENDS for rank in (0, 1)}


@pytest.mark.skipif("gloo" not in BACKENDS, reason="Gloo of PyTorch 2.11 ends with a segmentation fault in such calls")
def test_outcomes_equal_gloo(outcomes):
    for rank in (0, 1):
        for name, theirs in outcomes["gloo", rank].items():
            ours = outcomes["weft", rank][name]
            assert isinstance(ours, str) == isinstance(theirs, str), (name, ours, theirs)
            if not isinstance(ours, str):
                assert len(ours) == len(theirs) and all(map(torch.equal, ours, theirs)), (name, ours, theirs)


def test_a_refusal_has_both_sides(outcomes):
    refused = {name: text for name, text in outcomes["weft", 1].items() if isinstance(text, str)}
    by_torch = ("Could not run 'c10d::", "Invalid usage of tensors with different dtypes")
    for name, text in refused.items():
        assert text.startswith(("ValueError: weft: ", "UnsupportedError: weft: ")) or any(t in text for t in by_torch), text
        assert "; " in text or ", but " in text or any(t in text for t in by_torch), (name, text)
    assert "output 0 has 0 elements, but the input of rank 0 has 1" in refused["all_gather_empty"]
    assert "output is float32[5] on cpu, but input is float32[2] on cpu" in refused["all_gather_into_tensor_large"]
    assert "rootTensor is 2, but the call has 2 tensors" in refused["broadcast_third"]
    assert len(refused) > 50


def test_sparse_tensors_are_refused(outcomes):
    texts = {name: text for name, text in outcomes["weft", 0].items() if name.startswith("sparse_")}
    assert len(texts) == 13 and all("Error: " in text for text in texts.values()), texts
    assert "layout torch.sparse_coo, but weft moves dense tensors; pass to_dense()" in texts["sparse_two"]


def test_forms_that_gloo_does_not_have(torchrun_text):  # noqa: F811
    """PyTorch documents them, or NCCL has them: uneven lists, stacked tensors and coalesced calls of several dtypes."""
    torchrun_text(2, """
        import torch, torch.distributed as dist
        from torch._C._distributed_c10d import AllreduceCoalescedOptions
        import weft.torch

        dist.init_process_group("weft")
        rank, pg = dist.get_rank(), dist.group.WORLD
        parts = [torch.empty(1), torch.empty(2)]
        dist.all_gather(parts, torch.full((rank + 1,), rank + 5.0))
        assert parts[0].tolist() == [5] and parts[1].tolist() == [6, 6]
        for wrong in ([torch.empty(1), torch.empty(3)], [torch.empty(2), torch.empty(1)]):
            try: dist.all_gather(wrong, torch.full((rank + 1,), 1.0))
            except ValueError as error: assert "but the input of rank" in str(error), error
            else: raise AssertionError("no error")
        stacked, part = torch.empty(2, 3), torch.empty(3)
        dist.all_gather_into_tensor(stacked, torch.full((3,), float(rank)))
        assert stacked.tolist() == [[0, 0, 0], [1, 1, 1]]
        dist.reduce_scatter_tensor(part, stacked)
        assert part.tolist() == [2 * rank] * 3
        outs = [torch.empty(1 + rank), torch.empty(2 + rank)]
        dist.all_to_all(outs, [torch.ones(1 + rank), torch.ones(2 + rank)])
        assert all((out == 1).all() for out in outs)
        whole, wide = torch.ones(2), torch.ones(3, dtype=torch.float64)
        pg.allreduce_coalesced([whole, wide], AllreduceCoalescedOptions()).wait()
        assert whole.tolist() == [2, 2] and wide.tolist() == [2, 2, 2]
        dist.destroy_process_group()
    """)


def test_mistakes_are_told_what_to_pass():
    import weft.torch as wt

    with pytest.raises(TypeError, match=r"tensor must be a DTensor, not a Tensor; weft.redistribute\(tensor"):
        wt.redistribute(torch.ones(4), None, None)
    with pytest.raises(TypeError, match="tensor must be a DTensor"):
        wt.full_tensor(torch.ones(4))
    with pytest.raises(TypeError, match=r"such as Shard\(0\), not 'S\(1\)'"):
        wt.to_placements(["S(1)"])
    with pytest.raises(ValueError, match="no context for devices of the type 'xpu'; tensors must be on cpu or cuda"):
        wt.context_for("xpu")
