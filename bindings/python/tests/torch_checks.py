"""Calls of torch.distributed that are wrong, or right in a rare way: torch_checks.py BACKEND PATH

Each is a function that returns tensors, or raises an exception.  What became of each is written to PATH.RANK, which
tests compare between backends.
"""

import pathlib
import sys

import torch
import torch.distributed as dist
from torch import empty, ones, zeros
from torch._C._distributed_c10d import (
    AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, BroadcastOptions, ReduceOptions, ReduceScatterOptions,
)

CALLS = []


def call(function):
    CALLS.append(function)
    return function


def calls(name, function, **arguments):
    """A call for each keyword, whose value has the arguments of the function."""
    for keyword, values in arguments.items():
        CALLS.append(lambda values=values: function(*values()))
        CALLS[-1].__name__ = f"{name}_{keyword}"


def with_options(options, **values):
    for name, value in values.items():
        setattr(options, name, value)
    return options


def double(*shape):
    return empty(*shape, dtype=torch.float64)


def number():
    return dist.get_rank() + 1.0


# ---- several tensors in one call of a group ----


def reduced(*tensors, **options):
    dist.group.WORLD.allreduce(list(tensors), with_options(AllreduceOptions(), **options)).wait()
    return tensors


def broadcast(*tensors, **options):
    dist.group.WORLD.broadcast(list(tensors), with_options(BroadcastOptions(), **options)).wait()
    return tensors


def two():
    return zeros(2) + number(), zeros(2) + 10 * number()


calls(
    "all_reduce", reduced, two=two, shapes=lambda: (ones(2), ones(3)), dtypes=lambda: (ones(2), double(2)),
    strided=lambda: (ones(2, 3).t(), 2 * ones(3, 2), ones(3, 2)))  # fmt: skip


@call
def all_reduce_largest():
    return reduced(*two(), reduceOp=dist.ReduceOp.MAX)


@call
def broadcast_first():
    return broadcast(*two(), rootRank=1)


@call
def broadcast_second():
    return broadcast(*two(), rootRank=1, rootTensor=1)


@call
def broadcast_third():
    return broadcast(*two(), rootRank=1, rootTensor=2)


@call
def broadcast_from_nobody():
    return broadcast(*two(), rootRank=5)


@call
def broadcast_shapes():
    return broadcast(ones(2), ones(3))


@call
def reduce_two():
    dist.group.WORLD.reduce(list(two()), ReduceOptions()).wait()


@call
def all_reduce_coalesced_same():
    x, whole = ones(2), zeros(6) + number()
    parts = [x, whole[:4], x, whole[2:]]
    dist.group.WORLD.allreduce_coalesced(parts, AllreduceCoalescedOptions()).wait()
    return x, whole[:2], whole[4:]  # the elements between are in two tensors, and nothing says which is written last


# ---- inputs and outputs ----


def all_gather(outs, source):
    dist.all_gather(outs, source)
    return outs


calls(
    "all_gather", all_gather,
    right=lambda: ([empty(2), empty(2)], zeros(2) + number()), empty=lambda: ([empty(0), empty(1)], ones(1)),
    large=lambda: ([empty(2), empty(2)], ones(1)), small=lambda: ([empty(1), empty(1)], ones(2)),
    shapes=lambda: ([empty(2, 3), empty(2, 3)], ones(6)), turned=lambda: ([empty(3, 2), empty(3, 2)], ones(2, 3)),
    dtypes=lambda: ([double(2), double(2)], ones(2)), few=lambda: ([empty(2)], ones(2)),
    many=lambda: ([empty(2), empty(2), empty(2)], ones(2)))  # fmt: skip


def into(function):
    def run(out, source):
        function(out, source)
        return [out]

    return run


calls(
    "all_gather_into_tensor", into(dist.all_gather_into_tensor),
    right=lambda: (empty(4, 3), zeros(2, 3) + number()), column=lambda: (empty(4, 1), ones(2)),
    flat=lambda: (empty(12), ones(2, 3)), turned=lambda: (empty(6, 2), ones(2, 3)), large=lambda: (empty(5), ones(2)),
    small=lambda: (empty(3), ones(2)), dtypes=lambda: (double(4), ones(2)))  # fmt: skip
