"""A process group of torch.distributed whose collectives weft performs."""

import contextlib
import functools

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend

import weft

from ._contexts import context_for, join, joined
from ._works import Done, Message, Posted, current_stream, is_over

REDUCTIONS = {
    dist.ReduceOp.SUM: "sum", dist.ReduceOp.PRODUCT: "prod", dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max", dist.ReduceOp.AVG: "avg", dist.ReduceOp.BAND: "band",
    dist.ReduceOp.BOR: "bor", dist.ReduceOp.BXOR: "bxor",
}  # fmt: skip


SUM = dist.ReduceOp.SUM


def reduction_of(op):
    """The name of a reduction of torch."""
    kind = getattr(op, "op", op)
    if kind == SUM:
        return "sum"
    name = REDUCTIONS.get(kind)
    if name is None:
        raise ValueError(f"weft has no reduction {op}")
    return name


def written(tensor):
    """A contiguous tensor to write to, and the tensor to copy it to afterwards, if there is one; without gradients."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor, None
    return torch.empty_like(tensor, memory_format=torch.contiguous_format), tensor


# PyTorch 2.11 has no constructor of Backend in Python.  A group is then a ProcessGroup itself.
IS_BACKEND = hasattr(Backend, "split")


class ProcessGroup(Backend if IS_BACKEND else dist.ProcessGroup):
    """Ranks of a job, with a communicator of weft for each kind of device that tensors are on."""

    def __init__(self, members, rank, timeout, is_first):
        super().__init__(rank, len(members))
        self._members, self._timeout = members, timeout
        self._is_first = is_first  # of the job: it uses the communicator of all ranks itself
        self._streams = {}  # of messages on the CPU, by direction and peer, then by tag; the members below outlive them
        self._under_way = []  # messages on the CPU: their work, and the tensors that must live until its end
        self._comms = {}  # by the type of a device
        self._held = None  # while calls are coalesced: what follows their end
        self._held_on = None  # while calls are coalesced: their device
        self._held_depth = 0  # coalesced blocks inside of the first one

    def getBackendName(self):  # noqa: N802, D102
        return "weft"

    def name(self):  # noqa: D102
        return "weft"

    def _comm(self, device):
        """The communicator for tensors on a device, made at its first use."""
        comm = self._comms.get(device.type)
        if comm is None:
            world = weft.Comm(context_for(device))
            if not self._is_first:
                world = world.create(self._members, timeout=self._timeout)
            comm = self._comms[device.type] = world
        return comm

    def _done(self, tensors, device):
        """The work object of a call on a device that has posted all its work."""
        if device.type == "cpu" or self._held is not None:
            return Done(tensors)
        return Posted(tensors, self._comm(device).context, device)

    def _run(self, collective, send, recv, **options):
        """Post a collective to the current stream."""
        given = send.detach() if send is not None and send.requires_grad else send
        taken = given if recv is send else recv.detach() if recv is not None and recv.requires_grad else recv
        device = (taken if given is None else given).device
        comm = self._comm(device)
        if device.type != "cpu":
            options["stream"] = current_stream(device)
        if torch.autograd._profiler_enabled():
            with torch.profiler.record_function(f"weft:{collective}"):
                comm.collective(collective, given, taken, **options)
        else:
            comm.collective(collective, given, taken, **options)
        if self._held is not None:
            self._held.append(lambda: (given, taken))  # they live until the end

    def _copy(self, target, source):
        """Copy what a collective has written to the tensor that it is for, if that is another one."""
        if target is None:
            return
        target = target.detach()
        if self._held is None:
            target.copy_(source)
        else:
            self._held.append(lambda: target.copy_(source))

    def _split(self, block, targets):
        """Copy the parts of a block, one after the other, to tensors."""
        for target, part in zip(targets, block.split([target.numel() for target in targets])):
            self._copy(target, part.view(target.shape))

    # ---- coalesced calls: they start together at the end ----

    # Attributes, because the property of the base class asks the derived class, which is itself.
    supports_coalescing = True
    supports_splitting = supports_shrinking = supports_window = False
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = supports_time_estimate = False

    def supports_tensor_alloc(self, device):
        return False

    def start_coalescing(self, device=None):
        if self._held is not None:
            self._held_depth += 1
            return
        self._held_on = torch.device("cpu") if device is None else torch.device(device)
        self._comm(self._held_on).group_begin()
        self._held = []

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
        self._comm(self._held_on).group_end()
        for follow in held:
            follow()
        return self._done([], self._held_on)

    # ---- one tensor ----

    def allreduce(self, tensors, opts=None):
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        for tensor in tensors:
            data, target = written(tensor)
            if target is not None:
                data.copy_(target)
            self._run("all_reduce", data, data, op=op)
            self._copy(target, data)
        return self._done(tensors, tensors[0].device)

    def allreduce_coalesced(self, tensors, opts=None):
        with self._together(tensors):
            self.allreduce(tensors, opts)
        return self._done(tensors, tensors[0].device)

    def broadcast(self, tensors, opts):
        for tensor in tensors:
            data, target = written(tensor)
            if target is not None:
                data.copy_(target)
            root = opts.rootRank
            self._run("broadcast", data if self.rank() == root else None, data, root=root)
            self._copy(target, data)
        return self._done(tensors, tensors[0].device)

    def reduce(self, tensors, opts):
        (tensor,) = tensors
        data, target = written(tensor)
        if target is not None:
            data.copy_(target)
        is_root = self.rank() == opts.rootRank
        self._run(
            "reduce", data, data if is_root else None,
            op=reduction_of(opts.reduceOp), root=opts.rootRank)  # fmt: skip
        if is_root:
            self._copy(target, data)
        return self._done(tensors, tensors[0].device)

    # ---- gathers ----

    def _allgather_base(self, output, source, opts=None):
        data, target = written(output)
        self._run("all_gather", source.contiguous(), data)
        self._copy(target, data)
        return self._done([output], output.device)

    def allgather(self, outputs, sources, opts=None):
        for targets, source in zip(outputs, sources):
            counts = [target.numel() for target in targets]
            block = torch.empty(sum(counts), dtype=source.dtype, device=source.device)
            mine = source.contiguous().reshape(-1)
            if len(set(counts)) == 1:
                self._run("all_gather", mine, block)
            else:
                self._run("all_gather_v", mine, block, recv_counts=counts)
            self._split(block, targets)
        return self._done(outputs, sources[0].device)

    def allgather_into_tensor_coalesced(self, outputs, sources, opts=None):
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._allgather_base(output, source)
        return self._done(outputs, sources[0].device)

    def allgather_coalesced(self, outputs, sources, opts=None):
        with self._together(sources):
            for number, source in enumerate(sources):
                self.allgather([[targets[number] for targets in outputs]], [source])
        return self._done(outputs, sources[0].device)

    def gather(self, outputs, sources, opts):
        (source,) = sources
        mine = source.contiguous().reshape(-1)
        is_root = self.rank() == opts.rootRank
        block = torch.empty(mine.numel() * self.size(), dtype=mine.dtype, device=mine.device) if is_root else None
        self._run("gather", mine, block, root=opts.rootRank)
        if is_root:
            self._split(block, outputs[0])
        return self._done(outputs, source.device)

    # ---- scatters ----

    def _reduce_scatter_base(self, output, source, opts=None):
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        data, target = written(output)
        self._run("reduce_scatter", source.contiguous(), data, op=op)
        self._copy(target, data)
        return self._done([output], output.device)

    def reduce_scatter(self, outputs, sources, opts):
        op = reduction_of(opts.reduceOp)
        for output, parts in zip(outputs, sources):
            counts = [part.numel() for part in parts]
            block = torch.cat([part.reshape(-1) for part in parts])
            data, target = written(output)
            if len(set(counts)) == 1:
                self._run("reduce_scatter", block, data, op=op)
            else:
                self._run("reduce_scatter_v", block, data, op=op, send_counts=counts)
            self._copy(target, data)
        return self._done(outputs, outputs[0].device)

    def reduce_scatter_tensor_coalesced(self, outputs, sources, opts=None):
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._reduce_scatter_base(output, source, opts)
        return self._done(outputs, sources[0].device)

    def scatter(self, outputs, sources, opts):
        (output,) = outputs
        is_root = self.rank() == opts.rootRank
        block = torch.cat([part.reshape(-1) for part in sources[0]]) if is_root else None
        data, target = written(output)
        self._run("scatter", block, data, root=opts.rootRank)
        self._copy(target, data)
        return self._done(outputs, output.device)

    # ---- exchanges ----

    def _counts(self, tensor, splits, name):
        """The elements of each rank's part of a tensor.  Without splits, the parts are equal."""
        size, rows = self.size(), tensor.shape[0]
        if not splits and rows % size:
            raise ValueError(f"{name} has {rows} rows, which do not divide equally among {size} ranks; give the splits")
        splits = splits or [rows // size] * size
        if len(splits) != size or sum(splits) != rows:
            raise ValueError(f"the splits of {name} are {list(splits)}; expected {size} numbers with the sum {rows}")
        row = tensor.numel() // rows if rows else 0
        return [count * row for count in splits]

    def alltoall_base(self, output, source, output_splits, input_splits, opts=None):
        """Ranks that state splits and ranks that do not may meet, so that all call the form with counts."""
        data, target = written(output)
        given = source.contiguous()
        sends, receives = self._counts(given, input_splits, "input"), self._counts(data, output_splits, "output")
        self._run("all_to_all_v", given, data, send_counts=sends, recv_counts=receives)
        self._copy(target, data)
        return self._done([output], output.device)

    def alltoall(self, outputs, sources, opts=None):
        sends = [part.numel() for part in sources]
        receives = [part.numel() for part in outputs]
        block = torch.cat([part.reshape(-1) for part in sources])
        data = torch.empty(sum(receives), dtype=block.dtype, device=block.device)
        self._run("all_to_all_v", block, data, send_counts=sends, recv_counts=receives)
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
            return Message(work, [data, *tensors], finish)
        if finish is not None:
            finish()
        return self._done(tensors, device)

    def send(self, tensors, peer, tag=0):
        (tensor,) = tensors
        return self._message("send", tensors, tensor.contiguous(), peer, tag, None)

    def recv(self, tensors, peer, tag=0):
        (tensor,) = tensors
        data, target = written(tensor)
        finish = None if target is None else lambda: target.copy_(data)
        return self._message("receive", tensors, data, peer, tag, finish)

    def barrier(self, opts=None):
        """Wait for the current stream, and for all ranks."""
        if any(kind != "cpu" for kind in self._comms):
            torch.cuda.current_stream().synchronize()
        comm = self._comm(torch.device("cpu"))
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


    # ---- what PyTorch 2.11 asks of a process group that is not a Backend ----

    if not IS_BACKEND:
        _name = _description = ""

        def setGroupName(self, name):  # noqa: N802
            self._name = name

        def getGroupName(self):  # noqa: N802
            return self._name

        def setGroupDesc(self, description):  # noqa: N802
            self._description = description

        def getGroupDesc(self):  # noqa: N802
            return self._description

        group_name = property(getGroupName)
        group_desc = property(getGroupDesc)

        @property
        def _device_types(self):
            return [torch.device("cpu"), torch.device("cuda")] if torch.cuda.is_available() else [torch.device("cpu")]

        def _get_backend(self, device):
            return self

        def _start_coalescing(self, device):
            self.start_coalescing(device)

        def _end_coalescing(self, device):
            return self.end_coalescing(device)

        def _set_sequence_number_for_group(self):
            pass


def coalesce_messages(batch_of_torch):
    """A batch_isend_irecv for PyTorch 2.11, which coalesces the messages of its own class of groups only."""

    @functools.wraps(batch_of_torch)
    def batch_isend_irecv(p2p_op_list):
        group = p2p_op_list[0].group if p2p_op_list else None
        group = dist.group.WORLD if group is None else group
        if not isinstance(group, ProcessGroup):
            return batch_of_torch(p2p_op_list)
        group.start_coalescing(p2p_op_list[0].tensor.device)
        try:
            batch_of_torch(p2p_op_list)
        finally:
            work = group.end_coalescing()
        return [work]

    return batch_isend_irecv


def create(options, group_options=None):
    """The backend of a new group, as torch.distributed calls it."""
    size, timeout = options.group_size, options.timeout.total_seconds()
    members = list(options.global_ranks_in_group or range(size))
    is_default = not dist.is_initialized()
    is_first = is_default or not joined()
    if is_first:
        if members != list(range(size if is_default else dist.get_world_size())):
            raise RuntimeError("the first group of a job with weft must have all its ranks")
        join(options.store, options.group_rank, size, timeout)
    group = ProcessGroup(members, options.group_rank, timeout, is_first)
    group._comm(torch.device("cpu"))
    return group
