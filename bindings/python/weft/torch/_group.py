"""A process group of torch.distributed whose collectives weft performs."""

from __future__ import annotations

import functools

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import (  # fmt: skip
    AllgatherOptions, AllreduceOptions, AllToAllOptions, Backend, BarrierOptions, BroadcastOptions, DebugLevel, GatherOptions,
    ReduceOptions, ReduceScatterOptions, ScatterOptions, Work, _DistributedBackendOptions, get_debug_level,
)

import weft

from . import _barrier, _checks, _limits, _sparse
from ._calls import Calls, Follow, written
from ._contexts import join, joined
from ._reductions import LOCAL, reduction_of
from ._works import Done, Message, current_stream


class ProcessGroup(Calls):
    """Ranks of a job, with a communicator of weft for each kind of device that tensors are on."""

    def getBackendName(self) -> str:  # noqa: N802, D102
        return "weft"

    def name(self) -> str:  # noqa: D102
        return "weft"

    # ---- one tensor ----

    def allreduce(self, tensors: list[Tensor], opts: AllreduceOptions | None = None) -> Work:
        """Several tensors are reduced to one, which replaces each of them."""
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        first, *others = tensors
        if not others and first.layout is torch.sparse_coo and first.device.type == "cpu" and self._held is None:
            return self._all_reduce_sparse(first, op, opts)
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

    def _all_reduce_sparse(self, tensor: Tensor, op: str, opts: AllreduceOptions | None) -> Work:
        """Complete when it returns, also if its caller waits later."""
        if op != "sum":
            raise weft.UnsupportedError(f"weft: all_reduce: {op} of a sparse tensor is not defined, but the sum is")

        def gather(mine: Tensor, whole: Tensor, counts: list[int] | None) -> None:
            self._run("all_gather" if counts is None else "all_gather_v", mine, whole, opts, complete=True, recv_counts=counts)

        total = _sparse.sum_of(tensor, self.rank(), self.size(), gather)
        with torch.no_grad():
            tensor.copy_(total)
        return self._done([tensor], tensor.device)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: AllreduceOptions | None = None) -> Work:
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

    def broadcast(self, tensors: list[Tensor], opts: BroadcastOptions) -> Work:
        """The tensor that the options name, of the root, replaces all tensors."""
        root, number = _checks.root("broadcast", opts, self.size(), len(tensors))
        _checks.equal("broadcast", "tensor {}", tensors, f"tensor {number}", tensors[number])
        self._in_place("broadcast", tensors[number], opts, (self.rank() == root, True), root=root)
        for other, tensor in enumerate(tensors):
            if other != number:
                self._copy(tensor, tensors[number].detach())
        return self._done(tensors, tensors[0].device)

    def reduce(self, tensors: list[Tensor], opts: ReduceOptions) -> Work:
        tensor = _checks.one("reduce", "the list of tensors", tensors)
        _checks.refuse_sparse("reduce", tensors)
        root, _ = _checks.root("reduce", opts, self.size(), 1)
        self._in_place("reduce", tensor, opts, (True, self.rank() == root), op=reduction_of(opts.reduceOp), root=root)
        return self._done(tensors, tensor.device)

    # ---- gathers ----

    def _allgather_base(self, output: Tensor, source: Tensor, opts: AllgatherOptions | None = None) -> Work:
        _checks.joined("all_gather_into_tensor", "output", output, "input", source, self.size())
        data, target = written(output)
        self._run("all_gather", source.contiguous(), data, opts)
        self._copy(target, data)
        return self._done([output], output.device)

    def _agree_on_counts(self, source: Tensor, counts: list[int], opts: object) -> None:
        """Compare the elements that ranks give with those that this rank expects.  On a device nothing is exchanged."""
        given = {self.rank(): source.numel()}
        if source.device.type == "cpu" and self._held is None:
            all_given = torch.empty(self.size(), dtype=torch.int64)
            self._run("all_gather", torch.tensor([source.numel()]), all_given, opts, complete=True)
            given = dict(enumerate(all_given.tolist()))
        for rank, number in given.items():
            if number != counts[rank]:
                raise ValueError(
                    f"weft: all_gather: output {rank} has {counts[rank]} elements, but the input of rank {rank} has {number}")

    def allgather(
        self, outputs: list[list[Tensor]], sources: list[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
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
        return self._done(targets, source.device)

    def allgather_into_tensor_coalesced(
        self, outputs: list[Tensor], sources: list[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
        _checks.count("all_gather_into_tensor", "the list of outputs", outputs, len(sources), "the number of inputs is")
        for output, source in zip(outputs, sources):
            _checks.joined("all_gather_into_tensor", "output", output, "input", source, self.size())
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._allgather_base(output, source, opts)
        return self._done(outputs, sources[0].device)

    def allgather_coalesced(
        self, outputs: list[list[Tensor]], sources: list[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
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

    def gather(self, outputs: list[list[Tensor]], sources: list[Tensor], opts: GatherOptions) -> Work:
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
        return self._done(outputs[0] if outputs else [], source.device)

    # ---- scatters ----

    def _reduce_scatter_base(
        self, output: Tensor, source: Tensor, opts: ReduceScatterOptions | None = None
    ) -> Work:
        op = reduction_of(opts.reduceOp) if opts is not None else "sum"
        _checks.joined("reduce_scatter_tensor", "input", source, "output", output, self.size())
        data, target = written(output)
        self._run("reduce_scatter", source.contiguous(), data, opts, op=op)
        self._copy(target, data)
        return self._done([output], output.device)

    def reduce_scatter(
        self, outputs: list[Tensor], sources: list[list[Tensor]], opts: ReduceScatterOptions
    ) -> Work:
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

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[Tensor], sources: list[Tensor], opts: ReduceScatterOptions | None = None
    ) -> Work:
        _checks.count("reduce_scatter_tensor", "the list of outputs", outputs, len(sources), "the number of inputs is")
        for output, source in zip(outputs, sources):
            _checks.joined("reduce_scatter_tensor", "input", source, "output", output, self.size())
        with self._together(sources):
            for output, source in zip(outputs, sources):
                self._reduce_scatter_base(output, source, opts)
        return self._done(outputs, sources[0].device)

    def scatter(self, outputs: list[Tensor], sources: list[list[Tensor]], opts: ScatterOptions) -> Work:
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

    def alltoall_base(
        self, output: Tensor, source: Tensor, output_splits: list[int] | None, input_splits: list[int] | None,
        opts: AllToAllOptions | None = None,
    ) -> Work:  # fmt: skip
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

    def alltoall(
        self, outputs: list[Tensor], sources: list[Tensor], opts: AllToAllOptions | None = None
    ) -> Work:
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

    def _stream(
        self, comm: weft.Comm, device: torch.device, direction: str, peer: int, tag: int
    ) -> weft.Stream | int | None:
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

    def _message(
        self, direction: str, tensors: list[Tensor], data: Tensor, peer: int, tag: int, finish: Follow | None
    ) -> Work:
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
            self._sequence += 1
            return Message(work, [data, *tensors], finish, self._set_limit)
        if finish is not None:
            finish()
        return self._done(tensors, device)

    def send(self, tensors: list[Tensor], peer: int, tag: int = 0) -> Work:
        tensor = _checks.one("send", "the list of tensors", tensors)
        _checks.refuse_sparse("send", tensors)
        return self._message("send", tensors, tensor.contiguous(), peer, tag, None)

    def recv(self, tensors: list[Tensor], peer: int, tag: int = 0) -> Work:
        tensor = _checks.one("recv", "the list of tensors", tensors)
        _checks.refuse_sparse("recv", tensors)
        data, target = written(tensor)
        finish = None if target is None else lambda: target.copy_(data)
        return self._message("receive", tensors, data, peer, tag, finish)

    def barrier(self, opts: BarrierOptions | None = None) -> Work:
        """Wait for the current stream, and for all ranks."""
        if any(kind != "cpu" for kind in self._comms):
            torch.cuda.current_stream().synchronize()
        comm = self._comm(torch.device("cpu"))
        with self._limited(comm, "barrier", min(self._set_limit, _limits.of_options(opts))):
            self._settle(comm)
            comm.barrier()
            comm.context.wait()
        self._sequence += 1
        return Done([])

    def monitored_barrier(self, opts: BarrierOptions, wait_all_ranks: bool = False) -> None:
        """A barrier through the store of the default group, whose error names the ranks that did not come."""
        seconds = min(_limits.of_options(opts), self._limit)
        self._barriers += 1
        place = f"weft/monitored/{self._name}/{self._barriers}"
        _barrier.wait_for_all(place, self.rank(), self.size(), seconds, wait_all_ranks)

    def abort(self) -> None:
        for comm in self._comms.values():
            comm.abort()

    # ---- the names that PyTorch 2.15 calls ----

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base


# By name: with TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch wraps a group and does not keep its object of Python.
_kept: dict[str, ProcessGroup] = {}


def create(options: _DistributedBackendOptions, group_options: Backend.Options | None = None) -> ProcessGroup:
    """The backend of a new group, as torch.distributed calls it."""
    for name in _kept.keys() - set(dist.distributed_c10d._world.pg_names.values()):
        del _kept[name]
    size, limit = options.group_size, min(_limits.seconds_of(options.timeout), _limits.of_environment())
    members = list(options.global_ranks_in_group or range(size))
    is_default = not dist.is_initialized()
    is_first = is_default or not joined()
    if is_first:
        if members != list(range(size if is_default else dist.get_world_size())):
            raise RuntimeError("the first group of a job with weft must have all its ranks")
        join(options.group_rank, size, limit, options.store)
    group = ProcessGroup(members, options.group_rank, limit, is_first, options.group_id)
    group._comm(torch.device("cpu"), options.store)
    if get_debug_level() == DebugLevel.DETAIL:
        _kept[options.group_id] = group
    return group
