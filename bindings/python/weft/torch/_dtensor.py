"""Layouts of DTensor as layouts of weft, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement, _StridedShard
from torch.utils.dlpack import from_dlpack

import weft

from ._contexts import context_for

REDUCTIONS = {"sum": "sum", "avg": "avg", "product": "prod", "min": "min", "max": "max"}
PLACEMENT = re.compile(r"(?P<kind>R|SS|S|P)(?:\((?P<values>[^)]*)\))?(?:\[(?P<turn>\d+)\])?")


# ---- meshes ----


def to_mesh(device_mesh: DeviceMesh) -> weft.Mesh:
    """The mesh of weft with the ranks and the names of a DeviceMesh."""
    if not isinstance(device_mesh, DeviceMesh):
        raise TypeError(f"device_mesh must be a DeviceMesh, not {device_mesh!r}; to_device_mesh makes one of a mesh of weft")
    ranks = device_mesh.mesh
    names = device_mesh.mesh_dim_names
    sizes = "x".join(map(str, ranks.shape))
    if names:
        sizes = ",".join(f"{name}={size}" for name, size in zip(names, ranks.shape))
    return weft.mesh(f"{sizes}@{','.join(map(str, ranks.flatten().tolist()))}")


def to_device_mesh(mesh: weft.Mesh | str, device_type: str = "cpu") -> DeviceMesh:
    """The DeviceMesh with the ranks and the names of a mesh of weft.  Collective, as DeviceMesh is."""
    mesh = weft.mesh(mesh)
    names = mesh.names if any(mesh.names) else None
    return DeviceMesh(device_type, torch.tensor(mesh.ranks).reshape(mesh.shape), mesh_dim_names=names)


# ---- placements ----


def _turns(shard_order: Sequence[tuple[int, Sequence[int]]] | None) -> dict[tuple[int, int], int]:
    """(tensor dimension, mesh dimension) -> turn, for dimensions whose splits are not in the default order."""
    turns = {}
    for tensor_dim, mesh_dims in shard_order or ():
        if list(mesh_dims) != sorted(mesh_dims):
            turns.update({(tensor_dim, mesh_dim): turn for turn, mesh_dim in enumerate(mesh_dims)})
    return turns


def to_placements(
    placements: Sequence[Placement], shard_order: Sequence[tuple[int, Sequence[int]]] | None = None
) -> str:
    """The text of placements of DTensor, in the order in which `shard_order` splits.

    >>> from torch.distributed.tensor import Replicate, Shard
    >>> to_placements([Shard(0), Replicate()])
    'S(0),R'
    """
    if not isinstance(placements, Sequence) or isinstance(placements, str):
        raise TypeError(f"placements must be a list, one for each axis of the mesh, such as [Shard(0)], not {placements!r}")
    turns, texts = _turns(shard_order), []
    for axis, placement in enumerate(placements):
        if isinstance(placement, _StridedShard):
            texts.append(f"SS({placement.dim},{placement.split_factor})")
        elif isinstance(placement, Shard):
            turn = turns.get((placement.dim, axis))
            texts.append(f"S({placement.dim})" + ("" if turn is None else f"[{turn}]"))
        elif isinstance(placement, Replicate):
            texts.append("R")
        elif type(placement) is Partial and placement.reduce_op in REDUCTIONS:
            texts.append(f"P({REDUCTIONS[placement.reduce_op]})")
        elif not isinstance(placement, Placement):
            raise TypeError(f"placements must be those of torch.distributed.tensor, such as Shard(0), not {placement!r}")
        else:
            raise weft.UnsupportedError(f"weft has no placement for {placement}")
    return ",".join(texts)


def _placement_of(text: str) -> Placement:
    match = PLACEMENT.fullmatch(text)
    if match is None or match["turn"]:
        raise weft.UnsupportedError(f"DTensor has no placement for {text}")
    if match["kind"] == "R":
        return Replicate()
    if match["kind"] == "P":
        names = {name: other for other, name in REDUCTIONS.items()}
        if match["values"] not in names:
            raise weft.UnsupportedError(f"DTensor has no partial placement for {text}")
        return Partial(names[match["values"]])
    numbers = [int(number) for number in match["values"].split(",")]
    return Shard(numbers[0]) if match["kind"] == "S" else _StridedShard(numbers[0], split_factor=numbers[1])


def from_spec(spec: weft.Spec) -> tuple[Placement, ...]:
    """The placements of DTensor for a layout of weft.  Splits in another order become strided ones."""
    if "[" in spec.placements:
        spec = spec.order_to_strides()
    return tuple(_placement_of(text) for text in re.findall(r"[A-Z]+(?:\([^)]*\))?(?:\[\d+\])?", spec.placements))


# ---- tensors ----


def _text(dtype: str, shape: Sequence[int], placements: str) -> str:
    return f"{dtype}[{','.join(map(str, shape))}] {placements}"


def check_dtensor(tensor: object) -> None:
    """TypeError unless it is a DTensor."""
    if not isinstance(tensor, DTensor):
        raise TypeError(
            f"tensor must be a DTensor, not a {type(tensor).__name__}; weft.redistribute(tensor, mesh, source, target) moves the "
            "shard that a plain tensor has")


def to_spec(tensor: DTensor) -> weft.Spec:
    """The layout of a DTensor."""
    check_dtensor(tensor)
    dtype, _ = weft.describe(tensor.to_local().detach())
    order = getattr(tensor._spec, "shard_order", None)
    placements = to_placements(tensor.placements, order)
    return weft.Spec(_text(dtype, tensor.shape, placements), to_mesh(tensor.device_mesh))


def from_dtensor(tensor: DTensor, context: weft.Context | None = None, name: str | None = None) -> weft.Tensor:
    """A tensor of weft with the memory of a DTensor's shard."""
    local = tensor.to_local().detach()
    context = context_for(local.device) if context is None else context
    return weft.Tensor.wrap(context, to_spec(tensor), local, name)


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def wrap_local(local: torch.Tensor, device_mesh: DeviceMesh, spec: weft.Spec) -> DTensor:
    """The DTensor with this shard in a layout of weft."""
    return DTensor.from_local(
        local, device_mesh, from_spec(spec), run_check=False, shape=torch.Size(spec.shape),
        stride=_strides(spec.shape))  # fmt: skip


def to_dtensor(tensor: weft.Tensor, device_mesh: DeviceMesh | None = None) -> DTensor:
    """The DTensor with the memory of a tensor of weft.  Without a DeviceMesh, one is made: collective."""
    if device_mesh is None:
        device_mesh = to_device_mesh(tensor.spec.mesh, "cpu" if tensor.context.kind == "cpu" else "cuda")
    elif to_mesh(device_mesh).ranks != tensor.spec.mesh.ranks:
        raise ValueError(f"the tensor is on {tensor.spec.mesh}, but device_mesh is {to_mesh(device_mesh)}")
    return wrap_local(from_dlpack(tensor), device_mesh, tensor.spec)
