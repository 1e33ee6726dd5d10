"""PyTorch over weft and beside it.

After this import, torch.distributed.init_process_group("weft") works.  Layouts of DTensor and of weft are
converted, and weft moves DTensors between them.
"""

import torch.distributed
from weft_autoload import create, devices

from ._dtensor import from_dtensor, from_spec, to_device_mesh, to_dtensor, to_mesh, to_placements, to_spec
from ._base import IS_BACKEND, coalesce_messages
from ._checkpoints import Reader, Writer
from ._contexts import context_for
from ._group import ProcessGroup
from ._planned import Planned, planned
from ._redistribute import full_tensor, redistribute

torch.distributed.Backend.register_backend("weft", create, extended_api=True, devices=devices())
if not IS_BACKEND:
    torch.distributed.batch_isend_irecv = coalesce_messages(torch.distributed.batch_isend_irecv)

__all__ = [
    "Planned", "ProcessGroup", "Reader", "Writer", "context_for", "from_dtensor", "from_spec", "full_tensor", "planned",
    "redistribute", "to_device_mesh", "to_dtensor", "to_mesh", "to_placements", "to_spec",
]  # fmt: skip
