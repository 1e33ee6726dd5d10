"""Reductions of torch.distributed, as weft names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.distributed as dist

REDUCTIONS = {
    dist.ReduceOp.SUM: "sum", dist.ReduceOp.PRODUCT: "prod", dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max", dist.ReduceOp.AVG: "avg", dist.ReduceOp.BAND: "band",
    dist.ReduceOp.BOR: "bor", dist.ReduceOp.BXOR: "bxor",
}  # fmt: skip
SUM = dist.ReduceOp.SUM
LOCAL: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {  # of two tensors
    "sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum, "band": torch.bitwise_and,
    "bor": torch.bitwise_or, "bxor": torch.bitwise_xor,
}  # fmt: skip


def reduction_of(op: dist.ReduceOp | dist.ReduceOp.RedOpType) -> str:
    """The name of a reduction of torch."""
    kind = cast("dist.ReduceOp.RedOpType", getattr(op, "op", op))
    if kind == SUM:
        return "sum"
    name = REDUCTIONS.get(kind)
    if name is None:
        raise ValueError(f"weft has no reduction {op}")
    return name
