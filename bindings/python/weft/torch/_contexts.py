"""The contexts of a job of torch.distributed: one for each kind of memory that its tensors are in."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
import json
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
_place_in_store = ""  # the prefix of the keys of this job, the same on all ranks
_made: dict[str, weft.Context] = {}  # by the type of a device of torch
_limits: dict[str, float] = {}  # of those, in seconds; a context of weft.init is not listed
_identities: dict[str, str] = {}  # of those, equal on the ranks of one context and of no other
_count = 0  # of contexts that were made in this job, the same on all ranks


def _all_of(store: Store, key: str, rank: int, size: int, mine: bytes) -> list[bytes]:
    """The bytes of all ranks, through a store of torch."""
    store.set(f"{key}/{rank}", cast(str, mine))  # PyTorch takes bytes, too
    return [bytes(store.get(f"{key}/{other}")) for other in range(size)]


def join(rank: int, size: int, limit: float, store: Store) -> Job:
    """Note the job whose contexts are made when they are used.  Collective.

    Contexts of the job before serve on if all ranks have them and none knows of a failure.  The others are closed.
    """
    global _job, _place_in_store, _count
    for kind, context in list(_made.items()):
        if context.closed or _place(context) != (rank, size):
            _drop(kind)
    _job, _place_in_store, _count = (rank, size, limit), "", 0
    if size > 1:
        # The store counts, because a process that was started again does not know how many jobs there were.
        _place_in_store = f"weft/{size}/{store.add(f'weft/{size}/{rank}/jobs', 1)}"
        kept = _all_of(store, f"{_place_in_store}/kept", rank, size, json.dumps(_kept(), sort_keys=True).encode())
        for kind in [kind for kind in _made if not _agree(kind, [json.loads(one) for one in kept])]:
            _drop(kind)
    else:
        for kind, cause in _kept().items():
            if not _agree(kind, [{kind: cause}]):
                _drop(kind)
    return _job


_PROGRAMS = "of weft.init"  # the identity of a context that the program has made
_FAILED = "failed: "  # the identity of one that failed begins so


def _kept() -> dict[str, str]:
    """By kind, the identity of a context of the job before, or why it cannot serve on."""
    kept = {}
    for kind, context in _made.items():
        kept[kind] = _identities.get(kind, _PROGRAMS)
        try:
            weft.Comm(context).check()
        except weft.UnsupportedError:  # of simulated ranks
            pass
        except weft.Error as error:
            kept[kind] = f"{_FAILED}{error}"
    return kept


def _agree(kind: str, kept: list[dict[str, str]]) -> bool:
    """Whether the context of a kind of device serves on.  One that the program has made and that failed is an error."""
    found = [one.get(kind, "") for one in kept]
    failed = [text.removeprefix(_FAILED) for text in found if text.startswith(_FAILED)]
    if failed and (kind not in _identities or _PROGRAMS in found):
        raise RuntimeError(
            f"the context of weft.init failed before: {failed[0]}; close it (weft.current().close()) before the next job begins")
    return not failed and all(text == found[0] for text in found)


def _drop(kind: str) -> None:
    """Close a context that does not serve on.  One that failed may still be in use, as by a kept exception."""
    context = _made[kind]
    if not context.closed:
        has_failed = _kept()[kind].startswith(_FAILED)
        with contextlib.suppress(*([RuntimeError] if has_failed else [])):
            _close(context)
    weft._forget(context)
    del _made[kind]
    _limits.pop(kind, None)
    _identities.pop(kind, None)


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
    identity = hashlib.sha256()
    exchange = None
    if size > 1:
        through = _store_of_job() if store is None else store
        place = f"{_place_in_store}/{kind}/{_count}"
        calls = itertools.count(1)

        def exchange(mine: bytes) -> bytes:
            joined = b"".join(_all_of(through, f"{place}/{next(calls)}", rank, size, mine))
            identity.update(joined)  # it has a secret of the job
            return joined

    context = weft.Context(_backend_for(kind), rank=rank, size=size, device=device, timeout=limit, exchange=exchange)
    if not _serves(context, kind):
        backend = context.backend
        context.close()
        raise weft.UnsupportedError(
            f"the tensor is on a {kind} device, but WEFT_BACKEND has chosen {backend}, which cannot use its memory")
    _identities[kind] = identity.hexdigest()
    return context


def _store_of_job() -> Store:
    return dist.distributed_c10d._get_default_store()


def _join_default() -> Job:
    return join(dist.get_rank(), dist.get_world_size(), 0, _store_of_job())


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
