"""Experts, and matmuls that run while tensors travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _weft
from ._layouts import Mesh
from ._tensors import Tensor

if TYPE_CHECKING:
    from ._weft import _Array, _StreamLike


@_weft.use
class Experts(_weft.Experts):
    """Experts on the ranks of a mesh axis (docs/training/experts.md).  Collective."""

    __slots__ = ()

    def __new__(cls, context: _weft.Context, mesh: Mesh, axis: str | int, experts: int, capacity: int = 0) -> Experts:
        return super().__new__(cls, context, mesh, axis, experts=experts, capacity=capacity)


@_weft.use
class Routing(_weft.Routing):
    """Where the tokens of one step travel."""

    __slots__ = ()

    def dispatch(self, source: _Array, target: _Array, stream: _StreamLike = None) -> None:
        """Tokens, [tokens, width] ordered by expert, to the ranks of their experts, [received, width].  Collective."""
        _weft.routing_move(self, source, target, stream, False)

    def combine(self, source: _Array, target: _Array, stream: _StreamLike = None, keep_dropped: bool = False) -> None:
        """The reverse; rows of dropped tokens become 0, or stay as they are with keep_dropped.  Collective."""
        _weft.routing_move(self, source, target, stream, True, 0, keep_dropped)


_Function = Callable[[_weft.Shard, int, int], object]


def _rows(function: _Function, tensor: Tensor, is_written: bool) -> Callable[[dict[str, Any]], object]:
    """The function of C, which gets the fields of weft_overlap_rows."""
    row, dtype = tensor.local(tensor.context.rank).shape[1:], tensor.spec.dtype

    def compute(rows: dict[str, Any]) -> object:
        shard = rows["memory"]._view((rows["count"], *row), None, dtype, is_written)
        return function(shard, rows["first"], rows["stream"])

    return compute


@_weft.use
class Overlap(_weft.Overlap):
    """Matmuls that run while their input is gathered, or while their output is reduced (docs/training/overlap.md).

    bytes are those of the largest tensor.  Collective, and so is its end.
    """

    __slots__ = ()

    def __new__(cls, context: _weft.Context, mesh: Mesh, axis: str, bytes: int, messages: bool = False) -> Overlap:
        return super().__new__(cls, context, mesh, axis, bytes=bytes, messages=messages)

    def gather(  # type: ignore[override]
        self,
        tensor: Tensor,
        function: _Function,
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Gather the rows of tensor, and call function(shard, first, stream) for parts of them as they arrive.

        The ranks along the axis share the rows as S(0) does.  chunks: 0 by costs, -1 plain.  Collective.
        """
        super().gather(tensor, _rows(function, tensor, False), stream, chunks=chunks, flops=flops)

    def reduce_scatter(  # type: ignore[override]
        self,
        tensor: Tensor,
        function: _Function,
        chunks: int = 0,
        flops: int = 0,
        stream: _StreamLike = None,
    ) -> None:
        """Call function for parts of all rows, which it writes, and set tensor to the sums.  Collective."""
        super().reduce_scatter(_rows(function, tensor, True), tensor, stream, chunks=chunks, flops=flops)
