"""What the tensors of a call must be like, compared before anything moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch._C._distributed_c10d import BroadcastOptions, GatherOptions, ReduceOptions, ScatterOptions

import weft

_Value = TypeVar("_Value")


def _sides(call: str, one: str, other: str) -> str:
    return f"weft: {call}: {one}, but {other}"


def _describe(name: str, tensor: torch.Tensor) -> str:
    return f"{name} is {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)} on {tensor.device}"


def refuse_sparse(call: str, tensors: Sequence[torch.Tensor]) -> None:
    """weft moves dense memory."""
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise weft.UnsupportedError(
                f"weft: {call}: a tensor has the layout {tensor.layout}, but weft moves dense tensors; pass to_dense() of it, "
                "or its indices and values one after the other")


def alike(call: str, names: str, tensors: Sequence[torch.Tensor]) -> None:
    """Dense tensors of one dtype and on one kind of device.  `names` is a format of a number."""
    refuse_sparse(call, tensors)
    first = tensors[0]
    for number, tensor in enumerate(tensors):
        if tensor.dtype is not first.dtype or tensor.device.type != first.device.type:
            raise ValueError(_sides(call, _describe(names.format(0), first), _describe(names.format(number), tensor)))


def equal(call: str, names: str, tensors: Sequence[torch.Tensor], name: str, like: torch.Tensor) -> None:
    """Dense tensors with the dtype, the shape and the kind of device of another one."""
    refuse_sparse(call, [like, *tensors])
    for number, tensor in enumerate(tensors):
        if tensor.shape != like.shape or tensor.dtype is not like.dtype or tensor.device.type != like.device.type:
            raise ValueError(_sides(call, _describe(names.format(number), tensor), _describe(name, like)))


def one(call: str, name: str, values: Sequence[_Value]) -> _Value:
    """The only value of a list."""
    if len(values) != 1:
        raise ValueError(_sides(call, f"{name} has {len(values)} entries", "it must have 1"))
    return values[0]


def count(call: str, name: str, values: Sequence[object], expected: int, of: str) -> None:
    """A list with an entry for each of something."""
    if len(values) != expected:
        raise ValueError(_sides(call, f"{name} has {len(values)} entries", f"{of} {expected}"))


def root(
    call: str, options: BroadcastOptions | ReduceOptions | GatherOptions | ScatterOptions, size: int, tensors: int
) -> tuple[int, int]:
    """The rank and the tensor that options name as the root."""
    if not 0 <= options.rootRank < size:
        raise ValueError(_sides(call, f"the root is rank {options.rootRank}", f"the ranks of the group are 0 to {size - 1}"))
    number = getattr(options, "rootTensor", 0)
    if not 0 <= number < tensors:
        raise ValueError(_sides(call, f"rootTensor is {number}", f"the call has {tensors} tensors"))
    return options.rootRank, number


def joined(call: str, name: str, whole: torch.Tensor, part_name: str, part: torch.Tensor, size: int) -> None:
    """`whole` is `size` tensors like `part`, one after the other along dimension 0 or stacked in a new one.

    On a device the number of elements decides, as with NCCL.
    """
    refuse_sparse(call, [whole, part])
    fits = whole.numel() == size * part.numel() and whole.dtype is part.dtype and whole.device.type == part.device.type
    if fits and whole.device.type == "cpu":
        shape = tuple(part.shape)
        fits = tuple(whole.shape) in ((size, *shape), (size * shape[0], *shape[1:]) if shape else None)
    if not fits:
        raise ValueError(_sides(call, _describe(name, whole), f"{_describe(part_name, part)}; {name} must be {size} of it"))


def rows(call: str, name: str, tensor: torch.Tensor, splits: Sequence[int] | None, size: int) -> list[int]:
    """The elements of each rank's part of a tensor.  Without splits, the parts are equal."""
    if tensor.dim() == 0:
        raise ValueError(_sides(call, f"{name} has no dimensions", "its dimension 0 is split among the ranks"))
    length = tensor.shape[0]
    if not splits and length % size:
        raise ValueError(
            f"weft: {call}: {name} has {length} rows, which do not divide equally among {size} ranks; give the splits")
    splits = splits or [length // size] * size
    if len(splits) != size or sum(splits) != length or min(splits) < 0:
        raise ValueError(
            f"weft: {call}: the splits of {name} are {list(splits)}; expected {size} numbers with the sum {length}, none negative")
    row = math.prod(tensor.shape[1:])
    return [number * row for number in splits]


def overlapping(tensors: Sequence[torch.Tensor]) -> set[int]:
    """The numbers of tensors that share memory with another one of the list."""
    ranges = []
    for number, tensor in enumerate(tensors):
        if tensor.numel() > 0:
            span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
            ranges.append((tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size(), number))
    found: set[int] = set()
    cluster: list[int] = []
    end = 0
    for start, stop, number in sorted(ranges):
        cluster = [*cluster, number] if start < end else [number]
        if len(cluster) > 1:
            found.update(cluster)
        end = max(end, stop)
    return found
