#!/usr/bin/env python3
"""A checkpoint written whole, and loaded in shards.  Usage: weft run -n 2 -- python load_checkpoint.py [FOLDER]"""
import pathlib
import sys
import tempfile

import numpy as np

import weft

LAYOUT = """mesh tp=2
*.q_proj.weight  S(0)
*.o_proj.weight  S(1)
*                R
"""


def write(path):
    """A small model, as one process would save it."""
    tensors = {
        "layers.0.q_proj.weight": np.arange(64, dtype=np.float32).reshape(8, 8),
        "layers.0.o_proj.weight": np.arange(64, dtype=np.float32).reshape(8, 8) * 2,
        "norm.weight": np.ones(8, np.float32),
    }
    entries = [(name, "f32", array.shape) for name, array in tensors.items()]
    with weft.Writer(path, entries, replace=True) as writer:
        for name, array in tensors.items():
            writer.write(name, array)


def main(folder=tempfile.gettempdir()):
    context = weft.init()
    path = pathlib.Path(folder) / "weft-example.safetensors"
    if context.rank == 0:
        write(path)
    weft.Comm(context).barrier()
    tensors = weft.load(path, LAYOUT)
    for name, tensor in tensors.items():
        print(f"rank {context.rank}: {name} {tensor.spec}, shard {np.from_dlpack(tensor).shape}")
    weft.save(path.with_suffix(".copy.safetensors"), tensors, replace=True)
    if context.rank == 0:
        print("the copy differs in:", weft.verify(path, path.with_suffix(".copy.safetensors")))


if __name__ == "__main__":
    main(*sys.argv[1:])
