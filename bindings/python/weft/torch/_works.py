"""Work objects of torch.distributed over weft."""

import math

import torch
from torch._C._distributed_c10d import Work

import weft

from ._limits import seconds_of


def finished(result):
    """A future that has its result."""
    future = torch.futures.Future()
    future.set_result(result)
    return future


def current_stream(device):
    """The address of the current stream of a device."""
    return torch.cuda.current_stream(device).cuda_stream


def is_over(work):
    """Whether a weft.Work is complete or has failed."""
    try:
        return work.test()
    except weft.Error:
        return True


class Done(Work):
    """A collective that is complete."""

    def __init__(self, result):
        super().__init__()
        self._result = result

    def wait(self, timeout=None):
        """There is nothing to wait for."""
        return True

    def is_completed(self):
        """True: a collective on the CPU is complete when its call returns."""
        return True

    def is_success(self):
        """True: a failed collective raises in its call."""
        return True

    def result(self):
        """The tensors that were written."""
        return self._result

    def get_future(self):
        """A future that has the tensors that were written."""
        return finished(self._result)


class Posted(Work):
    """Work on a stream of a device, which was the current one of its call."""

    def __init__(self, result, context, device):
        super().__init__()
        self._result, self._device = result, device
        self._stream = current_stream(device)
        self._work = weft.Work(context, self._stream)

    def wait(self, timeout=None):
        """Make the current stream wait; the host does not wait."""
        stream = current_stream(self._device)
        if stream != self._stream:
            self._work.hold(stream)
        return True

    synchronize = wait

    def is_completed(self):
        """Whether the device has done the work."""
        return self._work.test()

    is_success = is_completed

    def result(self):
        """The tensors that were written."""
        return self._result

    def get_future(self):
        """A future whose callbacks run in the order of the stream."""
        self.wait()
        future = torch.futures.Future(devices=[self._device])
        future.set_result(self._result)
        return future


class Message(Work):
    """A message that is under way on a stream of its own."""

    def __init__(self, work, tensors, finish, limit):
        super().__init__()
        self._work, self._tensors, self._finish, self._limit = work, tensors, finish, limit

    def wait(self, timeout=None):
        """Wait until the message has arrived, or the tensor that was sent may change."""
        seconds = min(seconds_of(timeout), self._limit)
        self._work.wait(-1 if seconds == math.inf else seconds)
        if self._finish is not None:
            self._finish()
            self._finish = None
        return True

    def is_completed(self):
        """Whether wait would return at once."""
        return self._work.test()

    def is_success(self):
        """Whether the message is complete without an error."""
        return self._work.test()

    def result(self):
        """The tensors of the message."""
        return self._tensors

    def get_future(self):
        """A future with the tensors; the call waits for the message."""
        self.wait()
        return finished(self._tensors)


class Collective(Message):
    """A collective on the CPU that is under way on a stream of its group."""

    def __init__(self, work, tensors, finish, limit, comm):
        super().__init__(work, tensors, finish, limit)
        self._comm = comm

    def wait(self, timeout=None):
        """Wait until the collective is complete.  If a limit passes first, the communicator is aborted."""
        try:
            return super().wait(timeout)
        except weft.TimeoutError:
            self._comm.abort()
            raise