calls(
    "reduce_scatter_tensor", into(dist.reduce_scatter_tensor),
    right=lambda: (empty(2), torch.arange(4.0) * number()), column=lambda: (empty(2, 1), ones(4)),
    turned=lambda: (empty(3, 2), ones(4, 3)), large=lambda: (empty(2), ones(5)), small=lambda: (empty(2), ones(3)),
    dtypes=lambda: (double(2), ones(4)))  # fmt: skip
calls(
    "reduce_scatter", into(dist.reduce_scatter),
    right=lambda: (empty(2), [zeros(2) + number(), ones(2)]), shapes=lambda: (empty(3), [ones(2), ones(2)]),
    flat=lambda: (empty(2, 2), [ones(4), ones(4)]), dtypes=lambda: (double(2), [ones(2), ones(2)]),
    few=lambda: (empty(2), [ones(2)]), many=lambda: (empty(2), [ones(2)] * 3),
    uneven=lambda: (empty(dist.get_rank() + 1), [ones(1), ones(2)]))  # fmt: skip


def alone(function, out, source):
    """A gather or a scatter in the group of this rank alone, so that each rank sees what the root sees."""
    function(out, source, dist.get_rank(), group=ALONE)
    return [out] if isinstance(out, torch.Tensor) else source


calls(
    "gather", alone, right=lambda: (dist.gather, ones(2), [empty(2)]), shapes=lambda: (dist.gather, ones(2), [empty(3)]),
    flat=lambda: (dist.gather, ones(6), [empty(3, 2)]), dtypes=lambda: (dist.gather, ones(2), [double(2)]),
    many=lambda: (dist.gather, ones(2), [empty(2), empty(2)]))  # fmt: skip
calls(
    "scatter", alone, right=lambda: (dist.scatter, empty(2), [ones(2)]), shapes=lambda: (dist.scatter, empty(3), [ones(2)]),
    flat=lambda: (dist.scatter, empty(3, 2), [ones(6)]), dtypes=lambda: (dist.scatter, double(2), [ones(2)]),
    many=lambda: (dist.scatter, empty(2), [ones(2), ones(2)]))  # fmt: skip


def all_to_all(outs, sources):
    dist.all_to_all(outs, sources)
    return outs


calls(
    "all_to_all", all_to_all, right=lambda: ([empty(2), empty(2)], [zeros(2) + number(), ones(2)]),
    shapes=lambda: ([empty(2, 2), empty(2, 2)], [ones(4), ones(4)]), dtypes=lambda: ([double(2)] * 2, [ones(2)] * 2),
    mixed=lambda: ([empty(2), empty(2)], [ones(2), double(2)]), few=lambda: ([empty(2)], [ones(2)]),
    many=lambda: ([empty(2)] * 3, [ones(2)] * 3))  # fmt: skip


def all_to_all_single(out, source, *splits):
    dist.all_to_all_single(out, source, *splits)
    return [out]


calls(
    "all_to_all_single", all_to_all_single, right=lambda: (empty(4), torch.arange(4.0) + number()),
    other_rows=lambda: (empty(4, 3), torch.arange(12.0).reshape(6, 2) + number()), small=lambda: (empty(2), ones(4)),
    odd=lambda: (empty(3), ones(3)), dtypes=lambda: (double(4), ones(4)), scalar=lambda: (empty(()), ones(())),
    splits=lambda: (empty(4), ones(4), [2, 2], [1, 2]), negative=lambda: (empty(4), ones(4), [-1, 5], [-1, 5]),
    rows=lambda: (empty(2, 3), torch.arange(6.0).reshape(2, 3) + number(), [1, 1], [1, 1]))  # fmt: skip


# ---- coalesced calls ----


