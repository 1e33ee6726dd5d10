"""Communicators: collectives and messages on arrays."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Literal

from . import _weft

if TYPE_CHECKING:
    from ._layouts import Mesh
    from ._weft import _Array, _Collective, _Reduction, _StreamLike


def _rank(root: int) -> int:
    try:
        return index(root)
    except TypeError:
        raise TypeError(f"root must be an int, not {root!r}") from None


@_weft.use
class Comm(_weft.Comm):
    """An ordered list of ranks.  Comm(context) has all ranks of the job.

    Counts are in elements.  All ranks of a communicator make the same calls in the same order.
    Arrays are contiguous; the array that is written comes second.

    >>> import array, weft
    >>> with weft.Context() as context:  # a job of one rank
    ...     comm, x = weft.Comm(context), array.array("f", [1, 2])
    ...     comm.all_reduce(x)
    ...     print(comm, x.tolist())
    ...     del comm
    <weft.Comm world, rank 0 of 1> [1.0, 2.0]
    """

    __slots__ = ()

    def __new__(cls, context: _weft.Context) -> Comm:
        if cls is not Comm:
            raise TypeError(f"weft makes all communicators, so {cls.__name__} has no objects; let it have a weft.Comm instead")
        return context.world

    def __repr__(self) -> str:
        return f"<weft.Comm {self.name}, rank {self.rank} of {self.size}>"

    def find_rank(self, world_rank: int) -> int | None:  # type: ignore[override]
        """The rank in this communicator of a rank of the job; None if it is not a member."""
        found = _weft.Comm.find_rank(self, world_rank)
        return None if found < 0 else found

    def split(  # type: ignore[override]
        self, color: int, key: int = 0, name: str | None = None, timeout: float = 0, fails_with_parent: bool = False
    ) -> Comm | None:
        """The communicator of the ranks with this color, in the order of their keys; None for -1.  Collective.

        timeout is in seconds; 0: that of this communicator, math.inf: no limit.  With fails_with_parent, the new
        communicator and this one fail together.
        """
        return super().split(color, key, name=name, timeout=timeout, fails_with_parent=fails_with_parent)

    def create(
        self, ranks: Sequence[int], name: str | None = None, timeout: float = 0, native: int | None = None,
        fails_with_parent: bool = False
    ) -> Comm | None:
        """The communicator of these ranks, in this order; None on other ranks.  Collective over them.

        native is the address of a vendor's communicator of these ranks, which weft then uses.  With
        fails_with_parent, the new communicator and this one fail together.
        """
        return super().create(ranks, name=name, timeout=timeout, native=native, fails_with_parent=fails_with_parent)

    def along(  # type: ignore[override]
        self, mesh: Mesh, axes: str | int, name: str | None = None, *, timeout: float = 0
    ) -> Comm | None:
        """The communicator of the ranks along axes of a mesh that has this rank; None on a rank that is not in the mesh.

        axes lists axes by name or number, such as "tp", "dp,tp" or 0.  Later calls for the same ranks in the same order
        return the same communicator, and name and timeout, in seconds, are those of the first.  It fails independently
        of this one.  Collective over the ranks of the mesh, which all give the same mesh and axes.
        """
        return super().along(mesh, axes, name, timeout=timeout)

    @property
    def timeout(self) -> float:  # type: ignore[override]
        """The time limit of every wait, in seconds; math.inf: no limit."""
        nanoseconds = super().timeout
        return math.inf if nanoseconds < 0 else nanoseconds / 1e9

    def support(  # type: ignore[override]
        self, collective: _Collective, dtype: str, op: _Reduction = "sum"
    ) -> Literal["native", "emulated", "none"]:
        """How the backend performs a collective: "native", "emulated" or "none"."""
        level = super().support(collective, dtype, op)
        return "none" if level == "no" else level

    # collective(name, send, recv, op, root, send_counts, recv_counts, count, stream): by position, which is faster.

    def all_reduce(
        self, send: _Array, recv: _Array | None = None, op: _Reduction = "sum", stream: _StreamLike = None
    ) -> None:
        """Reduce over all ranks; without recv, in place."""
        self.collective("all_reduce", send, send if recv is None else recv, op, 0, None, None, 0, stream)

    def all_gather(self, send: _Array, recv: _Array, stream: _StreamLike = None) -> None:
        """recv is the arrays of all ranks, one after the other."""
        self.collective("all_gather", send, recv, "sum", 0, None, None, 0, stream)

    def reduce_scatter(
        self, send: _Array, recv: _Array, op: _Reduction = "sum", stream: _StreamLike = None
    ) -> None:
        """recv is this rank's part of the reduction of all ranks' send."""
        self.collective("reduce_scatter", send, recv, op, 0, None, None, 0, stream)

    def all_to_all(self, send: _Array, recv: _Array, stream: _StreamLike = None) -> None:
        """Part i of send goes to rank i, and part i of recv comes from rank i."""
        self.collective("all_to_all", send, recv, "sum", 0, None, None, 0, stream)

    def broadcast(self, array: _Array, root: int = 0, stream: _StreamLike = None) -> None:
        """The root's array on all ranks."""
        root = _rank(root)
        self.collective("broadcast", array if self.rank == root else None, array, "sum", root, None, None, 0, stream)

    def reduce(
        self, send: _Array, recv: _Array | None = None, op: _Reduction = "sum", root: int = 0, stream: _StreamLike = None
    ) -> None:
        """Reduce to the root; recv is used there only."""
        self.collective("reduce", send, recv, op, _rank(root), None, None, 0, stream)

    def gather(
        self, send: _Array, recv: _Array | None = None, root: int = 0, stream: _StreamLike = None
    ) -> None:
        """The arrays of all ranks, one after the other, on the root."""
        self.collective("gather", send, recv, "sum", _rank(root), None, None, 0, stream)

    def scatter(self, send: _Array, recv: _Array, root: int = 0, stream: _StreamLike = None) -> None:
        """Part i of the root's send on rank i."""
        self.collective("scatter", send, recv, "sum", _rank(root), None, None, 0, stream)

    def all_gather_v(
        self, send: _Array, recv: _Array, counts: Sequence[int], stream: _StreamLike = None
    ) -> None:
        """As all_gather, with counts[i] elements of rank i."""
        self.collective("all_gather_v", send, recv, "sum", 0, None, counts, 0, stream)

    def reduce_scatter_v(
        self, send: _Array, recv: _Array, counts: Sequence[int], op: _Reduction = "sum", stream: _StreamLike = None
    ) -> None:
        """As reduce_scatter, with counts[i] elements for rank i."""
        self.collective("reduce_scatter_v", send, recv, op, 0, counts, None, 0, stream)

    def all_to_all_v(
        self, send: _Array, send_counts: Sequence[int], recv: _Array, recv_counts: Sequence[int], stream: _StreamLike = None
    ) -> None:
        """As all_to_all, with a count for each rank."""
        self.collective("all_to_all_v", send, recv, "sum", 0, send_counts, recv_counts, 0, stream)

    def barrier(self, stream: _StreamLike = None) -> None:
        """Wait for all ranks, in stream order."""
        self.collective("barrier", None, None, "sum", 0, None, None, 0, stream)

    @contextlib.contextmanager
    def group(self) -> Iterator[Comm]:
        """Operations in the block start together at its end."""
        self.group_begin()
        try:
            yield self
        finally:
            self.group_end()
