"""DTensor gathers a tensor over both axes of a 2x2 mesh at once; with uneven shards the result is in the wrong order.

usage: torchrun --nproc-per-node 4 bench/python/flattened.py

The mesh is flattened, as PyTorch's own warning recommends, so that a gather over two axes is one collective.  The same
gather without the flattened mesh, and full_tensor() before it was flattened, are right: the last column.
"""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

dist.init_process_group("gloo")
plain = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
flat = init_device_mesh("cpu", (2, 2), mesh_dim_names=("c", "d"))
flat._flatten()


def gathered(mesh, size):
    split = distribute_tensor(torch.arange(size), mesh, [Shard(0), Shard(0)])
    return split.redistribute(mesh, [Replicate(), Replicate()]).to_local().tolist(), split.full_tensor().tolist()


for size in (5, 6):
    wrong, whole = gathered(flat, size)
    right, full = gathered(plain, size)
    if dist.get_rank() == 0:
        print(f"PyTorch {torch.__version__}, {size} elements: flattened {wrong} {whole}, plain {right} {full}")
dist.destroy_process_group()
