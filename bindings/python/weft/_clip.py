"""Gradients clipped by their norm, or by value (docs/training/clip.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from . import _weft
from ._comm import Comm
from ._tensors import Tensor


def clip_grad_norm(
    context: _weft.Context, tensors: Sequence[Tensor | None], max_norm: float, p: float = 2.0,
    nonfinite: Literal["scale", "keep", "zero", "error"] = "scale", reduce_partials: bool = False,
    stages: Comm | None = None, stream: Any = None,
) -> float:  # fmt: skip
    """Scale gradients so that their norm is at most max_norm, and return the norm before.  Waits.  Collective."""
    return context.clip_grad_norm_wait(
        tensors, max_norm, stream, p=p, nonfinite=nonfinite, reduce_partials=reduce_partials, stages=stages)


def clip_grad_value(
    context: _weft.Context, tensors: Sequence[Tensor | None], most: float, stream: Any = None
) -> None:
    """Limit every element to -most ... most."""
    context.clip_grad_value(tensors, most, stream)
