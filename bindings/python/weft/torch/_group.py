"""A process group of torch.distributed whose collectives weft performs."""

import contextlib
import functools
import math

import torch
import torch.distributed as dist

import weft

from . import _checks, _limits
from ._base import Base
from ._contexts import context_for, join, joined, limit_of
from ._reductions import LOCAL, reduction_of
from ._works import Collective, Done, Message, Posted, current_stream, is_over

UNLIMITED = contextlib.nullcontext()


def written(tensor):
    """A contiguous tensor to write to, and the tensor to copy it to afterwards, if there is one; without gradients."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor, None
    return torch.empty_like(tensor, memory_format=torch.contiguous_format), tensor


class ProcessGroup(Base):
    """Ranks of a job, with a communicator of weft for each kind of device that tensors are on."""

    def __init__(self, members, rank, limit, is_first):
        super().__init__(rank, len(members))
        self._members, self._limit = members, limit
        self._is_first = is_first  # of the job: it uses the communicator of all ranks itself
        self._set_limit = math.inf  # of set_timeout
        self._streams = {}  # of messages on the CPU, by direction and peer, then by tag; the members below outlive them
        self._queue = None  # the stream of collectives on the CPU that their callers wait for later
        self._under_way = []  # messages and collectives on the CPU: their work, and the tensors that must live until its end
        self._comms = {}  # by the type of a device
        self._held = None  # while calls are coalesced: what follows their end
        self._held_on = None  # while calls are coalesced: their device
        self._held_depth = 0  # coalesced blocks inside of the first one
        self._held_limit = math.inf  # the shortest of the calls
        self._begun = None  # while a collective is on the queue and its call goes on: what follows its end
        self._begun_limit = math.inf  # of that collective

    def getBackendName(self):  # noqa: N802, D102
        return "weft"

    def name(self):  # noqa: D102
        return "weft"

    def _comm(self, device, store=None):
        """The communicator for tensors on a device, made at its first use."""
        comm = self._comms.get(device.type)
        if comm is None:
            comm = weft.Comm(context_for(device, store))
            if not self._is_first or limit_of(device) != self._limit:
                comm = comm.create(self._members, timeout=self._limit)
            self._comms[device.type] = comm
        return comm

    def set_timeout(self, timeout):
        """A limit for the calls on the CPU that follow, if it is shorter than the one of the group's creation."""
        self._set_limit = _limits.seconds_of(timeout)

    def _limited(self, comm, call, seconds):
        """A block in which a call on the CPU ends after some seconds; the communicator itself has the group's limit."""
        return _limits.Limit(comm, seconds, call) if seconds < self._limit else UNLIMITED

    def _done(self, tensors, device):
        """The work object of a call on a device that has posted all its work."""
        if self._begun is not None:
            begun, self._begun = self._begun, None
            comm = self._comm(device)
            work = weft.Work(comm.context, self._queue)
            self._keep(work, begun)
            return Collective(work, tensors, lambda: [follow() for follow in begun], self._begun_limit, comm)
        if device.type == "cpu" or self._held is not None:
            return Done(tensors)
        return Posted(tensors, self._comm(device).context, device)

    def _settle(self, comm):
        """Wait for the collectives on the queue, so that all are in the order of their calls."""
        if self._queue is not None:
            comm.context.wait(self._queue)

    def _run(self, collective, send, recv, opts=None, **options):
        """Post a collective to the current stream.

        On the CPU it is complete at the end, unless the caller waits later: then it is on the queue, and _done ends the call.
        """
        given = send.detach() if send is not None and send.requires_grad else send
        taken = given if recv is send else recv.detach() if recv is not None and recv.requires_grad else recv
        device = (taken if given is None else given).device
        comm, limit, held, settle = self._comm(device), UNLIMITED, self._held, False
        seconds = min(self._set_limit, _limits.of_options(opts))
        if device.type != "cpu":
            options["stream"] = current_stream(device)
        elif held is not None:
            self._held_limit = min(self._held_limit, seconds)
        elif opts is not None and getattr(opts, "asyncOp", False):
            self._queue = self._queue or weft.Stream(comm.context)
            options["stream"], held = self._queue, []
        else:
            limit, settle = self._limited(comm, collective, seconds), True
        with limit:
            if settle:
                self._settle(comm)
            if torch.autograd._profiler_enabled():
                with torch.profiler.record_function(f"weft:{collective}"):
                    comm.collective(collective, given, taken, **options)
            else:
                comm.collective(collective, given, taken, **options)
        if held is not None:
            held.append(lambda: (given, taken))  # they live until the end
            if held is not self._held:
                self._begun, self._begun_limit = held, seconds

    def _copy(self, target, source):
        """Copy what a collective has written to the tensor that it is for, if that is another one."""
        if target is None:
            return
        target = target.detach()
        held = self._held if self._begun is None else self._begun
        if held is None:
            target.copy_(source)
        else:
            held.append(lambda: target.copy_(source))

    def _split(self, block, targets):
        """Copy the parts of a block, one after the other, to tensors."""
        for target, part in zip(targets, block.split([target.numel() for target in targets])):
            self._copy(target, part.view(target.shape))

    # ---- coalesced calls: they start together at the end ----

    def start_coalescing(self, device=None):
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
    def _together(self, tensors):
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
        self.end_coalescing()

    def end_coalescing(self, device=None):
        if self._held_depth > 0:
            self._held_depth -= 1
            return Done([])
        held, self._held = self._held, None
        comm = self._comm(self._held_on)
        with self._limited(comm, "a group of calls", self._held_limit):
            comm.group_end()
        for follow in held:
            follow()
        return self._done([], self._held_on)

    # ---- one tensor ----

    def _in_place(self, collective, tensor, opts, use, **options):
        """Run a collective whose result replaces a tensor; `use` tells whether this rank gives and takes one."""
        data, target = written(tensor)
        if target is not None:
            data.copy_(target)
        gives, takes = use
        self._run(collective, data if gives else None, data if takes else None, opts, **options)
        if takes:
            self._copy(target, data)

    def allreduce(self, tensors, opts=None):
        """Several tensors are reduced to one, which replaces each of them."""
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        first, *others = tensors
        _checks.equal("all_reduce", "tensor {}", tensors, "tensor 0", first)
        if not others:
            self._in_place("all_reduce", first, opts, (True, True), op=op)
            return self._done(tensors, first.device)
        if op not in LOCAL:
            raise ValueError(f"weft: all_reduce: {op} of several tensors is not defined; reduce them one after the other")
        data = functools.reduce(LOCAL[op], (tensor.detach() for tensor in tensors)).contiguous()
        self._run("all_reduce", data, data, opts, op=op)
        for tensor in tensors:
            self._copy(tensor, data)
        return self._done(tensors, first.device)

    def allreduce_coalesced(self, tensors, opts=None):
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        _checks.refuse_sparse("all_reduce_coalesced", tensors)
        shared = _checks.overlapping(tensors)
        with self._together(tensors):
            for number, tensor in enumerate(tensors):
                if number in shared:  # each is reduced as it was before the call
                    data = tensor.detach().clone(memory_format=torch.contiguous_format)
                    self._run("all_reduce", data, data, opts, op=op)
                    self._copy(tensor, data)
                else:
                    self._in_place("all_reduce", tensor, opts, (True, True), op=op)
        return self._done(tensors, tensors[0].device)

    def broadcast(self, tensors, opts):
        """The tensor that the options name, of the root, replaces all tensors."""
        root, number = _checks.root("broadcast", opts, self.size(), len(tensors))
        _checks.equal("broadcast", "tensor {}", tensors, f"tensor {number}", tensors[number])
        self._in_place("broadcast", tensors[number], opts, (self.rank() == root, True), root=root)
        for other, tensor in enumerate(tensors):
            if other != number:
                self._copy(tensor, tensors[number].detach())
        return self._done(tensors, tensors[0].device)

    def reduce(self, tensors, opts):
        tensor = _checks.one("reduce", "the list of tensors", tensors)
        _checks.refuse_sparse("reduce", tensors)
        root, _ = _checks.root("reduce", opts, self.size(), 1)
        self._in_place("reduce", tensor, opts, (True, self.rank() == root), op=reduction_of(opts.reduceOp), root=root)
        return self._done(tensors, tensor.device)

    # ---- gathers ----

    def _allgather_base(self, output, source, opts=None):
        _checks.joined("all_gather_into_tensor", "output", output, "input", source, self.size())
        data, target = written(output)
        self._run("all_gather", source.contiguous(), data, opts)
        self._copy(target, data)
        return self._done([output], output.device)

    def _agree_on_counts(self, source, counts, opts):
        """Compare the elements that ranks give with those that this rank expects.  On a device nothing is exchanged."""
        given = {self.rank(): source.numel()}
        if source.device.type == "cpu" and self._held is None:
            all_given = torch.empty(self.size(), dtype=torch.int64)
            self._run("all_gather", torch.tensor([source.numel()]), all_given, opts)
            given = dict(enumerate(all_given.tolist()))
        for rank, number in given.items():
            if number != counts[rank]:
                raise ValueError(
                    f"weft: all_gather: output {rank} has {counts[rank]} elements, but the input of rank {rank} has {number}")

    def allgather(self, outputs, sources, opts=None):
        """Outputs of different sizes are allowed if each has the size of its rank's input."""
        source, targets = _checks.one("all_gather", "the list of inputs", sources), _checks.one(
            "all_gather", "the list of output lists", outputs)
        _checks.count("all_gather", "the output list", targets, self.size(), "the number of ranks is")
        _checks.alike("all_gather", "tensor {} of input and outputs", [source, *targets])
        counts = [target.numel() for target in targets]
        is_even = all(target.shape == targets[0].shape for target in targets)
        if is_even:
            _checks.equal("all_gather", "output {}", targets, "the input", source)
        else:
            self._agree_on_counts(source, counts, opts)
        block = torch.empty(sum(counts), dtype=source.dtype, device=source.device)
        mine = source.contiguous().reshape(-1)
        if is_even:
            self._run("all_gather", mine, block, opts)
        else:
            self._run("all_gather_v", mine, block, opts, recv_counts=counts)
        self._split(block, targets)
        return self._done(outputs, source.device)

    def allgather_into_tensor_coalesced(self, outputs, sources, opts=None):
        _checks.count("all_gather_into_tensor", "the list of outputs", outputs, len(sources), "the number of inputs is")
        for output, source in zip(outputs, sources):
            _checks.joined("all_gather_into_tensor", "output", output, "input", source, self.size())
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._allgather_base(output, source, opts)
        return self._done(outputs, sources[0].device)

    def allgather_coalesced(self, outputs, sources, opts=None):
        call = "all_gather_coalesced"
        _checks.count(call, "the list of output lists", outputs, self.size(), "the number of ranks is")
        for targets in outputs:
            _checks.count(call, "an output list", targets, len(sources), "the number of inputs is")
        for number, source in enumerate(sources):
            own = [targets[number] for targets in outputs]
            _checks.equal(call, f"output {number} of rank {{}}", own, f"input {number}", source)
        with self._together(sources):
            for number, source in enumerate(sources):
                self.allgather([[targets[number] for targets in outputs]], [source], opts)
        return self._done(outputs, sources[0].device)

    def gather(self, outputs, sources, opts):
        source = _checks.one("gather", "the list of inputs", sources)
        _checks.refuse_sparse("gather", sources)
        root, _ = _checks.root("gather", opts, self.size(), 1)
        mine = source.contiguous().reshape(-1)
        block = None
        if self.rank() == root:
            targets = _checks.one("gather", "the list of output lists", outputs)
            _checks.count("gather", "the output list", targets, self.size(), "the number of ranks is")
            _checks.equal("gather", "output {}", targets, "the input", source)
            block = torch.empty(mine.numel() * self.size(), dtype=mine.dtype, device=mine.device)
        self._run("gather", mine, block, opts, root=root)
        if block is not None:
            self._split(block, targets)
        return self._done(outputs, source.device)

    # ---- scatters ----

    def _reduce_scatter_base(self, output, source, opts=None):
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        _checks.joined("reduce_scatter_tensor", "input", source, "output", output, self.size())
        data, target = written(output)
        self._run("reduce_scatter", source.contiguous(), data, opts, op=op)
        self._copy(target, data)
        return self._done([output], output.device)

    def reduce_scatter(self, outputs, sources, opts):
        op = reduction_of(opts.reduceOp)
        output = _checks.one("reduce_scatter", "the list of outputs", outputs)
        parts = _checks.one("reduce_scatter", "the list of input lists", sources)
        _checks.count("reduce_scatter", "the input list", parts, self.size(), "the number of ranks is")
        _checks.alike("reduce_scatter", "tensor {} of output and inputs", [output, *parts])
        _checks.equal("reduce_scatter", "the output", outputs, f"input {self.rank()}", parts[self.rank()])
        counts = [part.numel() for part in parts]
        block = torch.cat([part.reshape(-1) for part in parts])
        data, target = written(output)
        if len(set(counts)) == 1:
            self._run("reduce_scatter", block, data, opts, op=op)
        else:
            self._run("reduce_scatter_v", block, data, opts, op=op, send_counts=counts)
        self._copy(target, data)
        return self._done(outputs, output.device)

    def reduce_scatter_tensor_coalesced(self, outputs, sources, opts=None):
        _checks.count("reduce_scatter_tensor", "the list of outputs", outputs, len(sources), "the number of inputs is")
        for output, source in zip(outputs, sources):
            _checks.joined("reduce_scatter_tensor", "input", source, "output", output, self.size())
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._reduce_scatter_base(output, source, opts)
        return self._done(outputs, sources[0].device)

    def scatter(self, outputs, sources, opts):
        output = _checks.one("scatter", "the list of outputs", outputs)
        _checks.refuse_sparse("scatter", outputs)
        root, _ = _checks.root("scatter", opts, self.size(), 1)
        block = None
        if self.rank() == root:
            parts = _checks.one("scatter", "the list of input lists", sources)
            _checks.count("scatter", "the input list", parts, self.size(), "the number of ranks is")
            _checks.equal("scatter", "input {}", parts, "the output", output)
            block = torch.cat([part.reshape(-1) for part in parts])
        data, target = written(output)
        self._run("scatter", block, data, opts, root=root)
        self._copy(target, data)
        return self._done(outputs, output.device)

    # ---- exchanges ----

    def alltoall_base(self, output, source, output_splits, input_splits, opts=None):
        """Ranks that state splits and ranks that do not may meet, so that all call the form with counts."""
        call = "all_to_all_single"
        _checks.alike(call, "tensor {} of input and output", [source, output])
        sends = _checks.rows(call, "input", source, input_splits, self.size())
        receives = _checks.rows(call, "output", output, output_splits, self.size())
        if not input_splits and not output_splits and sends != receives:
            raise ValueError(f"weft: {call}: each rank gets {sends[0]} elements of input, but output has {receives[0]} from each")
        data, target = written(output)
        self._run("all_to_all_v", source.contiguous(), data, opts, send_counts=sends, recv_counts=receives)
        self._copy(target, data)
        return self._done([output], output.device)

    def alltoall(self, outputs, sources, opts=None):
        """The parts may differ in size; weft then compares those of all ranks."""
        for name, tensors in (("the input list", sources), ("the output list", outputs)):
            _checks.count("all_to_all", name, tensors, self.size(), "the number of ranks is")
        _checks.alike("all_to_all", "tensor {} of inputs and outputs", [*sources, *outputs])
        if all(part.shape == parts[0].shape for parts in (sources, outputs) for part in parts):
            _checks.equal("all_to_all", "output {}", outputs, "input 0", sources[0])
        sends = [part.numel() for part in sources]
        receives = [part.numel() for part in outputs]
        block = torch.cat([part.reshape(-1) for part in sources])
        data = torch.empty(sum(receives), dtype=block.dtype, device=block.device)
        self._run("all_to_all_v", block, data, opts, send_counts=sends, recv_counts=receives)
        self._split(data, outputs)
        return self._done(outputs, block.device)

    # ---- messages ----

    def _stream(self, comm, device, direction, peer, tag):
        """The current stream; on the CPU one on which no message with another direction, peer or tag is under way."""
        if device.type != "cpu":
            return current_stream(device)
        if self._held is not None:
            return None
        streams = self._streams.setdefault((direction, peer), {})  # by tag
        stream = streams.get(tag)
        if stream is None:
            idle = next((other for other, stream in streams.items() if stream.test()), None)
            stream = streams[tag] = weft.Stream(comm.context) if idle is None else streams.pop(idle)
        return stream

    def _keep(self, work, tensors):
        """Keep the tensors of a message until a message after its end, also if the caller keeps no work object."""
        self._under_way = [entry for entry in self._under_way if not is_over(entry[0])]
        self._under_way.append((work, tensors))

    def _message(self, direction, tensors, data, peer, tag, finish):
        device = data.device
        comm = self._comm(device)
        stream = self._stream(comm, device, direction, peer, tag)
        post = comm.send if direction == "send" else comm.receive
        post(data.detach(), peer, tag, stream)
        if self._held is not None:
            self._held.append(lambda: (data, finish and finish()))
            return Done(tensors)
        if device.type == "cpu":
            work = weft.Work(comm.context, stream)
            self._keep(work, [data, *tensors])
            return Message(work, [data, *tensors], finish, self._set_limit)
        if finish is not None:
            finish()
        return self._done(tensors, device)

    def send(self, tensors, peer, tag=0):
        tensor = _checks.one("send", "the list of tensors", tensors)
        _checks.refuse_sparse("send", tensors)
        return self._message("send", tensors, tensor.contiguous(), peer, tag, None)

    def recv(self, tensors, peer, tag=0):
        tensor = _checks.one("recv", "the list of tensors", tensors)
        _checks.refuse_sparse("recv", tensors)
        data, target = written(tensor)
        finish = None if target is None else lambda: target.copy_(data)
        return self._message("receive", tensors, data, peer, tag, finish)

    def barrier(self, opts=None):
        """Wait for the current stream, and for all ranks."""
        if any(kind != "cpu" for kind in self._comms):
            torch.cuda.current_stream().synchronize()
        comm = self._comm(torch.device("cpu"))
        with self._limited(comm, "barrier", min(self._set_limit, _limits.of_options(opts))):
            self._settle(comm)
            comm.barrier()
            comm.context.wait()
        return Done([])

    def abort(self):
        for comm in self._comms.values():
            comm.abort()

    # ---- the names that PyTorch 2.15 calls ----

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base


def create(options, group_options=None):
    """The backend of a new group, as torch.distributed calls it."""
    size, limit = options.group_size, min(_limits.seconds_of(options.timeout), _limits.of_environment())
    members = list(options.global_ranks_in_group or range(size))
    is_default = not dist.is_initialized()
    is_first = is_default or not joined()
    if is_first:
        if members != list(range(size if is_default else dist.get_world_size())):
            raise RuntimeError("the first group of a job with weft must have all its ranks")
        join(options.group_rank, size, limit)
    group = ProcessGroup(members, options.group_rank, limit, is_first)
    group._comm(torch.device("cpu"), options.store)
    return group
