"""Redistribution as an operator of PyTorch, with a fake kernel and its gradient."""

from collections.abc import Sequence
from operator import index
from typing import Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement

import weft

from ._contexts import context_for
from ._dtensor import check_dtensor, to_mesh, to_placements, to_spec, wrap_local


@torch.library.custom_op("weft::redistribute", mutates_args=())
def move_local(
    local: torch.Tensor, source_mesh: str, source: str, target_mesh: str, target: str
) -> torch.Tensor:
    """This rank's shard in the layout `target`, from its shard in the layout `source`.  Collective."""
    begin, end = weft.spec(source, source_mesh), weft.spec(target, target_mesh)
    moved: torch.Tensor = weft._weft.move_array(context_for(local.device), local.detach().contiguous(), begin, end)
    return moved


def _rank() -> int:
    if dist.is_initialized():
        rank: int = dist.get_rank()
        return rank
    return weft._current.rank if weft._current is not None and not weft._current.closed else 0


@move_local.register_fake
def _(local: torch.Tensor, source_mesh: str, source: str, target_mesh: str, target: str) -> torch.Tensor:
    return local.new_empty(weft.spec(target, target_mesh).shard(_rank())[0])


class _Saved(Protocol):
    """What the forward pass leaves to the backward pass: source mesh, source, target mesh and target."""

    layouts: tuple[str, str, str, str]


def _setup(ctx: _Saved, inputs: tuple[torch.Tensor, str, str, str, str], output: torch.Tensor) -> None:
    ctx.layouts = inputs[1:]


def _backward(ctx: _Saved, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
    source_mesh, source, target_mesh, target = ctx.layouts
    arrives = weft.spec(target, target_mesh).gradient()
    back = weft.spec(source, source_mesh).gradient_of_move(arrives)
    moved = move_local(gradient.contiguous(), target_mesh, str(arrives), source_mesh, str(back))
    return moved, None, None, None, None


move_local.register_autograd(_backward, setup_context=_setup)


def redistribute(
    tensor: DTensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None
) -> DTensor:
    """A DTensor in other placements, also on another DeviceMesh.  weft moves the data.  Collective.

    The gradient is moved back; it is never partial, as with DTensor.redistribute.
    """
    check_dtensor(tensor)
    device_mesh = tensor.device_mesh if device_mesh is None else device_mesh
    placements = tensor.placements if placements is None else placements
    source = to_spec(tensor)
    target = source.with_(to_placements(placements), mesh=to_mesh(device_mesh))
    local = move_local(
        tensor.to_local(), str(source.mesh), str(source), str(target.mesh), str(target))  # fmt: skip
    return wrap_local(local, device_mesh, target)


def full_tensor(tensor: DTensor, ranks: Sequence[int] | None = None) -> torch.Tensor:
    """The whole of a DTensor on every rank of its mesh, or on `ranks` of the job.  Collective.

    Ranks that are neither in the mesh nor in `ranks` need not call it.
    """
    source = to_spec(tensor)
    if ranks is not None:
        try:
            ranks = list(map(index, ranks))
        except TypeError:
            raise TypeError(f"ranks must be a list of ranks of the job, such as [0], not {ranks!r}") from None
    mesh = source.mesh if ranks is None else weft.mesh(f"{len(ranks)}@{','.join(map(str, ranks))}")
    placements = ",".join("R" for _ in mesh.shape)
    target = source.with_(placements, mesh=mesh)
    whole: torch.Tensor = move_local(tensor.to_local(), str(source.mesh), str(source), str(mesh), str(target))
    return whole
