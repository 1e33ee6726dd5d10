"""Work objects of torch.distributed over weft."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias, cast

import torch
from torch._C._distributed_c10d import Work

import weft

from ._limits import seconds_of

Result: TypeAlias = "list[torch.Tensor] | list[list[torch.Tensor]]"  # that of a gather has a list per rank of tensors


def finished(result: Result) -> torch.futures.Future[Result]:
    """A future that has its result."""
    future: torch.futures.Future[Result] = torch.futures.Future()
    future.set_result(result)
    return future


def current_stream(device: torch.device) -> int:
    """The address of the current stream of a device."""
    address: int = torch.cuda.current_stream(device).cuda_stream
    return address


def is_over(work: weft.Work) -> bool:
    """Whether a weft.Work is complete or has failed."""
    try:
        return work.test()
    except weft.Error:
        return True


class Done(Work):
    """A collective that is complete."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self._result = result

    def wait(self, timeout: timedelta | None = None) -> bool:
        """There is nothing to wait for."""
        return True

    def is_completed(self) -> bool:
        """True: a collective on the CPU is complete when its call returns."""
        return True

    def is_success(self) -> bool:
        """True: a failed collective raises in its call."""
        return True

    def result(self) -> list[torch.Tensor]:
        """The tensors that were written."""
        return cast("list[torch.Tensor]", self._result)  # PyTorch knows no other hint

    def get_future(self) -> torch.futures.Future[Result]:
        """A future that has the tensors that were written."""
        return finished(self._result)


class Posted(Work):
    """Work on a stream of a device, which was the current one of its call."""

    def __init__(self, result: Result, context: weft.Context, device: torch.device) -> None:
        super().__init__()
        self._result, self._device = result, device
        self._stream = current_stream(device)
        self._work = weft.Work(context, self._stream)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Make the current stream wait; the host does not wait."""
        stream = current_stream(self._device)
        if stream != self._stream:
            self._work.hold(stream)
        return True

    def synchronize(self) -> None:
        """As wait."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the device has done the work."""
        return self._work.test()

    is_success = is_completed

    def result(self) -> list[torch.Tensor]:
        """The tensors that were written."""
        return cast("list[torch.Tensor]", self._result)  # PyTorch knows no other hint

    def get_future(self) -> torch.futures.Future[Result]:
        """A future whose callbacks run in the order of the stream."""
        self.wait()
        future: torch.futures.Future[Result] = torch.futures.Future(devices=[self._device])
        future.set_result(self._result)
        return future


class Message(Work):
    """A message that is under way on a stream of its own."""

    def __init__(
        self, work: weft.Work, tensors: Result, finish: Callable[[], object] | None, limit: float
    ) -> None:
        super().__init__()
        self._work, self._tensors, self._finish, self._limit = work, tensors, finish, limit

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the message has arrived, or the tensor that was sent may change."""
        seconds = min(seconds_of(timeout), self._limit)
        self._work.wait(seconds)
        if self._finish is not None:
            self._finish()
            self._finish = None
        return True

    def is_completed(self) -> bool:
        """Whether wait would return at once."""
        return self._work.test()

    def is_success(self) -> bool:
        """Whether the message is complete without an error."""
        return self._work.test()

    def result(self) -> list[torch.Tensor]:
        """The tensors of the message."""
        return cast("list[torch.Tensor]", self._tensors)

    def get_future(self) -> torch.futures.Future[Result]:
        """A future with the tensors; the call waits for the message."""
        self.wait()
        return finished(self._tensors)


class Collective(Message):
    """A collective on the CPU that is under way on a stream of its group."""

    def __init__(
        self, work: weft.Work, tensors: Result, finish: Callable[[], object] | None, limit: float, comm: weft.Comm
    ) -> None:
        super().__init__(work, tensors, finish, limit)
        self._comm = comm

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the collective is complete.  If a limit passes first, the communicator is aborted."""
        try:
            return super().wait(timeout)
        except weft.TimeoutError:
            self._comm.abort()
            raise
