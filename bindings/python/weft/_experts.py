"""Experts, and matmuls that run while tensors travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _weft
from ._comm import Comm
from ._layouts import Mesh

if TYPE_CHECKING:
    from ._weft import _Array, _StreamLike


@_weft.use
class Experts(_weft.Experts):
    """Experts on the ranks of a mesh axis (docs/training/experts.md).  Collective."""

    __slots__ = ()

    def __new__(cls, context: _weft.Context, mesh: Mesh, axis: str, experts: int, capacity: int = 0) -> Experts:
        return _weft.Experts.create(context, mesh, axis, experts=experts, capacity=capacity)


@_weft.use
class Routing(_weft.Routing):
    """Where the tokens of one step travel."""

    __slots__ = ()

    def dispatch(self, source: _Array, target: _Array, stream: _StreamLike = None) -> None:
        """Tokens, [tokens, width] ordered by expert, to the ranks of their experts, [received, width].  Collective."""
        _weft.routing_move(self, source, target, stream, False)

    def combine(self, source: _Array, target: _Array, stream: _StreamLike = None) -> None:
        """The reverse; rows of dropped tokens become 0.  Collective."""
        _weft.routing_move(self, source, target, stream, True)


@_weft.use
class Overlap(_weft.Overlap):
    """Matmuls that run while their input is gathered, or while their output is reduced (docs/training/overlap.md).

    Collective, and so is its end.
    """

    __slots__ = ()

    def __new__(cls, comm: Comm, bytes: int, messages: bool = False) -> Overlap:
        return comm.overlap_create(bytes=bytes, messages=messages)

    def gather(
        self,
        shard: _Array,
        rows: int,
        function: Callable[[_weft.Shard, int, int], object],
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Gather the rows of all ranks and call function(shard, first, stream) for parts of them as they arrive.

        rows are those of the whole tensor.  chunks: 0 by costs, -1 plain.  Collective.
        """
        _weft.overlap_run(self, shard, rows, function, chunks, flops, stream, False)

    def reduce_scatter(
        self,
        shard: _Array,
        rows: int,
        function: Callable[[_weft.Shard, int, int], object],
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Call function for parts of all rows, which it writes, and set shard to the sum of all ranks.  Collective."""
        _weft.overlap_run(self, shard, rows, function, chunks, flops, stream, True)

    def predict(self, rows: int, width: int, dtype: str, chunks: int = 0, flops: int = 0) -> dict[str, Any]:  # type: ignore[override]
        """How a call would run, and its times in nanoseconds."""
        return super().predict(rows=rows, width=width, dtype=dtype, chunks=chunks, flops=flops)
