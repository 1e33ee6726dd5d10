"""What torch.distributed asks of a process group beside its calls, in the versions of PyTorch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol, cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, Work

from weft_autoload import devices

# PyTorch 2.11 has no constructor of Backend in Python.  A group is then a ProcessGroup itself.
IS_BACKEND = hasattr(Backend, "split")


class OldGroup(dist.ProcessGroup):
    """What PyTorch 2.11 asks of a process group that is not a Backend."""

    _name = _description = ""

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(kind) for kind in devices()]

    def _get_backend(self, device: torch.device) -> Backend:
        return cast(Backend, self)

    def start_coalescing(self, device: torch.device | None = None) -> None:
        raise NotImplementedError

    def end_coalescing(self, device: torch.device | None = None) -> Work:
        raise NotImplementedError

    def _start_coalescing(self, device: torch.device) -> None:
        self.start_coalescing(device)

    def _end_coalescing(self, device: torch.device) -> Work:
        return self.end_coalescing(device)


if TYPE_CHECKING or IS_BACKEND:
    from torch._C._distributed_c10d import Backend as Parent
else:
    Parent = OldGroup


class Base(Parent):
    """A group, and what it can do."""

    # Attributes, because the property of the base class asks the derived class, which is itself.
    supports_coalescing = True
    supports_splitting = supports_shrinking = supports_window = False
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = supports_time_estimate = False

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        return False


class Batch(Protocol):
    """torch.distributed.batch_isend_irecv."""

    def __call__(self, p2p_op_list: list[dist.P2POp]) -> list[Work]: ...


def coalesce_messages(batch_of_torch: Batch) -> Batch:
    """A batch_isend_irecv for PyTorch 2.11, which coalesces the messages of its own class of groups only."""

    @functools.wraps(batch_of_torch)
    def batch_isend_irecv(p2p_op_list: list[dist.P2POp]) -> list[Work]:
        group = p2p_op_list[0].group if p2p_op_list else None
        group = dist.group.WORLD if group is None else group
        if not isinstance(group, Base):
            return batch_of_torch(p2p_op_list)
        group.start_coalescing(p2p_op_list[0].tensor.device)
        try:
            batch_of_torch(p2p_op_list)
        finally:
            work = group.end_coalescing()
        return [work]

    return batch_isend_irecv
