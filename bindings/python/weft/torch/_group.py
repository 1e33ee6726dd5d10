"""A process group of torch.distributed whose collectives weft performs."""

import contextlib

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, Work

import weft

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


def finished(result):
    """A future that has its result."""
    future = torch.futures.Future()
    future.set_result(result)
    return future


class Done(Work):
    """A collective that is complete, or that the current stream will wait for."""

    def __init__(self, result):
        super().__init__()
        self._result = result

    def wait(self, timeout=None):
        """The current stream is already ordered after the collective."""
        return True

    def is_completed(self):
        """True: the host has nothing to wait for."""
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


class Message(Work):
    """A message that is under way on a stream of its own."""

    def __init__(self, work, tensors, finish):
        super().__init__()
        self._work, self._tensors, self._finish = work, tensors, finish

    def wait(self, timeout=None):
        """Wait until the message has arrived, or the tensor that was sent may change."""
        seconds = timeout.total_seconds() if timeout is not None else 0
        self._work.wait(seconds if seconds > 0 else -1)
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


def written(tensor):
    """A contiguous tensor to write to, and the tensor to copy it to afterwards, if there is one."""
    if tensor.is_contiguous():
        return tensor, None
    return torch.empty_like(tensor, memory_format=torch.contiguous_format), tensor


