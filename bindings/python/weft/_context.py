"""Contexts: joining and leaving a job."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from . import _weft

if TYPE_CHECKING:
    from ._weft import _StreamLike

_Made = TypeVar("_Made")


def _on_thread(make: Callable[[], _Made]) -> _Made:
    """Call `make` on a thread of its own, so that this one runs the handlers of signals meanwhile.

    If a handler raises an exception, that thread is left alone: what it makes is dropped, so it leaves the job again.
    """
    import threading  # few programs need it before they join

    results: list[_Made | BaseException] = []
    is_wanted = True

    def work() -> None:
        try:
            made: _Made | BaseException = make()
        except BaseException as error:
            made = error
        if is_wanted:
            results.append(made)

    thread = threading.Thread(target=work, name="weft join", daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for this thread
    started = True
    try:
        thread.start()
    except RuntimeError:  # an interpreter that ends starts no threads, and runs no handlers either
        started = False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not started:
        return make()
    try:
        while thread.is_alive():
            thread.join(0.05)  # a signal that another thread has received is noticed then
    except BaseException:
        is_wanted = False
        results.clear()
        raise
    result = results.pop()
    if isinstance(result, BaseException):
        raise result
    return result


def raises_interrupt() -> bool:
    """Whether the program has left SIGINT to Python."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def refuse_second_library() -> None:
    """ImportError if the process has two copies of libweft: objects of one are not known to the other."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            lines = [line.split(maxsplit=5) for line in maps if "/libweft.so" in line]
    except OSError:
        return
    found = {
        (line[3], line[4]): line[5].rstrip("\n")
        for line in lines
        if "x" in line[1] and os.path.basename(line[5]).startswith("libweft.so")
    }
    if len(found) > 1:
        raise ImportError(f"this process has {' and '.join(found.values())}: two copies of libweft; a program must load one")


refuse_second_library()


@_weft.use
class Context(_weft.Context):
    """This process's connection to its job.

    backend names what communicates, such as "gloo-cpu"; None: WEFT_BACKEND.  device is its number on this host; -1: by the
    rank.  timeout is in seconds; 0: WEFT_TIMEOUT, math.inf: no limit.  plugin_path lists folders of plugins.

    Without rank and size they come from the launcher.  With them, ranks find each other at rendezvous, "unix:my-job" or
    "HOST-OF-RANK-0:29400" with the same secret token on all ranks, or by exchange, a function that gets the bytes of this
    rank and returns those of all ranks, joined.  With simulated_ranks this process alone holds the shards of so many ranks.

    >>> import weft
    >>> with weft.Context(simulated_ranks=4) as context:
    ...     print(context)
    <weft.Context, rank 0 of 4 on gloo-cpu>
    """

    __slots__ = ("_layouts",)
    _layouts: dict[Any, Any]  # that weft.redistribute has used

    def __new__(
        cls, backend: str | None = None, *, rank: int = 0, size: int = 0, rendezvous: str | None = None,
        token: str | None = None, plugin_path: str | None = None, device: int = -1, timeout: float = 0,
        simulated_ranks: int = 0, exchange: Callable[[bytes], bytes] | None = None,
    ) -> Self:  # fmt: skip
        refuse_second_library()
        made = _on_thread(
            lambda: _weft.Context.__new__(
                cls, backend, rank, size, rendezvous, token, plugin_path, device, timeout, simulated_ranks, exchange))
        made._layouts = {}
        made._bind_thread()
        return made

    def wait(self, stream: _StreamLike = None, timeout: float | None = None) -> None:  # type: ignore[override]
        """Wait for the work on a stream; None: the default stream.  timeout is in seconds; None: no limit."""
        super().wait(timeout, stream)

    def close(self) -> None:
        """Leave the job.  Tensors, streams and moves of the context must be gone."""
        self._layouts.clear()  # it has tensors, which use the context
        super().close()

    def _leave(self) -> None:
        """Leave the job when the process ends.  Objects that still use the context can only be deleted."""
        self._layouts.clear()
        super()._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        """An exception of the block is not replaced: the context then ends with the objects that use it."""
        try:
            self.close()
        except RuntimeError:
            if kind is None:
                raise

    def __repr__(self) -> str:
        if self.closed:
            return "<weft.Context, closed>"
        return f"<weft.Context, rank {self.rank} of {self.size} on {self.backend}>"
