"""Run PyTorch's flight-recorder analyser, as `torchfrtrace` does: analyse.py ARGUMENTS.

The analyser is plain Python, but its package imports all of PyTorch, which needs the libraries of a GPU even on hosts
without one.  So the packages above it are replaced by empty ones.  It compares all ranks with the first file that it
finds; here that is the first rank's.
"""
import importlib.util
import os
import pathlib
import sys
import types


def load():
    found = importlib.util.find_spec("torch")
    if found is None:
        sys.exit("PyTorch is not installed")
    root = pathlib.Path(found.submodule_search_locations[0])
    for name, path in (("torch", root), ("torch.distributed", root / "distributed")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    from torch.distributed.flight_recorder.fr_trace import main

    return main


def walk_in_order(folder, walk=os.walk):
    for root, folders, files in walk(folder):
        yield root, sorted(folders), sorted(files)


os.walk = walk_in_order
load()(sys.argv[1:])
