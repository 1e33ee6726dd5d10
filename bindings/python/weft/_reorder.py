"""Orders of compute and communication in which communication is hidden (docs/training/reordering.md)."""

import dataclasses

from . import _weft

_KINDS = ("compute", "start", "wait")
_METHODS = ("iterative", "raise", "sink", "list")


@dataclasses.dataclass(frozen=True)
class Node:
    """A part of a program.  Times are in nanoseconds, memory in bytes."""

    kind: str = "compute"  # "start" begins a collective, "wait" waits for its first input, a start
    inputs: tuple = ()  # the indices of nodes before it whose results it needs
    comm: int = -1  # the number of the communicator that it touches; -1: none
    time: int = 0
    alloc: int = 0  # bytes of its result, which are freed after its last use
    given: bool = False  # it exists before the first node runs
    kept: bool = False  # its result stays to the end


@dataclasses.dataclass(frozen=True)
class Reordered:
    """A better order of the nodes, with times in nanoseconds and memory in bytes."""

    order: list  # indices of nodes
    collectives: list  # a dictionary for each start
    time_before: int
    time_after: int
    exposed_before: int  # while compute waits for communication
    exposed_after: int
    peak_before: int
    peak_after: int
    digest: int  # of the order; ranks compare it before they use it


def _number(name, names, what):
    if name not in names:
        raise ValueError(f"'{name}' is not a {what}; expected one of {', '.join(names)}")
    return names.index(name)


def reorder(nodes, method="iterative", memory_limit=0):
    """Another order of a program, in which more compute runs between starts of collectives and waits for them.

    The methods are "iterative", "raise", "sink" and "list".  memory_limit is in bytes; 0: as much as the given order
    takes.

    >>> import weft
    >>> nodes = [weft.Node(time=100), weft.Node("start", (0,), 0, 80), weft.Node("wait", (1,), 0), weft.Node(time=90)]
    >>> weft.reorder(nodes).order
    [0, 1, 3, 2]
    """
    parts = [(_number(node.kind, _KINDS, "kind of node"), *dataclasses.astuple(node)[1:]) for node in nodes]
    return Reordered(*_weft.reorder(parts, _number(method, _METHODS, "method"), memory_limit))
