"""Gradients clipped by their norm, or by value (docs/training/clip.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from . import _weft
from ._comm import Comm
from ._tensors import Tensor


def clip_gradient_norm(
    context: _weft.Context, tensors: Sequence[Tensor | None], max_norm: float, p: float = 2.0,
    nonfinite: Literal["scale", "keep", "zero"] = "scale", nonfinite_is_error: bool = False,
    reduce_partials: bool = False, stages: Comm | None = None, stream: Any = None,
) -> float:  # fmt: skip
    """Scale gradients so that their norm is at most max_norm, and return the norm before.  Waits.  Collective.

    p is the exponent of the norm, above 0; math.inf: the largest element.
    """
    if not p > 0:
        raise ValueError(f"p is {p}; expected a number above 0, or math.inf")
    return context._clip_gradient_norm(
        tensors, max_norm, stream, p=p, nonfinite=nonfinite, nonfinite_is_error=nonfinite_is_error,
        reduce_partials=reduce_partials, stages=stages)


def clip_gradient_value(
    context: _weft.Context, tensors: Sequence[Tensor | None], max_value: float, stream: Any = None
) -> None:
    """Limit every element to -max_value ... max_value."""
    context._clip_gradient_value(tensors, max_value, stream)
