"""The contexts of a job of torch.distributed: one for each kind of memory that its tensors are in."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TypeAlias, TypeGuard, cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

import weft
from weft_autoload import DEVICE_BACKENDS

Job: TypeAlias = tuple[int, int, float]  # rank, size, limit in seconds

_job: Job | None = None  # of the first group; its store is not kept, so that its port becomes free
_made: dict[str, weft.Context] = {}  # by the type of a device of torch
_limits: dict[str, float] = {}  # of those, in seconds; a context of weft.init is not listed
_count = 0  # of contexts that were made, the same on all ranks


def exchange_through(store: Store, rank: int, size: int, name: int) -> Callable[[bytes], bytes]:
    """An all-gather over a store of torch, for weft.Context."""
    calls = 0

    def exchange(mine: bytes) -> bytes:
        nonlocal calls
        calls += 1
        store.set(f"weft/{name}/{calls}/{rank}", cast(str, mine))  # PyTorch takes bytes, too
        return b"".join(bytes(store.get(f"weft/{name}/{calls}/{other}")) for other in range(size))

    return exchange


def join(rank: int, size: int, limit: float) -> Job:
    """Note the job whose contexts are made when they are used.  Those of a job before it that differs are closed."""
    global _job
    for kind, context in list(_made.items()):
        if not context.closed and _place(context) == (rank, size):
            _refuse_failed(context)
            continue
        if not context.closed:
            _close(context)
        del _made[kind]
        _limits.pop(kind, None)
    _job = (rank, size, limit)
    return _job


def _refuse_failed(context: weft.Context) -> None:
    """The error of a job that failed: its ranks cannot go on, and they need not all know it."""
    try:
        weft.Comm(context).check()
    except weft.UnsupportedError:  # of simulated ranks
        pass
    except weft.Error as error:
        error.args = (f"the job failed before: {error}; start its processes again",)
        raise


def limit_of(device: torch.device) -> float | None:
    """The seconds of the limit of a context that was made for a device; None if they are not known."""
    return _limits.get(device.type)


def joined() -> bool:
    """Whether the job of torch.distributed is known."""
    return _job is not None and not _is_over()


def _place(context: weft.Context) -> tuple[int, int]:
    return context.rank, context.size


def _close(context: weft.Context) -> None:
    """Close the context of a job that is over.  Groups that were destroyed may wait for the garbage collector."""
    rank, size = _place(context)
    gc.collect()
    try:
        context.close()
    except RuntimeError as error:
        raise RuntimeError(
            "torch.distributed was initialized again with another rank or size, but objects use the context of the job "
            f"before, in which this process was rank {rank} of {size}: {error}") from error


def _is_over() -> bool:
    """Whether torch.distributed was initialized again, with another rank or size than the job that is known has."""
    group = dist.group.WORLD
    return _job is not None and group is not None and (group.rank(), group.size()) != _job[:2]


def _backend_for(kind: str) -> str | None:
    """What carries tensors on a kind of device; None: what WEFT_BACKEND names."""
    setting = os.environ.get("WEFT_BACKEND", "auto")
    names = setting.split(",")
    if kind == "cpu" and (setting == "auto" or setting.startswith("^") or any(n in DEVICE_BACKENDS for n in names)):
        return "gloo-cpu"
    return None


def _serves(context: weft.Context | None, kind: str) -> TypeGuard[weft.Context]:
    """Whether a context works in the memory of a kind of device.  ROCm's devices are "cuda" in PyTorch."""
    return context is not None and not context.closed and (context.kind == "cpu") == (kind == "cpu")


def _make(kind: str, store: Store | None, job: Job) -> weft.Context:
    global _count
    _count += 1
    rank, size, limit = job
    device = -1 if kind == "cpu" else torch.cuda.current_device()
    exchange = None
    if size > 1:
        store = dist.distributed_c10d._get_default_store() if store is None else store
        exchange = exchange_through(store, rank, size, _count)
    context = weft.Context(_backend_for(kind), rank=rank, size=size, device=device, timeout=limit, exchange=exchange)
    if not _serves(context, kind):
        backend = context.backend
        context.close()
        raise weft.UnsupportedError(
            f"the tensor is on a {kind} device, but WEFT_BACKEND has chosen {backend}, which cannot use its memory")
    return context


def _join_default() -> Job:
    return join(dist.get_rank(), dist.get_world_size(), 0)


def context_for(device: torch.device | str | int, store: Store | None = None) -> weft.Context:
    """The context for tensors on a device.  If it is not yet there, all ranks of the job make it: collective.

    It is made through a store of torch; without one, through that of the default group.
    """
    kind = torch.device(device).type
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"weft has no context for devices of the type {kind!r}; tensors must be on cpu or cuda")
    if _is_over():
        _join_default()
    context = _made.get(kind)
    if _serves(context, kind):
        return context
    if not _serves(weft._current, kind):
        if _job is None and not dist.is_initialized():
            return weft.current()
        job = _join_default() if _job is None else _job
        context = _make(kind, store, job)
        weft._adopt(context)
        _limits[kind] = job[2]
    else:
        context = weft._current
        if _job is not None and _place(context) != _job[:2]:
            raise RuntimeError(
                f"the current context is {context}, but torch.distributed has rank {_job[0]} of {_job[1]}")
    _made[kind] = context
    return context
