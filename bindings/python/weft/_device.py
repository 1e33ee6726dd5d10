"""Streams, the work on them, and symmetric memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _weft
from ._comm import Comm

if TYPE_CHECKING:
    from ._weft import _Compare, _SignalOp

_COMPARISONS: dict[str, _Compare] = {"==": "eq", "!=": "ne", ">=": "ge", ">": "gt", "<=": "le", "<": "lt"}


@_weft.use
class Stream(_weft.Stream):
    """An in-order queue of work on the device of a context."""

    __slots__ = ()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol and the stream."""
        return 0, self.native or 0


def _comparison(text: str) -> _Compare:
    if text not in _COMPARISONS:
        raise ValueError(f"compare is {text!r}; expected one of: {', '.join(_COMPARISONS)}")
    return _COMPARISONS[text]


@_weft.use
class Symm(_weft.Symm):
    """Memory of the same size on all ranks of a communicator, which each of them reads and writes.

    Its creation and its end are collective (docs/symmetric-memory.md).
    """

    __slots__ = ()

    def __new__(cls, comm: Comm, bytes: int, channels: int = 0) -> Symm:
        return super().__new__(cls, comm, bytes, channels=channels)

    def __exit__(self, *exception: object) -> None:
        """An exception of the block is not replaced: the memory then ends with the object."""
        if not any(exception):
            self.close()

    @property
    def info(self) -> dict[str, Any]:
        """Bytes of each rank, channels, and the backend."""
        return {"bytes": self.bytes, "channels": self.channels, "backend": self.backend}

    def put(
        self,
        source: _weft._Array,
        peer: int,
        offset: int = 0,
        signal: tuple[int, int] | None = None,
        op: _SignalOp = "set",
        stream: _weft._StreamLike = None,
    ) -> None:
        """Copy an array to a peer's memory; signal is (channel, value), which arrives after the data."""
        if signal is None:
            self._put_to(source, peer, offset, stream)
        elif isinstance(signal, tuple) and len(signal) == 2:
            self._put_signal_to(source, peer, offset, *signal, op, stream)
        else:
            raise TypeError("signal must be None or a tuple (channel, value)")

    def get(self, peer: int, target: _weft._Array, offset: int = 0, stream: _weft._StreamLike = None) -> None:
        """Copy from a peer's memory to an array."""
        self._get_from(peer, offset, target, stream)

    def signal(self, peer: int, channel: int, value: int, op: _SignalOp = "set", stream: _weft._StreamLike = None) -> None:
        """Set a peer's signal, or add."""
        self._signal_to(peer, channel, value, op, stream)

    def wait(
        self,
        peer: int,
        channel: int,
        value: int,
        compare: str = ">=",
        timeout: float = 0,
        stream: _weft._StreamLike = None,
    ) -> None:
        """Make a stream wait for a signal of a peer.

        timeout is in seconds; 0: that of the communicator, math.inf: no limit.
        """
        if not timeout >= 0:
            raise ValueError(f"timeout is {timeout}; expected a number of seconds, 0 for the default, or math.inf")
        self._wait_from(peer, channel, _comparison(compare), value, timeout and max(timeout, 1e-9), stream)

    def test(self, peer: int, channel: int, value: int, compare: str = ">=") -> bool:
        """Whether a signal has arrived."""
        return self._test_from(peer, channel, _comparison(compare), value)
