"""Orders of compute and communication in which communication is hidden (docs/training/reordering.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from . import _weft
from ._texts import fields


@fields(
    kind='"compute", "start", which begins a collective, or "wait", which waits for its first input, a start.',
    inputs="The indices of nodes before it whose results it needs.",
    comm="The number of the communicator that it touches; -1: none.",
    time="Its time in nanoseconds.",
    alloc="Bytes of its result, which are freed after its last use.",
    given="Whether it exists before the first node runs.",
    kept="Whether its result stays to the end.",
)
class Node(NamedTuple):
    """A part of a program.  Times are in nanoseconds, memory in bytes."""

    kind: Literal["compute", "start", "wait"] = "compute"
    inputs: tuple[int, ...] = ()
    comm: int = -1
    time: int = 0
    alloc: int = 0
    given: bool = False
    kept: bool = False


@fields(
    order="The indices of the nodes, in the new order.",
    collectives="A dictionary for each start.",
    time_before="Nanoseconds of the given order.",
    time_after="Nanoseconds of the new order.",
    exposed_before="Nanoseconds in which compute waits for communication, in the given order.",
    exposed_after="The same, in the new order.",
    peak_before="Bytes of memory that the given order needs.",
    peak_after="Bytes of memory that the new order needs.",
    digest="A hash of the order; ranks compare it before they use the order.",
)
class Reordered(NamedTuple):
    """A better order of the nodes, with times in nanoseconds and memory in bytes."""

    order: list[int]
    collectives: list[dict[str, Any]]
    time_before: int
    time_after: int
    exposed_before: int
    exposed_after: int
    peak_before: int
    peak_after: int
    digest: int


_Method: TypeAlias = Literal["iterative", "raise", "sink", "list"]
METHODS: tuple[_Method, ...] = get_args(_Method)


def reorder(nodes: Iterable[Node], method: _Method = "iterative", memory_limit: int = 0) -> Reordered:
    """Another order of a program, in which more compute runs between starts of collectives and waits for them.

    The methods are "iterative", "raise", "sink" and "list".  memory_limit is in bytes; 0: as much as the given order
    takes.

    >>> import weft
    >>> nodes = [weft.Node(time=100), weft.Node("start", (0,), 0, 80), weft.Node("wait", (1,), 0), weft.Node(time=90)]
    >>> weft.reorder(nodes).order
    [0, 1, 3, 2]
    """
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    given = []
    for node in nodes:
        if not isinstance(node, Node):
            raise TypeError(f"nodes must be a list of weft.Node, not of {node!r}")
        given.append(node._asdict())
    made = _weft._Reorder(given, pass_=method, memory_limit=memory_limit)
    figures = made.info
    collectives = [made.collective(index) for index in range(figures.pop("collectives"))]
    return Reordered([made.at(position) for position in range(len(given))], collectives, **figures)
