#!/usr/bin/env python3
"""Read checkpoints that weft wrote with safetensors and PyTorch's DCP: read_ours.py FOLDER

interop.sh makes them from those of write_theirs.py.  Every byte of every tensor is compared."""
import glob
import sys

import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from write_theirs import raw, tensors

wrong = []


def compare(what, have, want):
    for name, tensor in want.items():
        if have[name].shape != tensor.shape or have[name].dtype != tensor.dtype or \
                raw(have[name]) != raw(tensor):
            wrong.append(f"{what}: {name} differs")
    if set(have) != set(want):
        wrong.append(f"{what}: other names: {set(have) ^ set(want)}")
    print(f"{what}: {len(have)} tensors")


def main():
    folder = sys.argv[1]
    want = tensors()
    more = {"transposed": torch.arange(24, dtype=torch.float32).reshape(4, 6).t(),
            "parameter": torch.ones(3)}
    compare("DCP to safetensors", safetensors.torch.load_file(f"{folder}/dcp.safetensors"),
            dict(want, **more))
    full = {name: tensor for name, tensor in want.items() if tensor.numel() > 0}
    compare("DCP's safetensors joined", safetensors.torch.load_file(f"{folder}/joined.safetensors"),
            full)
    have = {}
    for path in sorted(glob.glob(f"{folder}/hf/*.safetensors")):
        have.update(safetensors.torch.load_file(path))
    compare("ranks to Hugging Face", have, want)
    have = {name: torch.empty_like(tensor) for name, tensor in full.items()}
    dcp.load(have, storage_reader=HuggingFaceStorageReader(f"{folder}/ranks"), no_dist=True)
    compare("DCP reads ranks", have, full)
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
