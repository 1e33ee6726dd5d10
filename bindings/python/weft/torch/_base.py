"""What torch.distributed asks of a process group beside its calls, in the versions of PyTorch."""

import functools

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend

from weft_autoload import devices

# PyTorch 2.11 has no constructor of Backend in Python.  A group is then a ProcessGroup itself.
IS_BACKEND = hasattr(Backend, "split")


class OldGroup(dist.ProcessGroup):
    """What PyTorch 2.11 asks of a process group that is not a Backend."""

    _name = _description = ""

    def setGroupName(self, name):  # noqa: N802
        self._name = name

    def getGroupName(self):  # noqa: N802
        return self._name

    def setGroupDesc(self, description):  # noqa: N802
        self._description = description

    def getGroupDesc(self):  # noqa: N802
        return self._description

    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self):
        return [torch.device(kind) for kind in devices()]

    def _get_backend(self, device):
        return self

    def _start_coalescing(self, device):
        self.start_coalescing(device)

    def _end_coalescing(self, device):
        return self.end_coalescing(device)

    def _set_sequence_number_for_group(self):
        pass


class Base(Backend if IS_BACKEND else OldGroup):
    """A group, and what it can do."""

    # Attributes, because the property of the base class asks the derived class, which is itself.
    supports_coalescing = True
    supports_splitting = supports_shrinking = supports_window = False
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = supports_time_estimate = False

    def supports_tensor_alloc(self, device):
        return False


def coalesce_messages(batch_of_torch):
    """A batch_isend_irecv for PyTorch 2.11, which coalesces the messages of its own class of groups only."""

    @functools.wraps(batch_of_torch)
    def batch_isend_irecv(p2p_op_list):
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
