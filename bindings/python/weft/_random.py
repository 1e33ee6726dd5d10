"""The state of a generator of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, SupportsIndex

from ._tensors import Tensor


class Random:
    """A seed and an offset.  Each draw uses one offset, so draws of the same state have the same bits.

    Ranks that draw the same tensor must have the same state.
    """

    __slots__ = {"seed": "The seed, from 0 to 2**64 - 1.", "offset": "How many draws there were."}

    def __init__(self, seed: int, offset: int = 0) -> None:
        for name, number in (("seed", seed), ("offset", offset)):
            if not isinstance(number, SupportsIndex):
                raise TypeError(f"{name} must be an int, not {number!r}")
            if not 0 <= number < 2**64:
                raise ValueError(f"{name} is {number}; expected a number from 0 to 2**64 - 1")
        self.seed = index(seed)
        self.offset = index(offset)

    def __repr__(self) -> str:
        return f"weft.Random({self.seed}, {self.offset})"

    def _draw(self, method: Callable[..., None], *parameters: Any) -> None:
        method(self.seed, self.offset, *parameters)
        self.offset += 1

    def uniform(self, tensor: Tensor, low: float = 0.0, high: float = 1.0) -> None:
        """Fill a tensor with numbers that are equally likely in low <= x < high."""
        self._draw(tensor.uniform, low, high)

    def normal(self, tensor: Tensor, mean: float = 0.0, deviation: float = 1.0) -> None:
        """Fill a tensor with numbers of the normal distribution with this mean and standard deviation."""
        self._draw(tensor.normal, mean, deviation)

    def truncated_normal(
        self, tensor: Tensor, mean: float = 0.0, deviation: float = 1.0, low: float = -2.0, high: float = 2.0
    ) -> None:
        """Fill a tensor with numbers of the normal distribution; no number is below low or above high."""
        self._draw(tensor.truncated_normal, mean, deviation, low, high)

    def bernoulli(self, tensor: Tensor, probability: float = 0.5) -> None:
        """Fill a tensor with ones, each with this probability, and zeros."""
        self._draw(tensor.bernoulli, probability)

    def dropout(self, tensor: Tensor, probability: float = 0.5) -> None:
        """Fill a tensor with the factors of a dropout: 0 with this probability, else 1 / (1 - probability)."""
        self._draw(tensor.dropout, probability)

    def integers(self, tensor: Tensor, low: int = 0, high: int = 2) -> None:
        """Fill a tensor with integers that are equally likely in low <= x < high."""
        self._draw(tensor.integers, low, high)
