"""The contexts of a job of torch.distributed: one for each kind of memory that its tensors are in."""

import os

import torch
import torch.distributed as dist

import weft

DEVICE_BACKENDS = ("nccl", "rccl", "nvshmem")

_job = None  # (store, rank, size, timeout) of the first group
_made = {}  # by the type of a device of torch
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


def join(store, rank, size, timeout):
    """Note the job whose contexts are made when they are used."""
    global _job
    _job = (store, rank, size, timeout)


def joined():
    """Whether the job of torch.distributed is known."""
    return _job is not None


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


def _make(kind):
    global _count
    _count += 1
    store, rank, size, timeout = _job
    options = {"rank": rank, "size": size, "timeout": timeout}
    if kind != "cpu":
        options["device"] = torch.cuda.current_device()
    if size > 1:
        options["exchange"] = exchange_through(store, rank, size, _count)
    context = weft.Context(_backend_for(kind), **options)
    if not _serves(context, kind):
        backend = context.backend
        context.close()
        raise weft.UnsupportedError(
            f"the tensor is on a {kind} device, but WEFT_BACKEND has chosen {backend}, which cannot use its memory")
    return context


def context_for(device):
    """The context for tensors on a device.  If it is not yet there, all ranks of the job make it: collective."""
    kind = torch.device(device).type
    context = _made.get(kind)
    if _serves(context, kind):
        return context
    if not _serves(weft._current, kind):
        if _job is None and not dist.is_initialized():
            return weft.current()
        if _job is None:
            group = dist.group.WORLD
            store = dist.distributed_c10d._get_default_store()
            join(store, group.rank(), group.size(), 0)
        context = _make(kind)
        weft._adopt(context)
    else:
        context = weft._current
    _made[kind] = context
    return context
