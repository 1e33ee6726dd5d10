#!/usr/bin/env python3
"""Compare what torch_programs.py has kept over two backends: compare.py FOLDER BACKEND BACKEND"""

import pathlib
import sys

import torch


def main(folder, first, second):
    paths = sorted(pathlib.Path(folder).glob(f"{first}.*"))
    if not paths:
        sys.exit(f"{folder} has no results of {first}")
    for path in paths:
        ours, theirs = torch.load(path), torch.load(path.with_name(path.name.replace(first, second, 1)))
        if len(ours) != len(theirs):
            sys.exit(f"{path.name}: {len(ours)} tensors are kept, not {len(theirs)}")
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, msg=lambda text, name=path.name: f"{name}: {text}")
    print(f"{len(paths)} results of {first} equal those of {second}")


if __name__ == "__main__":
    main(*sys.argv[1:])
