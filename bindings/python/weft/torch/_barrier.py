"""A barrier whose error names the ranks that did not come, with the words of Gloo."""

from __future__ import annotations

import math
import time
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import Store

import weft
from weft._errors import error_of

LONGEST = 365 * 86400.0  # seconds
LATER = 10.0  # seconds that other ranks wait longer than rank 0, so that they get its words


def _failed(text: str) -> weft.Error:
    return error_of(-8, "ERR_TIMEOUT", text)


def _wait(store: Store, key: str, end: float) -> bytes | None:
    """The value of a key; None if it is not there in time."""
    left = max(end - time.monotonic(), 0.001)
    try:
        store.wait([key], timedelta(seconds=left))
    except dist.DistStoreError:
        return None
    return bytes(store.get(key))


def _collect(store: Store, place: str, size: int, end: float, all_ranks: bool) -> list[int]:
    """Rank 0: the ranks that have not come; without `all_ranks` the first of them alone."""
    missing = []
    for rank in range(1, size):
        if _wait(store, f"{place}/{rank}", end) is None:
            missing.append(rank)
            if not all_ranks:
                break
        else:
            store.delete_key(f"{place}/{rank}")
    return missing


def wait_for_all(place: str, rank: int, size: int, seconds: float, all_ranks: bool) -> None:
    """Rank 0 waits for each rank and then tells them what it found; `place` is a prefix of keys for this call alone."""
    store = dist.distributed_c10d._get_default_store()
    seconds = LONGEST if seconds == math.inf else seconds
    end, milliseconds = time.monotonic() + seconds, round(seconds * 1000)
    if rank > 0:
        store.set(f"{place}/{rank}", "")
        told = _wait(store, f"{place}/{rank}/told", end + min(seconds, LATER))
        if told is None or told != b"":
            reason = f"it told: {told.decode()}" if told else f"it told nothing in {milliseconds} ms"
            raise _failed(
                f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for rank 0; {reason}")
        store.delete_key(f"{place}/{rank}/told")
        return
    missing = _collect(store, place, size, end, all_ranks)
    names = ", ".join(map(str, missing))
    text = f"[Rank 0]: Rank{'s' if len(missing) > 1 else ''} {names} failed to pass monitoredBarrier in {milliseconds} ms"
    for other in range(1, size):
        store.set(f"{place}/{other}/told", text if missing else "")
    if missing:
        raise _failed(text)
