#!/usr/bin/env python3
"""A PyTorch model from its FSDP layout to a tensor-parallel one.  Usage: torchrun --nproc-per-node 2 fsdp_to_tp.py

The model trains with FSDP2, whose parameters are split along dimension 0.  To serve it, weft moves each parameter
straight to the layout of tensor parallel: column-wise layers stay split along dimension 0, row-wise ones along 1.
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard

import weft.torch

TENSOR_PARALLEL = {
    "up.weight": Shard(0), "up.bias": Shard(0), "down.weight": Shard(1), "down.bias": Replicate(),
}  # fmt: skip


class Block(nn.Module):
    """Two layers, of which tensor parallel splits the inner dimension."""

    def __init__(self, width=64):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        """One step of a transformer's feed-forward part."""
        return self.down(torch.relu(self.up(x)))


def serve(shards, x):
    """Run the block on this rank's shards, and add up the parts of all ranks."""
    inner = torch.relu(x @ shards["up.weight"].T + shards["up.bias"])
    out = inner @ shards["down.weight"].T
    dist.all_reduce(out)
    return out + shards["down.bias"]


def main():
    dist.init_process_group("weft")
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = fully_shard(Block(), mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        model(torch.full((4, 64), 0.1 * step + dist.get_rank())).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    x = torch.ones(4, 64)
    with torch.no_grad():
        expected = model(x)
        model.reshard()  # the outermost module keeps its parameters gathered after forward
        shards = {
            name: weft.torch.redistribute(parameter.detach(), mesh, [TENSOR_PARALLEL[name]]).to_local()
            for name, parameter in model.named_parameters()
        }
        result = serve(shards, x)
    torch.testing.assert_close(result, expected)
    if dist.get_rank() == 0:
        print(f"tensor parallel on {mesh.size()} ranks equals FSDP; this rank has up.weight {tuple(shards['up.weight'].shape)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
