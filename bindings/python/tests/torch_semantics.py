"""What a process group tells beside the results of its calls: torch_semantics.py BACKEND PATH [NAME...]

Each function returns a value that can be written as JSON, or raises an exception.  What became of each is written to
PATH.RANK, which tests compare between backends.
"""

import datetime
import json
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn, ones, zeros

FACTS = []


def fact(function):
    FACTS.append(function)
    return function


def shape_of(value):
    """The nesting of a result: lists of lists of the values of tensors."""
    if isinstance(value, torch.Tensor):
        return value.to_dense().tolist()
    return [shape_of(entry) for entry in value] if isinstance(value, (list, tuple)) else type(value).__name__


def works(rank, size):
    """By name, the work object of every kind of call."""
    row = lambda: [zeros(2) for _ in range(size)]  # noqa: E731
    mine = zeros(2) + rank
    return {
        "all_reduce": dist.all_reduce(mine.clone(), async_op=True),
        "broadcast": dist.broadcast(mine.clone(), 1, async_op=True),
        "reduce": dist.reduce(mine.clone(), 0, async_op=True),
        "all_gather": dist.all_gather(row(), mine, async_op=True),
        "all_gather_into_tensor": dist.all_gather_into_tensor(zeros(2 * size), mine, async_op=True),
        "gather": dist.gather(mine, row() if rank == 0 else None, 0, async_op=True),
        "scatter": dist.scatter(mine.clone(), row() if rank == 0 else None, 0, async_op=True),
        "reduce_scatter": dist.reduce_scatter(mine.clone(), row(), async_op=True),
        "reduce_scatter_tensor": dist.reduce_scatter_tensor(mine.clone(), zeros(2 * size), async_op=True),
        "all_to_all_single": dist.all_to_all_single(zeros(size), zeros(size), async_op=True),
        "barrier": dist.barrier(async_op=True),
        "send": dist.isend(mine, (rank + 1) % size),
        "receive": dist.irecv(mine.clone(), (rank - 1) % size),
    }


def of_works(function):
    """A fact of each kind of work after its end."""

    def of_all(rank, size):
        found = {}
        for name, work in works(rank, size).items():
            work.wait()
            found[name] = outcome(lambda: function(work, name))  # noqa: B023
        return found

    of_all.__name__ = function.__name__
    FACTS.append(of_all)
    return function


@of_works
def values_of_futures(work, name):
    return shape_of(work.get_future().wait()) if name not in ("barrier", "send", "receive") else None


@of_works
def results(work, name):
    return shape_of(work.result())


@of_works
def completion(work, name):
    return [work.is_completed(), work.is_success()]


@of_works
def sources(work, name):
    return work._source_rank() if name == "receive" else None


def on_cpu(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


@fact
def sequence_numbers(rank, size):
    group = dist.new_group()
    numbers = [group._get_sequence_number_for_group()]
    dist.all_reduce(ones(2), group=group)
    numbers.append(group._get_sequence_number_for_group())
    dist.broadcast(ones(2), 0, group=group)
    dist.barrier(group=group)
    numbers.append(group._get_sequence_number_for_group())
    dist.all_gather([ones(2) for _ in range(size)], ones(2), group=group, async_op=True).wait()
    numbers.append(group._get_sequence_number_for_group())
    if rank == 0:
        dist.send(ones(2), 1, group=group)
    elif rank == 1:
        dist.recv(ones(2), 0, group=group)
    numbers.append(group._get_sequence_number_for_group())
    return numbers


@fact
def options(rank, size):
    return on_cpu().options._timeout.total_seconds()


@fact
def options_of_a_group(rank, size):
    group = dist.new_group(timeout=datetime.timedelta(seconds=77))
    before = on_cpu(group).options._timeout.total_seconds()
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=66), group)
    return [before, on_cpu(group).options._timeout.total_seconds()]


@fact
def receive_from_any(rank, size):
    if rank > 0:
        dist.send(zeros(2) + rank, 0)
        return None
    found = []
    for _ in range(size - 1):
        x = zeros(2)
        found.append([dist.recv(x), x.tolist()])
    return sorted(found)


@fact
def receive_from_any_later(rank, size):
    if rank > 0:
        dist.send(zeros(2) + rank, 0, tag=3)
        return None
    found = []
    for _ in range(size - 1):
        x = zeros(2)
        work = dist.irecv(x, tag=3)
        work.wait()
        found.append([work._source_rank(), x.tolist()])
    return sorted(found)


@fact
def monitored_barrier(rank, size):
    dist.monitored_barrier()
    dist.monitored_barrier(wait_all_ranks=True)


def sparse(rank, size):
    """Rows that ranks share and rows that one rank has alone; a column twice in a rank."""
    places = torch.tensor([[0, rank + 1, rank + 1]])
    return torch.sparse_coo_tensor(places, zeros(3, 2) + rank + 1, (size + 1, 2))


@fact
def sparse_sum(rank, size):
    x = sparse(rank, size)
    dist.all_reduce(x)
    return [x.to_dense().tolist(), x.is_coalesced()]


@fact
def sparse_sum_later(rank, size):
    x = sparse(rank, size)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    return [x.to_dense().tolist(), shape_of(work.get_future().wait())]


@fact
def sparse_sum_of_two_dimensions(rank, size):
    places = torch.tensor([[0, rank], [rank, 1]])
    x = torch.sparse_coo_tensor(places, torch.tensor([1, 10 + rank]), (size, size))
    group = dist.new_group([1, 0])
    if rank < 2:
        dist.all_reduce(x, group=group)
    return x.to_dense().tolist()


@fact
def sparse_sum_of_other_shapes(rank, size):
    dist.all_reduce(torch.eye(size + rank).to_sparse())


@fact
def sparse_sum_of_nothing(rank, size):
    x = sparse(rank, size) if rank == 0 else torch.zeros(size + 1, 2).to_sparse(1)
    dist.all_reduce(x)
    return x.to_dense().tolist()


@fact
def sparse_maximum(rank, size):
    x = sparse(rank, size)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)


@fact
def sparse_gradients(rank, size):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.EmbeddingBag(6, 3, sparse=True, mode="sum"))
    model(torch.tensor([[rank, 5]])).square().sum().backward()
    gradient = model.module.weight.grad
    return [gradient.is_sparse, [[round(v, 4) for v in row] for row in gradient.to_dense().tolist()]]


@fact
def monitored_barrier_without_a_rank(rank, size):
    """Last, because Gloo closes its connections."""
    group = dist.new_group()
    if rank == size - 1:
        return None
    dist.monitored_barrier(group, timeout=datetime.timedelta(seconds=5))


def outcome(function):
    """The value of a function, or the class and the text of its exception."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def main(backend, path, *names):
    """Find all facts, and write them."""
    if backend == "weft":
        import weft.torch  # noqa: F401
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=100))
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    for function in FACTS:
        if not names or function.__name__ in names:
            found[function.__name__] = outcome(lambda: function(rank, size))  # noqa: B023
    pathlib.Path(f"{path}.{rank}").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
