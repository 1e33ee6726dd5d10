"""Redistributions of DTensor that weft plans and carries out, in programs that do not know it."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, cast

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import Partial, _api, _dispatch, _redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.experimental import _tp_transform
from torch.distributed.tensor.placement_types import Placement

import weft

from ._contexts import context_for
from ._dtensor import to_mesh, to_placements
from ._dtypes import NAMES

CACHED = 4096  # pairs of layouts that are kept


class _Function(Protocol):
    """redistribute_local_tensor of DTensor, through which all its redistributions go."""

    def __call__(self, local_tensor: torch.Tensor, current_spec: DTensorSpec, target_spec: DTensorSpec, **options: Any) -> torch.Tensor: ...


class Count(NamedTuple):
    """What a planner needs for the redistributions of a block."""

    moves: int
    bytes: int


class _Pair(NamedTuple):
    """Two layouts between which weft moves, and what both planners need."""

    source: weft.Spec
    target: weft.Spec
    weft: Count
    dtensor: Count


class Planned:
    """What has happened in a block of `weft.torch.planned` so far, on this rank.

    redistributions is the number of those that weft has carried out, and left has the reasons of the others, with their
    numbers.  weft and dtensor tell how many collectives and local exchanges that communicate (moves) the plans of weft and of
    DTensor have, and how many bytes the busiest rank receives in them.  dtensor is None unless the block compares.
    """

    def __init__(self, compare: bool) -> None:
        self.redistributions = 0
        self.left: Counter[str] = Counter()
        self.weft = Count(0, 0)
        self.dtensor = Count(0, 0) if compare else None
        self._lock = threading.Lock()  # gradients of devices are computed on threads of their own

    def _add(self, pair: _Pair) -> None:
        with self._lock:
            self.redistributions += 1
            self.weft = Count(*map(sum, zip(self.weft, pair.weft)))
            if self.dtensor is not None:
                self.dtensor = Count(*map(sum, zip(self.dtensor, pair.dtensor)))

    def _leave(self, reason: str) -> None:
        with self._lock:
            self.left[reason] += 1

    def __repr__(self) -> str:
        return (
            f"<weft.torch.Planned: {self.redistributions} redistributions, weft {self.weft}, DTensor {self.dtensor}, "
            f"left to DTensor {dict(self.left)}>")


# ---- what DTensor would do ----


def _received(size: int, source: Placement, target: Placement, shape: tuple[int, ...], item: int) -> int:
    """The bytes that a rank receives in a transform of DTensor, which pads shards to the largest one."""
    whole = math.prod(shape) * item
    if source.is_partial():
        to: int | None = getattr(target, "dim", None)
        if to is None:
            return 2 * (size - 1) * whole // size
        rows = -(-shape[to] // size) * size
        return (size - 1) * (whole // shape[to] * rows if shape[to] else 0) // size
    dim: int | None = getattr(source, "dim", None)
    if dim is None or target.is_partial() or not shape[dim]:
        return 0  # it takes a part of what it has
    part = whole // shape[dim] * -(-shape[dim] // size)
    other = getattr(target, "dim", None)
    is_exchange = other is not None and source.is_shard() and target.is_shard()
    return (size - 1) * (part // size if is_exchange else part)


def _of_dtensor(current: DTensorSpec, target: DTensorSpec, item: int) -> Count:
    """The collectives of DTensor's plan, merged where it merges them."""
    mesh = current.mesh
    plan = _redistribute._gen_transform_infos(current, target, None)
    merge = getattr(_redistribute, "_optimize_transform_infos", None)  # not in PyTorch 2.11
    if merge is not None:
        plan = merge(plan, mesh, current.placements, target.placements)
    moves = received = 0
    for info in plan:
        size = getattr(info, "mesh", mesh).size(info.mesh_dim)
        begin, end = info.src_dst_placements
        taken = _received(size, begin, end, tuple(map(int, info.logical_shape)), item) if size > 1 else 0
        moves, received = moves + (taken > 0), received + taken
    return Count(moves, received)


# ---- what weft does ----


def _of_weft(plan: weft.Plan) -> Count:
    received = [plan.measure(step)[1] for step in range(plan.step_count)]
    return Count(sum(number > 0 for number in received), plan.bytes_received_max)


