#!/usr/bin/env python3
"""Write checkpoints with the packages safetensors, torch and numpy: write_theirs.py FOLDER

FOLDER/expected.json has the bytes of every tensor in hexadecimal, in row-major order.  Four ranks
write the distributed checkpoints.  FOLDER/versions.json has the versions."""
import json
import os
import pathlib
import sys

import numpy
import safetensors
import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

RANKS = 4


def tensors():
    torch.manual_seed(5)
    out = {
        "layers.0.w": torch.randn(8, 12),
        "layers.0.uneven": torch.randn(7, 5).to(torch.bfloat16),
        "layers.0.bias": torch.randn(12).to(torch.float16),
        "both": torch.arange(96, dtype=torch.int64).reshape(8, 12),
        "flags": torch.tensor([True, False, True]),
        "scale": torch.tensor(2.5),
        "count": torch.tensor(7, dtype=torch.int32),
        "empty": torch.empty(0, 3),
        "f8": torch.randn(4, 8).to(torch.float8_e4m3fn),
        "f8b": torch.randn(4, 8).to(torch.float8_e5m2),
        "complex": torch.randn(3, 2, dtype=torch.complex64),
        "double": torch.randn(2, 3, dtype=torch.float64),
        "u16": torch.arange(6, dtype=torch.int32).to(torch.uint16),
        "\u00fcber.\u20ac": torch.arange(5, dtype=torch.uint8),
    }
    return out


def raw(tensor):
    tensor = tensor.detach().contiguous().cpu()
    if tensor.dim() == 0:
        tensor = tensor.reshape(1)
    return tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() > 0 else b""


def describe(state):
    return {name: {"shape": list(t.shape), "bytes": raw(t).hex()} for name, t in state.items()}


def sharded(state):
    """The same tensors over a mesh of 2x2 ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    places = {"layers.0.w": [Shard(0), Shard(1)], "layers.0.uneven": [Shard(0), Replicate()],
              "both": [Shard(1), Shard(1)], "layers.0.bias": [Replicate(), Shard(0)],
              "f8": [Replicate(), Shard(0)], "double": [Replicate(), Replicate()]}
    out = {}
    for name, tensor in state.items():
        if name in places and tensor.dtype not in (torch.float8_e4m3fn,):
            out[name] = distribute_tensor(tensor, mesh, places[name])
        elif name in places:
            local = tensor.chunk(2, 0)[mesh.get_local_rank("tp")].contiguous()
            out[name] = DTensor.from_local(local, mesh, places[name], run_check=False)
        else:
            out[name] = tensor
    return out


def rank_main(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank),
                      WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    state = sharded(tensors())
    transposed = torch.arange(24, dtype=torch.float32).reshape(4, 6).t()
    native = dict(state, transposed=transposed, optimizer={"step": 3, "lr": 0.5},
                  parameter=torch.nn.Parameter(torch.ones(3)))
    dcp.save(native, checkpoint_id=str(folder / "dcp"))
    writer = HuggingFaceStorageWriter(path=str(folder / "dcp-safetensors"), save_distributed=True)
    plain = {name: t for name, t in state.items() if name not in ("empty",)}
    dcp.save(plain, storage_writer=writer)
    dist.barrier()
    dist.destroy_process_group()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    state = tensors()
    safetensors.torch.save_file(state, folder / "plain.safetensors", metadata={"format": "pt"})
    safetensors.torch.save_file(state, folder / "bare.safetensors")
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    numpy.save(folder / "rows.npy", array)
    numpy.save(folder / "columns.npy", numpy.asfortranarray(array))
    torch.multiprocessing.spawn(rank_main, (folder,), nprocs=RANKS)
    expected = describe(state)
    more = {"transposed": torch.arange(24, dtype=torch.float32).reshape(4, 6).t(),
            "parameter": torch.ones(3)}
    (folder / "expected.json").write_text(json.dumps({
        "plain.safetensors": expected, "bare.safetensors": expected,
        "dcp": dict(expected, **describe(more)),
        "dcp-safetensors": {name: t for name, t in expected.items() if name != "empty"},
        "rows.npy": {"rows": {"shape": [3, 4], "bytes": array.tobytes().hex()}},
        "columns.npy": {"columns": {"shape": [3, 4], "bytes": array.tobytes().hex()}},
    }, indent=1, sort_keys=True) + "\n")
    (folder / "versions.json").write_text(json.dumps({
        "torch": torch.__version__, "safetensors": safetensors.__version__,
        "numpy": numpy.__version__, "python": sys.version.split()[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
