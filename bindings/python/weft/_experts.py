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


_Function = Callable[[_weft.Shard, int, int], object]


def _rows(function: _Function, call: dict[str, Any], is_written: bool) -> Callable[[dict[str, Any]], object]:
    """The function of C, which gets the fields of weft_overlap_rows."""

    def compute(rows: dict[str, Any]) -> object:
        shard = rows["memory"]._view((rows["count"], call["width"]), None, call["dtype"], is_written)
        return function(shard, rows["first"], rows["stream"])

    return compute


@_weft.use
class Overlap(_weft.Overlap):
    """Matmuls that run while their input is gathered, or while their output is reduced (docs/training/overlap.md).

    Collective, and so is its end.
    """

    __slots__ = ()

    def __new__(cls, comm: Comm, bytes: int, messages: bool = False) -> Overlap:
        return comm.overlap_create(bytes=bytes, messages=messages)

    def gather(  # type: ignore[override]
        self,
        shard: _Array,
        rows: int,
        function: _Function,
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Gather the rows of all ranks and call function(shard, first, stream) for parts of them as they arrive.

        rows are those of the whole tensor.  chunks: 0 by costs, -1 plain.  Collective.
        """
        call = self._call(shard, rows, chunks, flops)
        super().gather(_rows(function, call, False), shard, stream, **call)

    def reduce_scatter(  # type: ignore[override]
        self,
        shard: _Array,
        rows: int,
        function: _Function,
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Call function for parts of all rows, which it writes, and set shard to the sum of all ranks.  Collective."""
        call = self._call(shard, rows, chunks, flops)
        super().reduce_scatter(_rows(function, call, True), shard, stream, **call)

    def _call(self, shard: _Array, rows: int, chunks: int, flops: int) -> dict[str, Any]:
        """The fields of a call whose shard is [rows of this rank, width]."""
        dtype, shape = _weft.describe(shard)
        if len(shape) != 2:
            raise ValueError("the shard must have two dimensions, rows and width")
        call: dict[str, Any] = {"rows": rows, "width": shape[1], "dtype": dtype, "chunks": chunks, "flops": flops}
        share = self.shard_bytes(**call) // max(shape[1] * _weft.dtype_bytes(dtype), 1)
        if share != shape[0]:
            super().predict(**call)  # which raises if the call itself is wrong
            raise ValueError(f"the shard has {shape[0]} rows; this rank's share of {rows} is {share}")
        return call

    def predict(self, rows: int, width: int, dtype: str, chunks: int = 0, flops: int = 0) -> dict[str, Any]:  # type: ignore[override]
        """How a call would run, and its times in nanoseconds."""
        return super().predict(rows=rows, width=width, dtype=dtype, chunks=chunks, flops=flops)
