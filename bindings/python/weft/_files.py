"""Checkpoints: read, load, save, reshard and verify."""

import os

from . import _weft
from ._arrays import empty
from ._errors import MismatchError
from ._weft import Layout


class Checkpoint(_weft.Checkpoint):
    """Named tensors in files: safetensors, Hugging Face folders, DCP, files per rank, .npy."""

    __slots__ = ()

    def __len__(self):
        return len(self.names)

    def __contains__(self, name):
        return name in self.names

    def __iter__(self):
        return iter(self.names)

    def read(self, name, offset=None, sizes=None, *, out=None):
        """A box of a tensor; without offset and sizes the whole tensor.  Without out, a memoryview."""
        if out is None:
            about = self.describe(name)
            if sizes is None:
                start = offset if offset is not None else (0,) * len(about["shape"])
                if any(first > size for size, first in zip(about["shape"], start)):
                    raise ValueError(f"offset is {tuple(start)}, but tensor {name} has the shape {about['shape']}")
                sizes = tuple(size - first for size, first in zip(about["shape"], start))
            if about["dtype"] is None:
                raise TypeError(f"tensor {name} is {about['stored']}, for which weft has no dtype; give out")
            out = empty(memoryview(b""), sizes, about["dtype"])
        self.read_into(name, out, offset, sizes)
        return out


def checkpoint(path):
    """The checkpoint at a path; a Checkpoint is returned as it is."""
    return path if isinstance(path, _weft.Checkpoint) else Checkpoint(path)


def layout(text, mesh=None):
    """The layout of a text or a file: a text has a line `mesh ...`, or is placements for all tensors."""
    if isinstance(text, Layout):
        return text
    text = str(text)
    if "\n" in text or text.startswith("mesh "):
        return Layout(text, mesh)
    if "/" not in text and "." not in text:
        if mesh is not None:
            return Layout(f"mesh {mesh}\n* {text}\n")
        if not os.path.exists(text):
            raise ValueError(f"'{text}' is not a file; if it is placements of all tensors, give their mesh")
    return Layout.open(text, mesh)


def load(path, placements, mesh=None, names=None, *, rules=None, jobs=0, context=None):
    """Load the tensors of a checkpoint in a layout, by name.  Collective.

    placements is a Layout, its text or file, or with a mesh the placements of all tensors.
    """
    import weft

    source = checkpoint(path)
    if rules is not None:
        source = source.map(rules)
    context = weft.current() if context is None else context
    mesh = weft.mesh(mesh) if mesh is not None else None
    tensors = _weft.load(context, source, layout(placements, mesh), names, jobs)
    return dict(zip(source.names if names is None else names, tensors))


def _save_arguments(path, tensors, options):
    import weft

    context = options.pop("context", None)
    if isinstance(tensors, dict):
        options["names"] = list(tensors)
        tensors = list(tensors.values())
    return (weft.current() if context is None else context, path, tensors), options


def save(path, tensors, **options):
    """Write tensors of any layouts, a dictionary by name or a list, to a checkpoint.  Collective.

    The options are layout, format, replace, file_bytes, metadata, stream, jobs and context.
    """
    arguments, options = _save_arguments(path, tensors, options)
    _weft.save(*arguments, **options)


def save_begin(path, tensors, **options):
    """As save, while the caller goes on: the result has wait and state.  Collective."""
    arguments, options = _save_arguments(path, tensors, options)
    return _weft.save_begin(*arguments, **options)


def reshard(source, path, placements=None, mesh=None, *, rules=None, **options):
    """Write a checkpoint in another layout or format, without a job.  The figures of the run are returned.

    Without placements, whole tensors are written.  The options are format, replace, file_bytes,
    checksums, keep, resume, memory, jobs, progress (called with the bytes done and in all), dry (nothing is written)
    and predict (the figures have predicted_ns, the time of a sample of the run).
    """
    import weft

    source = checkpoint(source)
    if rules is not None:
        source = source.map(rules)
    if placements is not None:
        options["layout"] = layout(placements, weft.mesh(mesh) if mesh is not None else None)
    return _weft.reshard(source, path, **options)


def verify(first, second):
    """How two checkpoints differ, one text per tensor; an empty list if they have the same tensors.

    Elements are compared by a checksum of 64 bits that depends on their bits and places.
    """
    a, b = checkpoint(first), checkpoint(second)
    differences = [f"{name} is only in the first checkpoint" for name in a.names if name not in set(b.names)]
    differences += [f"{name} is only in the second checkpoint" for name in b.names if name not in set(a.names)]
    for name in sorted(set(a.names) & set(b.names)):
        one, two = a.describe(name), b.describe(name)
        if (one["stored"], one["shape"]) != (two["stored"], two["shape"]):
            differences.append(f"{name} is {one['stored']}{list(one['shape'])} and {two['stored']}{list(two['shape'])}")
            continue
        for side in (a, b):
            try:
                side.check_replicas(name)
            except MismatchError as error:
                differences.append(str(error))
        if a.checksum(name) != b.checksum(name):
            differences.append(f"{name} has other elements")
    return differences

