#!/usr/bin/env python3
"""reshard_torch.py - PyTorch's side of bench/reshard.sh: checkpoints of torch.distributed.checkpoint (DCP).

    reshard_torch.py make HF DCP           write the tensors of a Hugging Face folder as a DCP checkpoint
    reshard_torch.py copy DCP OUT          load a DCP checkpoint and save it again
    reshard_torch.py consolidate IN OUT    PyTorch's consolidation script: sharded safetensors to whole tensors

Prints the seconds without those of starting Python and importing torch.
"""
import glob
import json
import os
import sys
import time
import warnings

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter

warnings.filterwarnings("ignore")


def load_folder(folder):
    from safetensors.torch import load_file

    tensors = {}
    for path in sorted(glob.glob(folder + "/*.safetensors")):
        tensors.update(load_file(path))
    return tensors


def writer(path):
    return FileSystemWriter(path, thread_count=os.cpu_count())


def copy(source, target):
    items = FileSystemReader(source).read_metadata().state_dict_metadata
    tensors = {name: torch.empty(item.size, dtype=item.properties.dtype) for name, item in items.items()}
    dcp.load(tensors, storage_reader=FileSystemReader(source), no_dist=True)
    dcp.save(tensors, storage_writer=writer(target), no_dist=True)


def consolidate(source, target):
    from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

    names = json.load(open(source + ".names"))
    os.makedirs(target)
    consolidate_safetensors_files(
        source, target, fqn_to_index_mapping={name: 1 for name in names}, num_threads=os.cpu_count())  # fmt: skip


what, source, target = sys.argv[1:]
begin, before = time.monotonic(), os.times()
if what == "make":
    dcp.save(load_folder(source), storage_writer=writer(target), no_dist=True)
elif what == "copy":
    copy(source, target)
else:
    consolidate(source, target)
seconds, after = time.monotonic() - begin, os.times()
used = sum(after[:4]) - sum(before[:4])
print(json.dumps({"s": seconds, "cpu_s": used, "torch": torch.__version__}))
