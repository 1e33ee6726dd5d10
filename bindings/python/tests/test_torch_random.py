"""Random calls of torch.distributed over weft, with the results of Gloo.

WEFT_TEST_CASES is the number of calls, and WEFT_TEST_SEED another seed than 0.
"""

import os
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch_random  # noqa: E402
from test_torch import torchrun  # noqa: E402

SEED = int(os.environ.get("WEFT_TEST_SEED", "0"))
CASES = int(os.environ.get("WEFT_TEST_CASES", "40"))
PROGRAM = pathlib.Path(torch_random.__file__)


def equal(ours, theirs):
    return len(ours) == len(theirs) and all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(ours, theirs))


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_calls_equal_gloo(tmp_path, ranks):
    for backend in ("gloo", "weft"):
        torchrun(ranks, PROGRAM, backend, tmp_path / backend, str(SEED), str(CASES), OMP_NUM_THREADS="1")
    cases = torch_random.draw_all(SEED, CASES, ranks)
    for rank in range(ranks):
        theirs, ours = (torch.load(tmp_path / f"{backend}.{rank}") for backend in ("gloo", "weft"))
        for number, case in enumerate(cases):
            for backend, kept in (("Gloo", theirs), ("weft", ours)):
                assert not isinstance(kept[number], str), f"seed {SEED}, over {backend}: {kept[number]}"
            text = f"seed {SEED}, case {number} on rank {rank}: {case}: weft {ours[number]}, Gloo {theirs[number]}"
            assert equal(ours[number], theirs[number]), text


def test_splits_that_do_not_fit_are_refused(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch, torch.distributed as dist
import weft.torch

dist.init_process_group("weft")
for rows, splits, text in ((7, None, "7 rows, which do not divide equally among 2 ranks"),
                           (4, [1, 2], "expected 2 numbers with the sum 4"), (4, [4], "expected 2 numbers")):
    try: dist.all_to_all_single(torch.zeros(rows, 2), torch.zeros(rows, 2), splits, splits)
    except ValueError as error: assert text in str(error), error
    else: raise AssertionError(text)
rank, out = dist.get_rank(), torch.zeros(3)
splits = [None, None] if rank == 0 else [[1, 2], [1, 2]]
source = torch.arange(2.0 if rank == 0 else 3.0)
out = torch.zeros(2 if rank == 0 else 3)
dist.all_to_all_single(out, source, splits[0], splits[1])  # rank 0 has equal splits and states none
assert out.tolist() == ([0, 0] if rank == 0 else [1, 1, 2]), out
dist.destroy_process_group()
""")
    torchrun(2, program)
