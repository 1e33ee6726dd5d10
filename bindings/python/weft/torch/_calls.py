"""What the calls of a process group have in common: communicators, time limits, coalesced calls, copies at their end."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C._autograd import _profiler_enabled
from torch._C._distributed_c10d import Backend, Store, Work

import weft

from . import _limits
from ._base import Base
from ._contexts import context_for, limit_of
from ._works import Collective, Done, Posted, Result, current_stream, is_over

if TYPE_CHECKING:
    from weft._weft import _Collective

Follow = Callable[[], object]  # what follows the end of a call

UNLIMITED: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def written(tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """A contiguous tensor to write to, and the tensor to copy it to afterwards, if there is one; without gradients."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor, None
    return torch.empty_like(tensor, memory_format=torch.contiguous_format), tensor


class Calls(Base):
    """The state of a process group, and how it posts collectives."""

    def __init__(self, members: list[int], rank: int, limit: float, is_first: bool, name: str) -> None:
        super().__init__(rank, len(members))
        self._members, self._limit, self._name = members, limit, name
        self._barriers = 0  # monitored ones
        self._sequence = 0  # calls that were made; a coalesced block is one
        self._is_first = is_first  # of the job: it uses the communicator of all ranks itself
        self._set_limit = math.inf  # of set_timeout
        # Of messages on the CPU, by direction and peer, then by tag; the members below outlive them.
        self._streams: dict[tuple[str, int], dict[int, weft.Stream]] = {}
        self._queue: weft.Stream | None = None  # the stream of collectives on the CPU that their callers wait for later
        # Messages and collectives on the CPU: their work, and the tensors that must live until its end.
        self._under_way: list[tuple[weft.Work, Sequence[object]]] = []
        self._comms: dict[str, weft.Comm] = {}  # by the type of a device
        self._held: list[Follow] | None = None  # while calls are coalesced: what follows their end
        self._held_on = torch.device("cpu")  # while calls are coalesced: their device
        self._held_depth = 0  # coalesced blocks inside of the first one
        self._held_limit = math.inf  # the shortest of the calls
        self._begun: list[Follow] | None = None  # while a collective is on the queue and its call goes on: what follows its end
        self._begun_limit = math.inf  # of that collective

    def _comm(self, device: torch.device, store: Store | None = None) -> weft.Comm:
        """The communicator for tensors on a device, made at its first use."""
        comm = self._comms.get(device.type)
        if comm is None:
            comm = weft.Comm(context_for(device, store))
            if not self._is_first or limit_of(device) != self._limit:
                own = comm.create(self._members, timeout=self._limit)
                assert own is not None, "this rank is a member"
                comm = own
            self._comms[device.type] = comm
        return comm

    def set_timeout(self, timeout: timedelta) -> None:
        """A limit for the calls on the CPU that follow, if it is shorter than the one of the group's creation."""
        self._set_limit = _limits.seconds_of(timeout)

    @property
    def options(self) -> Backend.Options:
        """The shortest limit of the group's calls; 0: none.  Other options of the creation are not known."""
        seconds = min(self._limit, self._set_limit)
        return Backend.Options("weft", timedelta(seconds=0 if seconds == math.inf else seconds))

    def _set_sequence_number_for_group(self) -> None:
        """Nothing: all members begin at 0."""

    def _get_sequence_number_for_group(self) -> int:
        """The calls that were made, as Gloo counts them."""
        return self._sequence

    def _limited(self, comm: weft.Comm, call: str, seconds: float) -> contextlib.AbstractContextManager[None]:
        """A block in which a call on the CPU ends after some seconds; the communicator itself has the group's limit."""
        return _limits.Limit(comm, seconds, call) if seconds < self._limit else UNLIMITED

    def _done(self, tensors: Result, device: torch.device) -> Work:
        """The work object of a call on a device that has posted all its work."""
        if self._held is None:
            self._sequence += 1
        if self._begun is not None:
            begun, self._begun = self._begun, None
            comm = self._comm(device)
            work = weft.Work(comm.context, self._queue)
            self._keep(work, begun)
            return Collective(work, tensors, lambda: [follow() for follow in begun], self._begun_limit, comm)
        if device.type == "cpu" or self._held is not None:
            return Done(tensors)
        return Posted(tensors, self._comm(device).context, device)

    def _settle(self, comm: weft.Comm) -> None:
        """Wait for the collectives on the queue, so that all are in the order of their calls."""
        if self._queue is not None:
            comm.context.wait(self._queue)

    def _run(
        self, collective: _Collective, send: Tensor | None, recv: Tensor | None, opts: object = None, *, complete: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        """Post a collective to the current stream.

        On the CPU it is complete at the end, unless the caller waits later: then it is on the queue, and _done ends the call.
        With `complete` it is complete in any case, because the call itself reads the result.
        """
        given = send.detach() if send is not None and send.requires_grad else send
        taken = given if recv is send else recv.detach() if recv is not None and recv.requires_grad else recv
        either = taken if given is None else given
        assert either is not None, "a rank gives or takes a tensor"
        device = either.device
        comm, limit, held, settle = self._comm(device), UNLIMITED, self._held, False
        seconds = min(self._set_limit, _limits.of_options(opts))
        if device.type != "cpu":
            options["stream"] = current_stream(device)
        elif held is not None:
            self._held_limit = min(self._held_limit, seconds)
        elif not complete and opts is not None and getattr(opts, "asyncOp", False):
            self._queue = self._queue or weft.Stream(comm.context)
            options["stream"], held = self._queue, []
        else:
            limit, settle = self._limited(comm, collective, seconds), True
        with limit:
            if settle:
                self._settle(comm)
            if _profiler_enabled():
                with torch.profiler.record_function(f"weft:{collective}"):
                    comm.collective(collective, given, taken, **options)
            else:
                comm.collective(collective, given, taken, **options)
        if held is not None:
            held.append(lambda: (given, taken))  # they live until the end
            if held is not self._held:
                self._begun, self._begun_limit = held, seconds

    def _copy(self, target: Tensor | None, source: Tensor) -> None:
        """Copy what a collective has written to the tensor that it is for, if that is another one."""
        if target is None:
            return
        target = target.detach()
        held = self._held if self._begun is None else self._begun
        if held is None:
            target.copy_(source)
        else:
            held.append(lambda: target.copy_(source))

    def _split(self, block: Tensor, targets: Sequence[Tensor]) -> None:
        """Copy the parts of a block, one after the other, to tensors."""
        for target, part in zip(targets, torch.split(block, [target.numel() for target in targets])):
            self._copy(target, part.view(target.shape))

    def _in_place(
        self, collective: _Collective, tensor: Tensor, opts: object, use: tuple[bool, bool], **options: Any
    ) -> None:
        """Run a collective whose result replaces a tensor; `use` tells whether this rank gives and takes one."""
        data, target = written(tensor)
        if target is not None:
            data.copy_(target)
        gives, takes = use
        self._run(collective, data if gives else None, data if takes else None, opts, **options)
        if takes:
            self._copy(target, data)

    def _keep(self, work: weft.Work, tensors: Sequence[object]) -> None:
        """Keep the tensors of a message until a message after its end, even if the caller keeps no work object."""
        self._under_way = [entry for entry in self._under_way if not is_over(entry[0])]
        self._under_way.append((work, tensors))

    # ---- coalesced calls: they start together at the end ----

    def start_coalescing(self, device: torch.device | None = None) -> None:
        if self._held is not None:
            self._held_depth += 1
            return
        self._held_on = torch.device("cpu") if device is None else torch.device(device)
        comm = self._comm(self._held_on)
        with self._limited(comm, "a group of calls", self._set_limit):
            self._settle(comm)
        comm.group_begin()
        self._held, self._held_limit = [], math.inf

    @contextlib.contextmanager
    def _together(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Calls in the block start together."""
        if self._held is not None:
            yield
            return
        self.start_coalescing(tensors[0].device if tensors else None)
        try:
            yield
        except BaseException:
            self._held, self._held_depth = None, 0
            with contextlib.suppress(weft.Error):
                self._comm(self._held_on).group_end()
            raise
        self._start_held()

    def end_coalescing(self, device: torch.device | None = None) -> Work:
        if self._held_depth > 0:
            self._held_depth -= 1
            return Done([])
        self._start_held()
        return self._done([], self._held_on)

    def _start_held(self) -> None:
        """Start the calls that are held, and wait for those on the CPU."""
        held, self._held = self._held, None
        comm = self._comm(self._held_on)
        with self._limited(comm, "a group of calls", self._held_limit):
            comm.group_end()
        for follow in held or ():
            follow()
