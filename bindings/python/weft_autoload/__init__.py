"""Makes torch.distributed.init_process_group("weft") work without an import of weft.torch.

PyTorch calls `register` at the end of its own import (the entry point group "torch.backends"), unless
TORCH_DEVICE_BACKEND_AUTOLOAD=0.  Nothing of weft is loaded before a group is made, and nothing here raises an exception.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Backend, _DistributedBackendOptions

DEVICE_BACKENDS = ("nccl", "rccl", "nvshmem")


def devices() -> list[str]:
    """The types of devices of torch whose tensors can be served here."""
    import torch

    names = os.environ.get("WEFT_BACKEND", "auto").split(",")
    is_for_hosts = not any(name == "auto" or name.startswith("^") or name in DEVICE_BACKENDS for name in names)
    return ["cpu"] if is_for_hosts or torch.cuda.device_count() == 0 else ["cpu", "cuda"]


def create(options: _DistributedBackendOptions, group_options: Backend.Options | None = None) -> Backend:
    """The backend of a new group, as torch.distributed calls it."""
    from weft.torch import _group

    return _group.create(options, group_options)


def register() -> None:
    """Register the backend "weft" of torch.distributed."""
    try:
        import torch.distributed

        if torch.distributed.is_available():
            torch.distributed.Backend.register_backend("weft", create, extended_api=True, devices=devices())
    except Exception:  # noqa: BLE001, S110 - the import of torch goes on; an import of weft.torch shows the error
        pass
