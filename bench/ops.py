"""PyTorch's side of bench/ops.sh: how long DTensor takes to propagate the calls of `weft bench ops`.

    ops.py WEFT.json BUDGET_MS

One process stands for all ranks; nothing is communicated.  Prints {"rows": [...]} with a time for
each row of WEFT.json that has a counterpart."""
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema
from torch.testing._internal.distributed.fake_pg import FakeStore

aten = torch.ops.aten


def placement(text, swapped):
    if text == "R":
        return Replicate()
    if text.startswith("P"):
        return Partial()
    dim = int(text[2:-1])
    return Shard(1 - dim if swapped else dim)


def spec(mesh, text, swapped=False):
    """The spec of "f32[64,512] S(0),R"; SWAPPED: of its transpose."""
    shape, places = text[4:].split("] ")
    shape = [int(size) for size in shape.split(",")]
    if swapped:
        shape.reverse()
    meta = TensorMeta(torch.Size(shape), torch.empty(shape, device="meta").stride(), torch.float32)
    return DTensorSpec(mesh, tuple(placement(one, swapped) for one in places.split(",")), tensor_meta=meta)


def schema(mesh, row):
    """The call of ROW; None: there is no counterpart."""
    op, texts = row["op"], row["inputs"]
    if op == "linear":  # the operator that PyTorch runs for it
        x, w, b = texts
        return OpSchema(aten.addmm.default, (spec(mesh, b), spec(mesh, x), spec(mesh, w, True)), {})
    inputs = [spec(mesh, text) for text in texts]
    if op == "softmax":
        return OpSchema(aten._softmax.default, (inputs[0], -1, False), {})
    known = {"add": aten.add.Tensor, "mm": aten.mm.default}
    return OpSchema(known[op], tuple(inputs), {}) if op in known else None


def time_call(call, budget):
    samples, end = [], time.monotonic() + budget
    call()
    while len(samples) < 3 or time.monotonic() < end:
        begin = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - begin)
    return int(statistics.median(samples))


def measure(row, budget):
    mesh = init_device_mesh("cpu", tuple(int(size) for size in row["mesh"].split("x")))
    propagator = DTensor._op_dispatcher.sharding_propagator
    call = schema(mesh, row)
    if call is None or row["kind"] == "list":
        return None
    anew = getattr(propagator, "propagate_op_sharding_non_cached")
    if row["kind"] != "cached":
        return time_call(lambda: anew(call), budget)
    return time_call(lambda: propagator.propagate_op_sharding(schema(mesh, row)), budget)


def main():
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    with open(sys.argv[1], encoding="ascii") as file:
        rows = json.load(file)["rows"]
    out = []
    for row in rows:
        try:
            median = measure(row, float(sys.argv[2]) / 1000)
        except Exception as error:  # an operator that this version does not propagate
            print(f"ops: {row['op']} {row['inputs']}: {error}", file=sys.stderr)
            median = None
        if median is not None:
            out.append({**{key: row[key] for key in ("kind", "op", "mesh", "inputs")}, "median_ns": median})
    print(json.dumps({"torch": torch.__version__, "rows": out}))


main()
