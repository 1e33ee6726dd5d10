"""Tensors: a layout and this rank's memory."""

from __future__ import annotations

from typing import Any

from . import _weft
from ._layouts import Spec


@_weft.use
class Tensor(_weft.Tensor):
    """A layout and this rank's memory, which is not set.  Tensor.wrap makes one of an array.

    >>> import weft
    >>> context = weft.Context("gloo-cpu", simulated_ranks=2)
    >>> x = weft.Tensor(context, weft.spec("f32[4] S(0)", "2"))
    >>> x.fill(1)
    >>> x.move("R").compare(x)["equal"]
    True
    """

    __slots__ = ()

    def __new__(cls, context: _weft.Context, spec: Spec, name: str | None = None) -> Tensor:
        return _weft.Tensor.create(context, spec, name)

    def __repr__(self) -> str:
        return str(self)

    def move(self, target: Spec | str, stream: _weft._StreamLike = None) -> Tensor:
        """The tensor in another layout, a spec or placements.  Collective."""
        return super().move(self.spec.with_(target) if isinstance(target, str) else target, stream)

    def full(self, rank: int = -1, stream: _weft._StreamLike = None) -> Tensor:
        """The whole tensor on one rank, or on every rank.  Collective."""
        return super().full(rank, stream)

    def compare(self, other: Tensor, stream: _weft._StreamLike = None) -> dict[str, Any]:
        """How two tensors differ.  Collective."""
        found = super().compare(other, stream)
        return {**found, "index": found["index"][: self.spec.dims]}

    # Random numbers: draws with the same seed and offset have the same bits.

    def uniform(self, seed: int, offset: int = 0, low: float = 0, high: float = 1) -> None:  # type: ignore[override]
        """low <= x < high."""
        super().uniform((seed, offset), low, high)

    def normal(self, seed: int, offset: int = 0, mean: float = 0, deviation: float = 1) -> None:  # type: ignore[override]
        """The normal distribution."""
        super().normal((seed, offset), mean, deviation)

    def truncated_normal(  # type: ignore[override]
        self, seed: int, offset: int = 0, mean: float = 0, deviation: float = 1, low: float = -2, high: float = 2
    ) -> None:
        """The normal distribution within limits."""
        super().truncated_normal((seed, offset), mean, deviation, low, high)

    def bernoulli(self, seed: int, offset: int = 0, probability: float = 0.5) -> None:  # type: ignore[override]
        """1 with a probability, else 0."""
        super().bernoulli((seed, offset), probability)

    def dropout(self, seed: int, offset: int = 0, probability: float = 0.5) -> None:  # type: ignore[override]
        """A mask for dropout."""
        super().dropout((seed, offset), probability)

    def integers(self, seed: int, offset: int = 0, low: int = 0, high: int = 2) -> None:  # type: ignore[override]
        """low <= x < high."""
        super().integers((seed, offset), low, high)