class ProcessGroup(Backend):
    """The ranks of a communicator of weft."""

    def __init__(self, comm):
        super().__init__(comm.rank, comm.size)
        self._comm = comm
        self._streams = {}  # of messages on the CPU, by direction and peer
        self._held = None  # while calls are coalesced: what follows their end

    def getBackendName(self):  # noqa: N802, D102
        return "weft"

    def name(self):  # noqa: D102
        return "weft"

    def _run(self, collective, send, recv, **options):
        """Post a collective.  The views of complex and dense data are those of DLPack."""
        given = send.detach() if send is not None and send.requires_grad else send
        taken = given if recv is send else recv.detach() if recv is not None and recv.requires_grad else recv
        if torch.autograd._profiler_enabled():
            with torch.profiler.record_function(f"weft:{collective}"):
                self._comm.collective(collective, given, taken, **options)
        else:
            self._comm.collective(collective, given, taken, **options)
        if self._held is not None:
            self._held.append(lambda: (given, taken))  # they live until the end

    def _copy(self, target, source):
        """Copy what a collective has written to the tensor that it is for, if that is another one."""
        if target is None:
            return
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
    supports_splitting = supports_shrinking = supports_tensor_alloc = supports_window = False
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = False

    def start_coalescing(self, device=None):
        self._comm.group_begin()
        self._held = []

    @contextlib.contextmanager
    def _together(self):
        """Calls in the block start together."""
        if self._held is not None:
            yield
            return
        self.start_coalescing()
        try:
            yield
        except BaseException:
            self._held = None
            with contextlib.suppress(weft.Error):
                self._comm.group_end()
            raise
        self.end_coalescing()

    def end_coalescing(self, device=None):
        held, self._held = self._held, None
        self._comm.group_end()
        for follow in held:
            follow()
        return Done([])

    # ---- one tensor ----

    def allreduce(self, tensors, options=None):
        op = reduction_of(options.reduceOp) if options is not None else "sum"
        for tensor in tensors:
            data, target = written(tensor)
            if target is not None:
                data.copy_(tensor)
            self._run("all_reduce", data, data, op=op)
            self._copy(target, data)
        return Done(tensors)

    def allreduce_coalesced(self, tensors, options=None):
        with self._together():
            return self.allreduce(tensors, options)

    def broadcast(self, tensors, options):
        for tensor in tensors:
            data, target = written(tensor)
            if target is not None:
                data.copy_(tensor)
            root = options.rootRank
            self._run("broadcast", data if self.rank() == root else None, data, root=root)
            self._copy(target, data)
        return Done(tensors)

    def reduce(self, tensors, options):
        (tensor,) = tensors
        data, target = written(tensor)
        if target is not None:
            data.copy_(tensor)
        is_root = self.rank() == options.rootRank
        self._run(
            "reduce", data, data if is_root else None,
            op=reduction_of(options.reduceOp), root=options.rootRank)  # fmt: skip
        if is_root:
            self._copy(target, data)
        return Done(tensors)

    # ---- gathers ----

    def _allgather_base(self, output, source, options=None):
        data, target = written(output)
        self._run("all_gather", source.contiguous(), data)
        self._copy(target, data)
        return Done([output])

    def allgather(self, outputs, sources, options=None):
        for targets, source in zip(outputs, sources):
            counts = [target.numel() for target in targets]
            block = torch.empty(sum(counts), dtype=source.dtype, device=source.device)
            mine = source.contiguous().reshape(-1)
            if len(set(counts)) == 1:
                self._run("all_gather", mine, block)
            else:
                self._run("all_gather_v", mine, block, recv_counts=counts)
            self._split(block, targets)
        return Done(outputs)

    def allgather_into_tensor_coalesced(self, outputs, sources, options=None):
        with self._together():
            for output, source in zip(outputs, sources):
                self._allgather_base(output, source)
        return Done(outputs)

    def allgather_coalesced(self, outputs, sources, options=None):
        with self._together():
            for number, source in enumerate(sources):
                self.allgather([[targets[number] for targets in outputs]], [source])
        return Done(outputs)

    def gather(self, outputs, sources, options):
        (source,) = sources
        mine = source.contiguous().reshape(-1)
        is_root = self.rank() == options.rootRank
        block = torch.empty(mine.numel() * self.size(), dtype=mine.dtype, device=mine.device) if is_root else None
        self._run("gather", mine, block, root=options.rootRank)
        if is_root:
            self._split(block, outputs[0])
        return Done(outputs)

    # ---- scatters ----

    def _reduce_scatter_base(self, output, source, options=None):
        op = reduction_of(options.reduceOp) if options is not None else "sum"
        data, target = written(output)
        self._run("reduce_scatter", source.contiguous(), data, op=op)
        self._copy(target, data)
        return Done([output])

    def reduce_scatter(self, outputs, sources, options):
        op = reduction_of(options.reduceOp)
        for output, parts in zip(outputs, sources):
            counts = [part.numel() for part in parts]
            block = torch.cat([part.reshape(-1) for part in parts])
            data, target = written(output)
            if len(set(counts)) == 1:
                self._run("reduce_scatter", block, data, op=op)
            else:
                self._run("reduce_scatter_v", block, data, op=op, send_counts=counts)
            self._copy(target, data)
        return Done(outputs)

    def reduce_scatter_tensor_coalesced(self, outputs, sources, options=None):
        with self._together():
            for output, source in zip(outputs, sources):
                self._reduce_scatter_base(output, source, options)
        return Done(outputs)

    def scatter(self, outputs, sources, options):
        (output,) = outputs
        is_root = self.rank() == options.rootRank
        block = torch.cat([part.reshape(-1) for part in sources[0]]) if is_root else None
        data, target = written(output)
        self._run("scatter", block, data, root=options.rootRank)
        self._copy(target, data)
        return Done(outputs)

    # ---- exchanges ----

    def alltoall_base(self, output, source, output_splits, input_splits, options=None):
        data, target = written(output)
        given = source.contiguous()
        if not output_splits and not input_splits:
            self._run("all_to_all", given, data)
        else:
            row_in = given.numel() // given.shape[0] if given.shape[0] else 0
            row_out = data.numel() // data.shape[0] if data.shape[0] else 0
            sends = input_splits or [given.shape[0] // self.size()] * self.size()
            receives = output_splits or [data.shape[0] // self.size()] * self.size()
            self._run(
                "all_to_all_v", given, data,
                send_counts=[count * row_in for count in sends],
                recv_counts=[count * row_out for count in receives])  # fmt: skip
        self._copy(target, data)
        return Done([output])

    def alltoall(self, outputs, sources, options=None):
        sends = [part.numel() for part in sources]
        receives = [part.numel() for part in outputs]
        block = torch.cat([part.reshape(-1) for part in sources])
        data = torch.empty(sum(receives), dtype=block.dtype, device=block.device)
        self._run("all_to_all_v", block, data, send_counts=sends, recv_counts=receives)
        self._split(data, outputs)
        return Done(outputs)

    # ---- messages ----

    def _stream(self, tensor, direction, peer):
        """A stream for messages in one direction, so that no message waits for another one but its own kind."""
        if tensor.device.type != "cpu" or self._held is not None:
            return None
        stream = self._streams.get((direction, peer))
        if stream is None:
            stream = self._streams[direction, peer] = weft.Stream(self._comm.context)
        return stream

    def _message(self, post, tensors, data, stream, peer, tag, finish):
        post(data.detach(), peer, tag, stream)
        if self._held is not None:
            self._held.append(lambda: (data, finish and finish()))
            return Done(tensors)
        work = weft.Work(self._comm.context, stream)
        return Message(work, [data, *tensors], finish)

    def send(self, tensors, peer, tag=0):
        (tensor,) = tensors
        stream = self._stream(tensor, "send", peer)
        return self._message(self._comm.send, tensors, tensor.contiguous(), stream, peer, tag, None)

    def recv(self, tensors, peer, tag=0):
        (tensor,) = tensors
        data, target = written(tensor)
        finish = None if target is None else lambda: target.copy_(data)
        stream = self._stream(tensor, "receive", peer)
        return self._message(self._comm.receive, tensors, data, stream, peer, tag, finish)

    def barrier(self, options=None):
        self._comm.barrier()
        self._comm.context.wait()
        return Done([])

    def abort(self):
        self._comm.abort()

    # ---- the names that PyTorch 2.15 calls ----

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base


def exchange_through(store, rank, size):
    """An all-gather over a store of torch, for weft.init."""
    calls = 0

    def exchange(mine):
        nonlocal calls
        calls += 1
        store.set(f"weft/{calls}/{rank}", mine)
        return b"".join(bytes(store.get(f"weft/{calls}/{other}")) for other in range(size))

    return exchange


def create(options, group_options=None):
    """The backend of a new group, as torch.distributed calls it."""
    store, rank, size = options.store, options.group_rank, options.group_size
    timeout = options.timeout.total_seconds()
    members = list(options.global_ranks_in_group or range(size))
    current = weft._current
    if current is None or current.closed:
        if members != list(range(size)):
            raise RuntimeError("the first group of a job with weft must have all its ranks")
        weft.init(rank=rank, size=size, timeout=timeout, exchange=exchange_through(store, rank, size))
    world = weft.Comm(weft.current())
    if members == list(range(world.size)):
        return ProcessGroup(world)
    return ProcessGroup(world.create(members, timeout=timeout))
