#!/usr/bin/env python3
"""FSDP of a PyTorch module by hooks, without torch.distributed.  Usage: weft run -n 2 -- python fsdp_hooks.py

Each layer is a group of weft.FSDP.  A hook before its forward gathers the parameters; a hook on each gradient reduces
them when the last one of the layer has arrived.  The result is compared with training on one process.
"""
import copy

import torch
from torch import nn

import weft


class ShardedLayer:
    """A layer whose parameters are stored in shards, split along dimension 0, and whole while it is used."""

    def __init__(self, fsdp, context, layer, name):
        self.parameters = list(layer.parameters())
        mesh = weft.mesh(f"dp={context.size}")
        self.shards, tensors = [], []
        for number, parameter in enumerate(self.parameters):
            shape = ",".join(map(str, parameter.shape))
            spec = weft.FSDP.shard_spec(weft.spec(f"f32[{shape}] R", mesh), "dp")
            sizes, offset = spec.shard(context.rank)
            shard = parameter.detach()[offset[0] : offset[0] + sizes[0]].clone()
            self.shards.append(shard)
            tensors.append(weft.Tensor.wrap(context, spec, shard, f"{name}.{number}"))
        self.group = fsdp.group(tensors, name=name)
        self.context, self.arrived = context, 0
        layer.register_forward_pre_hook(self.gather)
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self.reduce)

    def gather(self, module, inputs):
        """Point the parameters to the gathered tensors."""
        self.group.unshard()
        for number, parameter in enumerate(self.parameters):
            parameter.data = torch.from_dlpack(self.group.parameter(number))

    def reduce(self, parameter):
        """Reduce the gradients when all of them have arrived; the gathered parameters end."""
        self.arrived += 1
        if self.arrived < len(self.parameters):
            return
        self.arrived = 0
        gradients = [
            weft.Tensor.wrap(self.context, self.group.gradient_spec(number), each.grad)
            for number, each in enumerate(self.parameters)
        ]
        for each in self.parameters:
            each.data = torch.empty(0)
            each.grad = None
        self.group.reduce(gradients)

    def step(self, rate):
        """One step of SGD on the shards."""
        for number, shard in enumerate(self.shards):
            shard -= rate * torch.from_dlpack(self.group.gradient(number))
        self.group.gradients_clear()


def main():
    context = weft.init()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))
    alone = copy.deepcopy(model)
    fsdp = weft.FSDP(context, weft.mesh(f"dp={context.size}"), "dp")
    layers = [ShardedLayer(fsdp, context, model[i], f"layer {i}") for i in (0, 2)]
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    for step in range(3):
        batches = torch.randn(context.size, 4, 8)  # the same on every rank; each trains on its own part
        model(batches[context.rank]).square().mean().backward()
        for layer in layers:
            layer.step(0.1)
        alone(batches.reshape(-1, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for layer, other in zip(layers, (alone[0], alone[2])):
        layer.gather(None, None)
        for mine, whole in zip(layer.parameters, other.parameters()):
            torch.testing.assert_close(mine.data, whole.data)
        layer.group.reshard()
    if context.rank == 0:
        print(f"after 3 steps on {context.size} ranks the parameters equal those of one process")


if __name__ == "__main__":
    main()
