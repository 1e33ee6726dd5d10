"""Generations of an elastic job (docs/elastic.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from ._context import Context
from ._errors import AbortedError, PeerError, TimeoutError


class Generation:
    """One generation of an elastic job, which weft.elastic makes.  The loop's body is a `with` block of it.

    number is 1 for the ranks that have joined the job, and increases.  step is the last step that is complete; the program
    sets it.  old_ranks has, for each rank, its number in the generation before; lost has the ranks that are left out, by
    their number before, and reasons says why.
    """

    __slots__ = ("lost", "number", "old_ranks", "reasons", "step", "_context", "_is_lost", "_next")

    def __init__(
        self, context: Context, number: int, step: int, old_ranks: tuple[int, ...], lost: tuple[int, ...], reasons: tuple[str, ...]
    ) -> None:
        self._context, self._is_lost = context, False
        self._next: Mapping[str, Any] | None = None  # what follows, if it has grown
        self.number, self.step, self.old_ranks, self.lost, self.reasons = number, step, old_ranks, lost, reasons

    def check(self) -> None:
        """AbortedError if a rank is lost, or another one asks for the next generation."""
        if self._context.wants_next:
            raise AbortedError(f"generation {self.number} of the job ends")

    def grow(self) -> None:
        """Take in processes that wait for a place in the job.  Collective: all ranks call it in the same step.

        If a process gets a place, AbortedError ends the block, and the next generation has it.  Otherwise nothing changes.
        """
        info = self._context.grow(step=self.step)
        if info["generation"] != self.number:
            self._next = info
            raise AbortedError(f"generation {self.number} of the job ends: it has grown")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        """The loss of a rank ends the block, and weft.elastic goes on.  Every other exception is the program's."""
        self._is_lost = self.number > 0 and isinstance(error, (PeerError, AbortedError, TimeoutError))
        return self._is_lost

    def __repr__(self) -> str:
        return f"<weft.Generation {self.number}, {len(self.old_ranks)} ranks, step {self.step}>"


def _first(context: Context, step: int) -> Generation:
    """In a newcomer, which has come later, a generation after the first."""
    if context.generation < 2:
        return Generation(context, context.generation, step, tuple(range(context.size)), (), ())
    info = context.origin
    return Generation(context, info["generation"], info["step"], tuple(info["old_ranks"]), (), ())


def elastic(context: Context, step: int = 0) -> Iterator[Generation]:
    """The generations of an elastic job: the one of now and, after each loss of ranks, the next one.

    The loop ends after a generation whose block has ended without the loss of a rank.  step is the last step that is
    complete.  Communicators and moves of a generation end with it; its tensors can be read by to_host.  PeerError: this
    rank was expelled, or too few are left.

    >>> import weft
    >>> with weft.Context() as context:
    ...     for generation in weft.elastic(context):
    ...         with generation:
    ...             while generation.step < 3:
    ...                 generation.step += 1
    ...         print(generation)
    <weft.Generation 0, 1 ranks, step 3>
    """
    now = _first(context, step)
    while True:
        yield now
        if not now._is_lost:
            return
        context._layouts.clear()  # its tensors are those of before
        info: Mapping[str, Any] = now._next or context.next(step=now.step)
        now = Generation(
            context, info["generation"], info["step"], tuple(info["old_ranks"]), tuple(info["lost"]), tuple(info["reasons"]))  # fmt: skip
