"""Orders of compute and communication in which communication is hidden (docs/training/reordering.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from . import _weft


class Node(NamedTuple):
    """A part of a program.  Times are in nanoseconds, memory in bytes."""

    kind: Literal["compute", "start", "wait"] = "compute"  # "start" begins a collective, "wait" waits for its first input, a start
    inputs: tuple[int, ...] = ()  # the indices of nodes before it whose results it needs
    comm: int = -1  # the number of the communicator that it touches; -1: none
    time: int = 0
    alloc: int = 0  # bytes of its result, which are freed after its last use
    given: bool = False  # it exists before the first node runs
    kept: bool = False  # its result stays to the end


class Reordered(NamedTuple):
    """A better order of the nodes, with times in nanoseconds and memory in bytes."""

    order: list[int]  # indices of nodes
    collectives: list[dict[str, Any]]  # a dictionary for each start
    time_before: int
    time_after: int
    exposed_before: int  # while compute waits for communication
    exposed_after: int
    peak_before: int
    peak_after: int
    digest: int  # of the order; ranks compare it before they use it


def reorder(
    nodes: Iterable[Node], method: Literal["iterative", "raise", "sink", "list"] = "iterative", memory_limit: int = 0
) -> Reordered:
    """Another order of a program, in which more compute runs between starts of collectives and waits for them.

    The methods are "iterative", "raise", "sink" and "list".  memory_limit is in bytes; 0: as much as the given order
    takes.

    >>> import weft
    >>> nodes = [weft.Node(time=100), weft.Node("start", (0,), 0, 80), weft.Node("wait", (1,), 0), weft.Node(time=90)]
    >>> weft.reorder(nodes).order
    [0, 1, 3, 2]
    """
    given = [node._asdict() for node in nodes]
    made = _weft.Reorder.create(given, pass_=method, memory_limit=memory_limit)
    figures = made.info
    collectives = [made.collective(index) for index in range(figures.pop("collectives"))]
    return Reordered([made.at(position) for position in range(len(given))], collectives, **figures)
