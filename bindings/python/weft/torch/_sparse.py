"""The sum of sparse tensors: ranks exchange their indices and values, and each adds them in the order of the ranks."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

TEXT = 248  # bytes of a description that ranks compare


class Gather(Protocol):
    """An all-gather that is complete at its end: this rank's tensor, the whole, and the elements of each rank."""

    def __call__(self, mine: Tensor, whole: Tensor, counts: list[int] | None) -> object: ...


def describe(tensor: Tensor) -> str:
    """What must be equal on all ranks."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}{list(tensor.shape)} with {tensor.sparse_dim()} sparse dimensions"


def _agree(tensor: Tensor, rank: int, size: int, gather: Gather) -> list[int]:
    """The number of entries of each rank, after a comparison of the descriptions."""
    mine = describe(tensor).encode()[:TEXT]
    words = torch.frombuffer(bytearray(mine.ljust(TEXT, b"\0")), dtype=torch.int64)
    known = torch.empty(size * (1 + words.numel()), dtype=torch.int64)
    gather(torch.cat([torch.tensor([tensor._nnz()]), words]), known, None)
    table = known.view(size, -1)
    for other in range(size):
        theirs = bytes(table[other, 1:].contiguous().view(torch.uint8).tolist()).rstrip(b"\0")
        if theirs != mine:
            raise ValueError(
                f"weft: all_reduce: the sparse tensor is {mine.decode()}, but that of rank {other} is {theirs.decode()}")
    counts: list[int] = table[:, 0].tolist()
    return counts


def _all(mine: Tensor, counts: list[int], gather: Gather) -> tuple[Tensor, ...]:
    """The rows of each rank."""
    row = math.prod(mine.shape[1:])
    whole = mine.new_empty(sum(counts), *mine.shape[1:])
    if whole.numel() > 0:
        gather(mine.reshape(-1), whole.view(-1), [count * row for count in counts])
    rows: tuple[Tensor, ...] = torch.split(whole, counts)
    return rows


def sum_of(tensor: Tensor, rank: int, size: int, gather: Gather) -> Tensor:
    """The sum over all ranks, coalesced, and the same bit by bit on each of them."""
    part = tensor.detach().coalesce()
    counts = _agree(part, rank, size, gather)
    indices = _all(part.indices().t().contiguous(), counts, gather)
    values = _all(part.values().contiguous(), counts, gather)
    total: Tensor | None = None
    for places, entries in zip(indices, values):
        term = torch.sparse_coo_tensor(places.t(), entries, part.shape, is_coalesced=True, check_invariants=False)
        total = term if total is None else total + term
    assert total is not None, "a group has a rank"
    return total