def _refusal(local: torch.Tensor, current: DTensorSpec, target: DTensorSpec) -> str | None:
    """Why DTensor itself carries out a redistribution.  All ranks of the mesh get the same answer."""
    if type(local) not in (torch.Tensor, torch.nn.Parameter):
        return f"the shard is a {type(local).__name__}"
    if local.dtype not in NAMES:
        return f"weft has no dtype for {local.dtype}"
    if local.device.type not in ("cpu", "cuda"):
        return f"the shard is on {local.device.type}"
    if dist.get_backend() in ("fake", "threaded"):
        return f"the process group is {dist.get_backend()}"
    if current.mesh != target.mesh:
        return "the meshes differ"
    for placement in (*current.placements, *target.placements):
        if isinstance(placement, Partial) and type(placement) is not Partial:
            return f"weft has no placement for {type(placement).__name__}"
    return None


_pairs: dict[tuple[DTensorSpec, DTensorSpec, torch.dtype, bool], _Pair | str] = {}


def _spec(current: DTensorSpec, dtype: str, mesh: weft.Mesh) -> weft.Spec:
    order = getattr(current, "shard_order", None)
    text = to_placements(current.placements, order)
    return weft.Spec(f"{dtype}[{','.join(map(str, current.shape))}] {text}", mesh)


def _find(local: torch.Tensor, current: DTensorSpec, target: DTensorSpec, compare: bool) -> _Pair | str:
    """The layouts, or the reason why weft does not move between them."""
    try:
        mesh, dtype = to_mesh(current.mesh), NAMES[local.dtype]
        source, end = _spec(current, dtype, mesh), _spec(target, dtype, mesh)
        needs = _of_weft(weft.Plan(source, end))
    except (weft.UnsupportedError, weft.InvalidError, weft.ParseError) as error:
        return str(error)
    return _Pair(source, end, needs, _of_dtensor(current, target, local.element_size()) if compare else Count(0, 0))


def _pair_of(local: torch.Tensor, current: DTensorSpec, target: DTensorSpec, compare: bool) -> _Pair | str:
    key = (current, target, local.dtype, compare)
    found = _pairs.get(key)
    if found is None:
        if len(_pairs) >= CACHED:
            _pairs.clear()
        found = _pairs[key] = _find(local, current, target, compare)
    return found


_blocks: list[Planned] = []  # that are open, in all threads
_of_torch = cast(_Function, _redistribute.redistribute_local_tensor)
_USERS = (_redistribute, _dispatch, _api, _tp_transform)  # the modules that have it by its name


def _move(local_tensor: torch.Tensor, current_spec: DTensorSpec, target_spec: DTensorSpec, **options: Any) -> torch.Tensor:
    """As redistribute_local_tensor; the result is complete also if the caller would wait later."""
    blocks = tuple(_blocks)
    if current_spec.mesh == target_spec.mesh and current_spec.mesh.get_coordinate() is None:
        return local_tensor  # this rank is not in the mesh
    if isinstance(local_tensor, AsyncCollectiveTensor):
        local_tensor = local_tensor.wait()
    reason = _refusal(local_tensor, current_spec, target_spec)
    if reason is None:
        pair = _pair_of(local_tensor, current_spec, target_spec, any(block.dtensor is not None for block in blocks))
        if not isinstance(pair, str):
            for block in blocks:
                block._add(pair)
            if pair.source == pair.target:
                return local_tensor
            given = local_tensor.detach().resolve_conj().resolve_neg().contiguous()
            moved: torch.Tensor = weft._weft.move_array(context_for(given.device), given, pair.source, pair.target)
            return moved
        reason = pair
    for block in blocks:
        block._leave(reason)
    return _of_torch(local_tensor, current_spec, target_spec, **options)


_lock = threading.Lock()


@contextlib.contextmanager
def planned(compare: bool = False) -> Iterator[Planned]:
    """Inside of the block, weft plans and carries out what DTensor redistributes, forward and backward.  Collective.

    That holds for all threads of the process.  DTensor itself carries out what weft does not have: placements of special
    operators, traced and fake tensors.  The value of the block counts; with compare, also what DTensor's plans would need.
    """
    counts = Planned(compare)
    with _lock:
        _blocks.append(counts)
        _install(_move)
    try:
        yield counts
    finally:
        with _lock:
            _blocks.remove(counts)
            if not _blocks:
                _install(_of_torch)


def _install(function: _Function) -> None:
    for module in _USERS:
        setattr(module, "redistribute_local_tensor", function)  # noqa: B010
