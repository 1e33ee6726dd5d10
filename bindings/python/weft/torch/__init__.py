"""PyTorch over weft: torch.distributed.init_process_group("weft") works after this import."""

import torch.distributed

from ._group import ProcessGroup, create

torch.distributed.Backend.register_backend("weft", create, extended_api=True, devices=["cpu", "cuda"])

__all__ = ["ProcessGroup"]