def coalesced(function, outs, sources):
    with dist._coalescing_manager():
        for out, source in zip(outs, sources):
            function(out, source)
    return outs


calls(
    "coalesced", coalesced,
    gathers=lambda: (dist.all_gather_into_tensor, [empty(4), empty(2)], [zeros(2) + number(), zeros(1) + number()]),
    large_gather=lambda: (dist.all_gather_into_tensor, [empty(4), empty(3)], [ones(2), ones(1)]),
    large_scatter=lambda: (dist.reduce_scatter_tensor, [empty(2), empty(1)], [ones(4), ones(3)]))  # fmt: skip


@call
def all_gather_list_few():
    dist.group.WORLD.allgather_into_tensor_coalesced([empty(4)], [ones(2), ones(1)], AllgatherOptions()).wait()


@call
def reduce_scatter_list_few():
    dist.group.WORLD.reduce_scatter_tensor_coalesced([empty(2)], [ones(4), ones(2)], ReduceScatterOptions()).wait()


def all_gather_coalesced(outs, sources):
    dist.all_gather_coalesced(outs, sources)
    return [out for row in outs for out in row]


calls(
    "all_gather_coalesced", all_gather_coalesced,
    right=lambda: ([[empty(2), empty(3)] for _ in range(2)], [zeros(2) + number(), zeros(3) + number()]),
    shapes=lambda: ([[empty(2), empty(2)] for _ in range(2)], [ones(2), ones(3)]),
    few=lambda: ([[empty(2)], [empty(2)]], [ones(2), ones(3)]),
    lists=lambda: ([[empty(2), empty(3)]], [ones(2), ones(3)]))  # fmt: skip


@call
def all_gather_two_inputs():
    dist.group.WORLD.allgather([[empty(2)] * 2, [empty(2)] * 2], [ones(2), ones(2)], AllgatherOptions()).wait()


@call
def reduce_scatter_two_outputs():
    dist.group.WORLD.reduce_scatter([empty(2), empty(2)], [[ones(2)] * 2] * 2, ReduceScatterOptions()).wait()


# ---- sparse tensors ----


def sparse():
    return torch.eye(2).to_sparse()


SPARSE = {  # the sum of one sparse tensor is in torch_semantics.py
    "two": lambda: dist.group.WORLD.allreduce([sparse(), sparse()]), "broadcast": lambda: dist.broadcast(sparse(), 0),
    "all_reduce_coalesced": lambda: dist.group.WORLD.allreduce_coalesced([sparse()], AllreduceCoalescedOptions()),
    "reduce": lambda: dist.reduce(sparse(), 0), "all_gather": lambda: dist.all_gather([sparse(), sparse()], sparse()),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(sparse(), sparse()),
    "gather": lambda: alone(dist.gather, sparse(), [sparse()]), "scatter": lambda: alone(dist.scatter, sparse(), [sparse()]),
    "reduce_scatter": lambda: dist.reduce_scatter(sparse(), [sparse(), sparse()]),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(sparse(), sparse()),
    "all_to_all": lambda: dist.all_to_all([sparse(), sparse()], [sparse(), sparse()]),
    "all_to_all_single": lambda: dist.all_to_all_single(sparse(), sparse()),
    "rows": lambda: dist.all_reduce(torch.eye(2).to_sparse_csr()),
}  # fmt: skip


def outcome(function):
    """The tensors that a call returns, or the class and the text of its exception."""
    try:
        return [tensor.clone() for tensor in function() or []]
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def main(backend, path):
    """Make all calls.  Each is refused before anything moves, so that the next one finds the group as it was."""
    global ALONE
    if backend == "weft":
        import weft.torch  # noqa: F401
    dist.init_process_group(backend)
    ALONE = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    outcomes = {function.__name__: outcome(function) for function in CALLS}
    if backend == "weft":
        outcomes |= {f"sparse_{name}": outcome(function) for name, function in SPARSE.items()}
    torch.save(outcomes, pathlib.Path(f"{path}.{dist.get_rank()}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
