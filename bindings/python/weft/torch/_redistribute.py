"""Redistribution as an operator of PyTorch, with a fake kernel and its gradient."""

import torch
import torch.distributed as dist

import weft

from ._contexts import context_for
from ._dtensor import to_mesh, to_placements, to_spec, wrap_local


@torch.library.custom_op("weft::redistribute", mutates_args=())
def move_local(
    local: torch.Tensor, source_mesh: str, source: str, target_mesh: str, target: str
) -> torch.Tensor:
    """This rank's shard in the layout `target`, from its shard in the layout `source`.  Collective."""
    begin, end = weft.spec(source, source_mesh), weft.spec(target, target_mesh)
    return weft.move_array(context_for(local.device), local.detach().contiguous(), begin, end)


def _rank():
    if dist.is_initialized():
        return dist.get_rank()
    return weft._current.rank if weft._current is not None and not weft._current.closed else 0


@move_local.register_fake
def _(local, source_mesh, source, target_mesh, target):
    shape, _ = weft.spec(target, target_mesh).shard(_rank())
    return local.new_empty(shape)


def _setup(ctx, inputs, output):
    ctx.layouts = inputs[1:]


def _backward(ctx, gradient):
    source_mesh, source, target_mesh, target = ctx.layouts
    arrives = weft.spec(target, target_mesh).gradient()
    back = weft.spec(source, source_mesh).gradient_of_move(arrives)
    moved = move_local(gradient.contiguous(), target_mesh, str(arrives), source_mesh, str(back))
    return moved, None, None, None, None


move_local.register_autograd(_backward, setup_context=_setup)


def redistribute(tensor, device_mesh=None, placements=None):
    """A DTensor in other placements, also on another DeviceMesh.  weft moves the data.  Collective.

    The gradient is moved back; it is never partial, as with DTensor.redistribute.
    """
    device_mesh = tensor.device_mesh if device_mesh is None else device_mesh
    placements = tensor.placements if placements is None else placements
    source = to_spec(tensor)
    target = source.with_(to_placements(placements), mesh=to_mesh(device_mesh))
    local = move_local(
        tensor.to_local(), str(source.mesh), str(source), str(target.mesh), str(target))  # fmt: skip
    return wrap_local(local, device_mesh, target)


def full_tensor(tensor, ranks=None):
    """The whole of a DTensor on every rank of its mesh, or on `ranks` of the job.  Collective.

    Ranks that are neither in the mesh nor in `ranks` need not call it.
    """
    source = to_spec(tensor)
    mesh = source.mesh if ranks is None else weft.mesh(f"{len(ranks)}@{','.join(map(str, ranks))}")
    placements = ",".join("R" for _ in mesh.shape)
    target = source.with_(placements, mesh=mesh)
    return move_local(tensor.to_local(), str(source.mesh), str(source), str(mesh), str(target))
