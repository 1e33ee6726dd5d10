"""Random calls of torch.distributed: torch_random.py BACKEND PATH SEED COUNT

All ranks draw the same cases.  Each rank writes what the calls have returned to PATH.RANK, a list of lists of tensors;
the text of an exception is in the place of a list.  Elements are small integers, so that every order of a reduction
has the same result.
"""

import datetime
import math
import pathlib
import random
import sys
import traceback

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int32", "int64", "int8", "uint8"]
REDUCTIONS = ["SUM", "PRODUCT", "MIN", "MAX"]
BITWISE = ["BAND", "BOR", "BXOR"]


# ---- the calls: CASE, this rank's place among the members of the group, and what makes its tensors ----


class Call:
    """One rank's side of a case."""

    def __init__(self, case, number, rank, group):
        self.case, self.rank, self.group = case, rank, group
        self.members, self.dtype, self.shape = case["members"], getattr(torch, case["dtype"]), case["shape"]
        self.size, self.me = len(self.members), self.members.index(rank)
        self.op = getattr(dist.ReduceOp, case["op"])
        self.root = case["root"]
        self.generator = torch.Generator().manual_seed(1000 * number + rank)

    def tensor(self, shape=None):
        """A tensor of this rank; with "strided", one that is not contiguous."""
        shape = tuple(self.shape if shape is None else shape)
        low = 0 if self.case["dtype"] in ("uint8", "bool") else -3
        high = 2 if self.case["dtype"] == "bool" else 4
        if self.case["strided"]:
            shape = shape[::-1]
        data = torch.randint(low, high, shape, generator=self.generator).to(self.dtype)
        return data.permute(*reversed(range(data.dim()))) if self.case["strided"] else data

    def empty(self, shape=None):
        return torch.zeros(self.shape if shape is None else shape, dtype=self.dtype)

    def wait(self, work):
        if self.case["async"]:
            work.wait()

    def options(self):
        return {"group": self.group, "async_op": self.case["async"]}


def all_reduce(call):
    x = call.tensor()
    call.wait(dist.all_reduce(x, call.op, **call.options()))
    return [x]


def reduce(call):
    x = call.tensor()
    call.wait(dist.reduce(x, call.root, call.op, **call.options()))
    return [x] if call.rank == call.root else []


def broadcast(call):
    x = call.tensor()
    call.wait(dist.broadcast(x, call.root, **call.options()))
    return [x]


def all_gather(call):
    parts = [call.empty() for _ in range(call.size)]
    call.wait(dist.all_gather(parts, call.tensor(), **call.options()))
    return parts


def all_gather_into_tensor(call):
    whole = call.empty((call.size * call.shape[0], *call.shape[1:]))
    call.wait(dist.all_gather_into_tensor(whole, call.tensor(), **call.options()))
    return [whole]


def gather(call):
    parts = [call.empty() for _ in range(call.size)] if call.rank == call.root else None
    call.wait(dist.gather(call.tensor(), parts, call.root, **call.options()))
    return parts or []


def scatter(call):
    parts = [call.tensor() for _ in range(call.size)] if call.rank == call.root else None
    x = call.empty()
    call.wait(dist.scatter(x, parts, call.root, **call.options()))
    return [x]


def reduce_scatter(call):
    x = call.empty()
    call.wait(dist.reduce_scatter(x, [call.tensor() for _ in range(call.size)], call.op, **call.options()))
    return [x]


def reduce_scatter_tensor(call):
    x = call.empty()
    whole = call.tensor((call.size * call.shape[0], *call.shape[1:]))
    call.wait(dist.reduce_scatter_tensor(x, whole, call.op, **call.options()))
    return [x]


def exchanged(call):
    """The rows that this rank sends to each member, and those that it receives."""
    rows = call.case["rows"]
    return rows[call.me][: call.size], [rows[other][call.me] for other in range(call.size)]


def splits(call):
    """All rows that are sent and received, and their splits; None for equal ones, if the case says so."""
    sends, receives = exchanged(call)
    short = [None if call.case["none"] and len(set(counts)) == 1 else counts for counts in (sends, receives)]
    return sum(sends), sum(receives), *short


def all_to_all_single(call):
    sent, received, sends, receives = splits(call)
    out = call.empty((received, *call.shape[1:]))
    source = call.tensor((sent, *call.shape[1:]))
    call.wait(dist.all_to_all_single(out, source, receives, sends, **call.options()))
    return [out]


# Gloo has the three calls with lists of several sizes not at all: other calls take their place.


def all_to_all(call):
    sent, received = exchanged(call)
    sources = [call.tensor((count, *call.shape[1:])) for count in sent]
    outs = [call.empty((count, *call.shape[1:])) for count in received]
    if dist.get_backend() == "gloo":
        whole = call.empty((sum(received), *call.shape[1:]))
        dist.all_to_all_single(whole, torch.cat(sources), received, sent, group=call.group)
        return list(whole.split(received))
    call.wait(dist.all_to_all(outs, sources, **call.options()))
    return outs


def all_gather_uneven(call):
    counts = call.case["rows"][0][: call.size]
    parts = [call.empty((count, *call.shape[1:])) for count in counts]
    mine = call.tensor((counts[call.me], *call.shape[1:]))
    if dist.get_backend() == "gloo":
        parts[call.me] = mine
        for member, part in zip(call.members, parts):
            dist.broadcast(part, member, group=call.group)
    else:
        call.wait(dist.all_gather(parts, mine, **call.options()))
    return parts


