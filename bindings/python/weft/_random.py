"""The state of a generator of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensors import Tensor


class Random:
    """A seed and an offset.  Each draw uses one offset, so draws of the same state have the same bits.

    Ranks that draw the same tensor must have the same state.
    """

    __slots__ = {"seed": "The seed, from 0 to 2**64 - 1.", "offset": "How many draws there were."}

    def __init__(self, seed: int, offset: int = 0) -> None:
        for name, number in (("seed", seed), ("offset", offset)):
            if not 0 <= number < 2**64:
                raise ValueError(f"{name} is {number}; expected a number from 0 to 2**64 - 1")
        self.seed = seed
        self.offset = offset

    def __repr__(self) -> str:
        return f"weft.Random({self.seed}, {self.offset})"

    def _draw(self, method: Callable[..., None], *parameters: Any) -> None:
        method(self.seed, self.offset, *parameters)
        self.offset += 1

    def uniform(self, tensor: Tensor, low: float = 0.0, high: float = 1.0) -> None:
        """low <= x < high."""
        self._draw(tensor.uniform, low, high)

    def normal(self, tensor: Tensor, mean: float = 0.0, deviation: float = 1.0) -> None:
        """The normal distribution."""
        self._draw(tensor.normal, mean, deviation)

    def truncated_normal(
        self, tensor: Tensor, mean: float = 0.0, deviation: float = 1.0, low: float = -2.0, high: float = 2.0
    ) -> None:
        """The normal distribution within limits."""
        self._draw(tensor.truncated_normal, mean, deviation, low, high)

    def bernoulli(self, tensor: Tensor, probability: float = 0.5) -> None:
        """1 with a probability, else 0."""
        self._draw(tensor.bernoulli, probability)

    def dropout(self, tensor: Tensor, probability: float = 0.5) -> None:
        """A mask for dropout."""
        self._draw(tensor.dropout, probability)

    def integers(self, tensor: Tensor, low: int = 0, high: int = 2) -> None:
        """low <= x < high."""
        self._draw(tensor.integers, low, high)
