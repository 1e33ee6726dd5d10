"""The contexts of a job of torch.distributed: one for each kind of memory that its tensors are in."""

import gc
import os

import torch
import torch.distributed as dist

import weft
from weft_autoload import DEVICE_BACKENDS

_job = None  # (rank, size, limit in seconds) of the first group; its store is not kept, so that its port becomes free
_made = {}  # by the type of a device of torch
_limits = {}  # of those, in seconds; a context of weft.init is not listed
_count = 0  # of contexts that were made, the same on all ranks


def exchange_through(store, rank, size, name):
    """An all-gather over a store of torch, for weft.Context."""
    calls = 0

    def exchange(mine):
        nonlocal calls
        calls += 1
        store.set(f"weft/{name}/{calls}/{rank}", mine)
        return b"".join(bytes(store.get(f"weft/{name}/{calls}/{other}")) for other in range(size))

    return exchange


def join(rank, size, limit):
    """Note the job whose contexts are made when they are used.  Those of a job before it that differs are closed."""
    global _job
    for kind, context in list(_made.items()):
        if not context.closed and _place(context) == (rank, size):
            continue
        if not context.closed:
            _close(context)
        del _made[kind]
        _limits.pop(kind, None)
    _job = (rank, size, limit)


def limit_of(device):
    """The seconds of the limit of a context that was made for a device; None if they are not known."""
    return _limits.get(device.type)


def joined():
    """Whether the job of torch.distributed is known."""
    return _job is not None and not _is_over()


def _place(context):
    return context.rank, context.size


def _close(context):
    """Close the context of a job that is over.  Groups that were destroyed may wait for the garbage collector."""
    rank, size = _place(context)
    gc.collect()
    try:
        context.close()
    except RuntimeError as error:
        raise RuntimeError(
            "torch.distributed was initialized again with another rank or size, but objects use the context of the job "
            f"before, in which this process was rank {rank} of {size}: {error}") from error


def _is_over():
    """Whether torch.distributed was initialized again, with another rank or size than the job that is known has."""
    group = dist.group.WORLD
    return _job is not None and group is not None and (group.rank(), group.size()) != _job[:2]


def _backend_for(kind):
    """What carries tensors on a kind of device; None: what WEFT_BACKEND names."""
    setting = os.environ.get("WEFT_BACKEND", "auto")
    names = setting.split(",")
    if kind == "cpu" and (setting == "auto" or setting.startswith("^") or any(n in DEVICE_BACKENDS for n in names)):
        return "gloo-cpu"
    return None


def _serves(context, kind):
    """Whether a context works in the memory of a kind of device.  ROCm's devices are "cuda" in PyTorch."""
    return context is not None and not context.closed and (context.kind == "cpu") == (kind == "cpu")


def _make(kind, store):
    global _count
    _count += 1
    rank, size, limit = _job
    options = {"rank": rank, "size": size, "timeout": limit}
    if kind != "cpu":
        options["device"] = torch.cuda.current_device()
    if size > 1:
        store = dist.distributed_c10d._get_default_store() if store is None else store
        options["exchange"] = exchange_through(store, rank, size, _count)
    context = weft.Context(_backend_for(kind), **options)
    if not _serves(context, kind):
        backend = context.backend
        context.close()
        raise weft.UnsupportedError(
            f"the tensor is on a {kind} device, but WEFT_BACKEND has chosen {backend}, which cannot use its memory")
    return context


def _join_default():
    group = dist.group.WORLD
    join(group.rank(), group.size(), 0)


def context_for(device, store=None):
    """The context for tensors on a device.  If it is not yet there, all ranks of the job make it: collective.

    It is made through a store of torch; without one, through that of the default group.
    """
    kind = torch.device(device).type
    if _is_over():
        _join_default()
    context = _made.get(kind)
    if _serves(context, kind):
        return context
    if not _serves(weft._current, kind):
        if _job is None and not dist.is_initialized():
            return weft.current()
        if _job is None:
            _join_default()
        context = _make(kind, store)
        weft._adopt(context)
        _limits[kind] = _job[2]
    else:
        context = weft._current
        if _job is not None and _place(context) != _job[:2]:
            raise RuntimeError(
                f"the current context is {context}, but torch.distributed has rank {_job[0]} of {_job[1]}")
    _made[kind] = context
    return context