def reduce_scatter_uneven(call):
    counts = call.case["rows"][0][: call.size]
    parts = [call.tensor((count, *call.shape[1:])) for count in counts]
    if dist.get_backend() == "gloo":
        whole = torch.cat(parts)
        dist.all_reduce(whole, call.op, group=call.group)
        return [whole.split(counts)[call.me]]
    mine = call.empty((counts[call.me], *call.shape[1:]))
    call.wait(dist.reduce_scatter(mine, parts, call.op, **call.options()))
    return [mine]


def message(call):
    source, target = call.case["pair"]
    x = call.tensor()
    if call.rank == source:
        dist.send(x, target, call.group, call.case["tag"])
    elif call.rank == target:
        dist.recv(x, source, call.group, call.case["tag"])
    return [x]


def ring(call):
    following, before = (call.members[(call.me + step) % call.size] for step in (1, -1))
    received = call.empty()
    if call.size > 1:
        batch = [
            dist.P2POp(dist.isend, call.tensor(), following, call.group),
            dist.P2POp(dist.irecv, received, before, call.group),
        ]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
    return [received]


def coalesced(call):
    tensors = [call.tensor(), call.tensor((3,)), call.tensor((0,)), call.tensor((2, 2))]
    with dist._coalescing_manager(call.group):
        for tensor in tensors:
            dist.all_reduce(tensor, call.op, group=call.group)
    return tensors


def gather_along(call):
    return [functional.all_gather_tensor(call.tensor(), call.case["dim"], call.group) + 0]


def scatter_along(call):
    shape = list(call.shape)
    shape[call.case["dim"]] *= call.size
    op = {"SUM": "sum", "MIN": "min", "MAX": "max", "PRODUCT": "product"}[call.case["op"]]
    return [functional.reduce_scatter_tensor(call.tensor(shape), op, call.case["dim"], call.group) + 0]


def objects(call):
    gathered, shared = [None] * call.size, [None]
    mine = {"rank": call.rank, "text": "x" * (call.rank * math.prod(call.shape))}
    dist.all_gather_object(gathered, mine, call.group)
    if call.rank == call.root:
        shared = [list(call.shape)]
    dist.broadcast_object_list(shared, call.root, call.group)
    return [torch.tensor([len(one["text"]) for one in gathered]), torch.tensor(shared[0])]


def barrier(call):
    call.wait(dist.barrier(**call.options()))
    return [call.tensor()]


CALLS = [
    all_reduce, reduce, broadcast, all_gather, all_gather_into_tensor, gather, scatter, reduce_scatter,
    reduce_scatter_tensor, all_to_all_single, all_to_all, all_gather_uneven, reduce_scatter_uneven, message, ring,
    coalesced, gather_along, scatter_along, objects, barrier,
]  # fmt: skip
REDUCE = (all_reduce, reduce, reduce_scatter, reduce_scatter_tensor, reduce_scatter_uneven, coalesced, scatter_along)
STRIDED = (all_reduce, reduce, broadcast, all_gather, gather)  # Gloo takes the elements of others in the order of memory
WITH_DIMS = (
    all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, all_to_all, all_gather_uneven,
    reduce_scatter_uneven, gather_along, scatter_along,
)  # fmt: skip


# ---- cases ----


def draw(numbers, size):
    """A case: what every rank must know of one call."""
    call = numbers.choice(CALLS)
    members = sorted(numbers.sample(range(size), numbers.choice([size, numbers.randint(1, size)])))
    dtypes = FLOATS + INTEGERS + ([] if call in REDUCE else ["bool"])
    dtype = numbers.choice(dtypes)
    ops = REDUCTIONS + (BITWISE if dtype in INTEGERS and call is not scatter_along else [])
    dims = numbers.randint(1 if call in WITH_DIMS else 0, 3)
    shape = [numbers.choice([0, 1, 2, 3, 5, 8, 33]) for _ in range(dims)]
    if dims == 1 and numbers.random() < 0.1:
        shape = [70001]
    even = numbers.random() < 0.3
    return {
        "call": call.__name__, "members": members, "dtype": dtype, "op": numbers.choice(ops), "shape": shape,
        "root": numbers.choice(members), "async": numbers.random() < 0.5, "tag": numbers.randint(0, 5),
        "strided": call in STRIDED and dims > 1 and numbers.random() < 0.3, "none": numbers.random() < 0.5,
        "rows": [[2 if even else numbers.randint(0, 4) for _ in range(size)] for _ in range(size)],
        "pair": (numbers.sample(members, 2) if len(members) > 1 else [-1, -1]), "dim": numbers.randrange(max(dims, 1)),
    }  # fmt: skip


def draw_all(seed, count, size):
    numbers = random.Random(seed)
    return [draw(numbers, size) for _ in range(count)]


def run(case, number, rank, groups):
    if rank not in case["members"]:
        return []
    try:
        call = Call(case, number, rank, groups[tuple(case["members"])])
        return globals()[case["call"]](call)
    except Exception:  # noqa: BLE001 - it is compared
        return f"case {number}, {case}, rank {rank}:\n{traceback.format_exc()}"


def main(backend, path, seed, count):
    """Run the cases."""
    if backend == "weft":
        import weft.torch  # noqa: F401
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    cases = draw_all(int(seed), int(count), size)
    groups = {tuple(range(size)): dist.group.WORLD}
    for members in sorted({tuple(case["members"]) for case in cases}):
        if members not in groups:
            groups[members] = dist.new_group(members)
    kept = []
    for number, case in enumerate(cases):
        kept.append(run(case, number, rank, groups))
        if isinstance(kept[-1], str):
            break  # ranks may disagree from here on
    torch.save([part if isinstance(part, str) else [t.clone() for t in part] for part in kept], pathlib.Path(f"{path}.{rank}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
