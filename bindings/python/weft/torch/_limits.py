"""Time limits: the shortest one that is set holds."""

from __future__ import annotations

import math
import os
import threading
from datetime import timedelta
from types import TracebackType

import weft
from weft._errors import error_of


def of_environment() -> float:
    """The seconds of WEFT_TIMEOUT; infinity if it is not set.  A text that is no number is refused by weft itself."""
    try:
        seconds = float(os.environ.get("WEFT_TIMEOUT") or math.inf)
    except ValueError:
        return math.inf
    return seconds if seconds > 0 else math.inf


def of_options(options: object) -> float:
    """The seconds that options of a call state; infinity if they state none."""
    return seconds_of(getattr(options, "timeout", None))


def seconds_of(timeout: timedelta | None) -> float:
    """The seconds of a timedelta; infinity for None, 0 and the negative one that means none."""
    seconds = 0 if timeout is None else timeout.total_seconds()
    return seconds if seconds > 0 else math.inf


class Limit:
    """A block in which a communicator is aborted after some seconds.  The block then ends with weft.TimeoutError."""

    def __init__(self, comm: weft.Comm, seconds: float, call: str) -> None:
        self._comm, self._seconds, self._call, self._has_passed = comm, seconds, call, False

    def _pass(self) -> None:
        self._has_passed = True
        self._comm.abort()

    def __enter__(self) -> None:
        self._timer = threading.Timer(self._seconds, self._pass)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._has_passed:
            raise error_of(
                -8, "ERR_TIMEOUT",
                f"{self._call} on {self._comm.name}: the time limit of {self._seconds:g} s passed, and a rank has not made "
                "the call; the communicator was aborted") from error
