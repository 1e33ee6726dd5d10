"""Orders of work in a pipeline, and their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from . import _weft

_Name: TypeAlias = Literal["gpipe", "1f1b", "interleaved", "looped-bfs", "zb1p", "zbv", "dualpipev"]  # Schedule.known()

KEYS = ("forward", "input", "weight", "send_forward", "send_backward", "unshard", "reduce", "activation", "parameters")  # of costs


@_weft.use
class Schedule(_weft.Schedule):
    """The order of work in a pipeline; str() is CSV.

    >>> import weft
    >>> print(weft.Schedule("gpipe", 2, 2).actions(0)[0])
    ('F', 0, 0, False)
    >>> weft.Schedule("1f1b", 2, 4).simulate().makespan
    15
    """

    __slots__ = ()

    def __new__(cls, name: _Name, ranks: int, microbatches: int, chunks: int = 0) -> Schedule:
        return super().__new__(cls, name, ranks, chunks, microbatches)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<weft.Schedule {self.name}, {self.ranks} ranks, {self.microbatches} microbatches>"

    @staticmethod
    def known() -> list[str]:
        """The names of the schedules that weft makes."""
        found: list[str] = []
        while (name := _weft._schedule_known(len(found))) is not None:
            found.append(name)
        return found

    def actions(self, rank: int) -> list[tuple[str, int, int, bool]]:
        """The actions of a rank, in order: (kind, stage, microbatch, with_next)."""
        return [(one["kind"], one["stage"], one["microbatch"], bool(one["with_next"])) for one in self._actions(rank)]

    def simulate(self, costs: Sequence[Mapping[str, int]] | None = None, memory_limit: int = 0) -> _weft.Timeline:
        """The timeline.  costs has a dictionary per stage.

        Its keys are forward, input, weight, send_forward, send_backward, unshard, reduce, activation and parameters.
        """
        for key in (key for one in costs or () if isinstance(one, Mapping) for key in one):
            if key not in KEYS:
                raise TypeError(f"an entry of costs has no {key!r}; its keys are {', '.join(KEYS)}")
        return _weft.Timeline(self, costs=costs, memory_limit=memory_limit)
