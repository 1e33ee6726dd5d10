"""Communicators: collectives and messages on arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from . import _weft


@_weft.use
class Comm(_weft.Comm):
    """An ordered list of ranks.  Comm(context) has all ranks of the job.

    Counts are in elements.  All ranks of a communicator make the same calls in the same order.
    Arrays are contiguous; the array that is written comes second.
    """

    __slots__ = ()

    def __new__(cls, context: _weft.Context) -> Comm:
        return context.world

    def split(  # type: ignore[override]
        self, colour: int, key: int = 0, name: str | None = None, timeout: float = 0
    ) -> Comm | None:
        """The communicator of the ranks with this colour, in the order of their keys; None for -1.  Collective.

        timeout is in seconds; 0: that of this communicator, math.inf: no limit.
        """
        return super().split(colour, key, name=name, timeout=timeout)

    def create(
        self, ranks: Sequence[int], name: str | None = None, timeout: float = 0, native: int | None = None
    ) -> Comm | None:
        """The communicator of these ranks, in this order; None on other ranks.  Collective over them.

        native is the address of a vendor's communicator of these ranks, which weft then uses.
        """
        return super().create(ranks, name=name, timeout=timeout, native=native)

    def support(self, collective: Any, dtype: str, op: Any = "sum") -> str:  # type: ignore[override]
        """How the backend performs a collective: "native", "emulated" or "none"."""
        level = super().support(collective, dtype, op)
        return "none" if level == "no" else level

    def all_reduce(
        self, send: _weft._Array, recv: _weft._Array = None, op: str = "sum", stream: _weft._StreamLike = None
    ) -> None:
        """Reduce over all ranks; without recv, in place."""
        self.collective("all_reduce", send, send if recv is None else recv, op, stream=stream)

    def all_gather(self, send: _weft._Array, recv: _weft._Array, stream: _weft._StreamLike = None) -> None:
        """recv is the arrays of all ranks, one after the other."""
        self.collective("all_gather", send, recv, stream=stream)

    def reduce_scatter(
        self, send: _weft._Array, recv: _weft._Array, op: str = "sum", stream: _weft._StreamLike = None
    ) -> None:
        """recv is this rank's part of the reduction of all ranks' send."""
        self.collective("reduce_scatter", send, recv, op, stream=stream)

    def all_to_all(self, send: _weft._Array, recv: _weft._Array, stream: _weft._StreamLike = None) -> None:
        """Part i of send goes to rank i, and part i of recv comes from rank i."""
        self.collective("all_to_all", send, recv, stream=stream)

    def broadcast(self, array: _weft._Array, root: int = 0, stream: _weft._StreamLike = None) -> None:
        """The root's array on all ranks."""
        self.collective("broadcast", array if self.rank == root else None, array, root=root, stream=stream)

    def reduce(
        self, send: _weft._Array, recv: _weft._Array = None, op: str = "sum", root: int = 0, stream: _weft._StreamLike = None
    ) -> None:
        """Reduce to the root; recv is used there only."""
        self.collective("reduce", send, recv, op, root, stream=stream)

    def gather(
        self, send: _weft._Array, recv: _weft._Array = None, root: int = 0, stream: _weft._StreamLike = None
    ) -> None:
        """The arrays of all ranks, one after the other, on the root."""
        self.collective("gather", send, recv, root=root, stream=stream)

    def scatter(self, send: _weft._Array, recv: _weft._Array, root: int = 0, stream: _weft._StreamLike = None) -> None:
        """Part i of the root's send on rank i."""
        self.collective("scatter", send, recv, root=root, stream=stream)

    def all_gather_v(
        self, send: _weft._Array, recv: _weft._Array, counts: Sequence[int], stream: _weft._StreamLike = None
    ) -> None:
        """As all_gather, with counts[i] elements of rank i."""
        self.collective("all_gather_v", send, recv, recv_counts=counts, stream=stream)

    def reduce_scatter_v(
        self, send: _weft._Array, recv: _weft._Array, counts: Sequence[int], op: str = "sum", stream: _weft._StreamLike = None
    ) -> None:
        """As reduce_scatter, with counts[i] elements for rank i."""
        self.collective("reduce_scatter_v", send, recv, op, send_counts=counts, stream=stream)

    def all_to_all_v(
        self, send: _weft._Array, send_counts: Sequence[int], recv: _weft._Array, recv_counts: Sequence[int], stream: _weft._StreamLike = None
    ) -> None:
        """As all_to_all, with a count for each rank."""
        self.collective("all_to_all_v", send, recv, send_counts=send_counts, recv_counts=recv_counts, stream=stream)

    def barrier(self, stream: _weft._StreamLike = None) -> None:
        """Wait for all ranks, in stream order."""
        self.collective("barrier", stream=stream)

    @contextlib.contextmanager
    def group(self) -> Iterator[Comm]:
        """Operations in the block start together at its end."""
        self.group_begin()
        try:
            yield self
        finally:
            self.group_end()
