#!/usr/bin/env python3
"""Write small checkpoints in the format of torch.distributed.checkpoint: make.py FOLDER

PyTorch is not needed.  Classes of the same names stand in for its classes, so that Python's own
pickle writes what it writes for the real ones.  tests/data/dcp has the output for each protocol."""
import collections
import dataclasses
import enum
import io
import os
import pathlib
import pickle
import struct
import sys
import types
import zipfile


def module(name):
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        path = ".".join(parts[:i])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            if i > 1:
                setattr(sys.modules[".".join(parts[: i - 1])], parts[i - 1], sys.modules[path])
    return sys.modules[name]


def place(name, thing, called=None):
    """Make THING look like MODULE.NAME."""
    thing.__module__, thing.__qualname__ = name, called or thing.__name__
    thing.__name__ = called or thing.__name__
    setattr(module(name), thing.__name__, thing)
    return thing


class Named:
    """A dtype, which pickles as a global."""

    def __init__(self, name):
        self.name = name
        setattr(module("torch"), name, self)

    def __reduce__(self):
        return self.name


class Size(tuple):
    def __reduce__(self):
        return (Size, (tuple(self),))


place("torch", Size)
DTYPES = {name: Named(name) for name in ("float32", "bfloat16", "int64", "bool", "float8_e4m3fn",
                                         "float4_e2m1fn_x2")}
for dtype in DTYPES.values():
    dtype.__class__.__module__ = "torch"
METADATA = "torch.distributed.checkpoint.metadata"


def _get_layout(name):
    return name


def _rebuild_tensor_v2(*_):
    return None


def _rebuild_tensor_v3(*_):
    return None


def _rebuild_parameter(*_):
    return None


place("torch.serialization", _get_layout)
for function in (_rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter):
    place("torch._utils", function)


class Layout:
    def __reduce__(self):
        return (_get_layout, ("torch.strided",))


class _MEM_FORMAT_ENCODING(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0


place(METADATA, _MEM_FORMAT_ENCODING)


@dataclasses.dataclass
class TensorProperties:
    dtype: object
    layout: object = dataclasses.field(default_factory=Layout)

    def __getstate__(self):
        return (self.dtype, self.layout, False, _MEM_FORMAT_ENCODING(0), False)


@dataclasses.dataclass
class ChunkStorageMetadata:
    offsets: Size
    sizes: Size


@dataclasses.dataclass
class TensorStorageMetadata:
    properties: TensorProperties
    size: Size
    chunks: list


@dataclasses.dataclass
class BytesStorageMetadata:
    pass


@dataclasses.dataclass
class StorageMeta:
    checkpoint_id: object = None
    save_id: str = None
    load_id: str = None
    modules: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Metadata:
    state_dict_metadata: dict
    planner_data: object = None
    storage_data: object = None
    storage_meta: object = None
    version: str = None


@dataclasses.dataclass(frozen=True)
class MetadataIndex:
    fqn: str
    offset: Size = None
    index: int = None


@dataclasses.dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int
    transform_descriptors: object = None


for kind in (TensorProperties, ChunkStorageMetadata, TensorStorageMetadata, BytesStorageMetadata,
             StorageMeta, Metadata, MetadataIndex):
    place(METADATA, kind)
place("torch.distributed.checkpoint.filesystem", _StorageInfo)
STORAGES = {name: place("torch", type(name, (), {})) for name in (
    "FloatStorage", "BFloat16Storage", "LongStorage", "BoolStorage")}
UntypedStorage = place("torch.storage", type("UntypedStorage", (), {}))
OF_DTYPE = {"float32": "FloatStorage", "bfloat16": "BFloat16Storage", "int64": "LongStorage",
            "bool": "BoolStorage"}
UNIT = {"float32": 4, "bfloat16": 2, "int64": 8, "bool": 1, "float8_e4m3fn": 1,
        "float4_e2m1fn_x2": 1}


class Reduced:
    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts


class Storage:
    def __init__(self, dtype, count):
        kind = STORAGES[OF_DTYPE[dtype]] if dtype in OF_DTYPE else UntypedStorage
        self.id = ("storage", kind, "0", "cpu", count)


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Storage) else None


def strides_of(shape):
    out, stride = [], 1
    for size in reversed(shape):
        out.insert(0, stride)
        stride *= max(size, 1)
    return tuple(out)


def save(dtype, shape, elements, strides=None, offset=0, parameter=False):
    """What torch.save writes for a tensor over the storage ELEMENTS."""
    storage = Storage(dtype, len(elements) // UNIT[dtype])
    arguments = (storage, offset, tuple(shape), strides or strides_of(shape), False,
                 collections.OrderedDict())
    if dtype in OF_DTYPE:
        tensor = Reduced(_rebuild_tensor_v2, arguments)
    else:
        tensor = Reduced(_rebuild_tensor_v3, arguments + (DTYPES[dtype],))
    if parameter:
        tensor = Reduced(_rebuild_parameter, (tensor, True, collections.OrderedDict()))
    stream = io.BytesIO()
    Pickler(stream, 2).dump(tensor)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for name, data in (("data.pkl", stream.getvalue()), ("byteorder", b"little"),
                           ("data/0", elements), ("version", b"3\n")):
            info = zipfile.ZipInfo("archive/" + name)
            end = archive.tell() + 30 + len(info.filename) + 4
            padding = -end % 64
            info.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
            out.writestr(info, data)
    return archive.getvalue()


def bytes_of(count, first=0):
    return bytes((first + i) % 256 for i in range(count))


def write(folder, protocol):
    """w: float32 [4, 6] in three boxes, one of them transposed; p: a bfloat16 parameter; s: an int64
    scalar; f: float8 in part of a larger storage; h: float4; e: without elements; step: no tensor."""
    os.makedirs(folder, exist_ok=True)
    whole = bytes_of(96)
    rows = [whole[24 * i: 24 * i + 24] for i in range(4)]
    left = b"".join(row[:16] for row in rows[2:])   # [2, 4] at (2, 0)
    columns = [b"".join(row[16 + 4 * j: 20 + 4 * j] for row in rows[2:]) for j in range(2)]
    items = [
        ("w", "float32", (4, 6), (0, 0), (2, 6), save("float32", (2, 6), rows[0] + rows[1])),
        ("w", "float32", (4, 6), (2, 0), (2, 4), save("float32", (2, 4), left)),
        ("w", "float32", (4, 6), (2, 4), (2, 2),
         save("float32", (2, 2), columns[0] + columns[1], strides=(1, 2))),
        ("p", "bfloat16", (3,), (0,), (3,), save("bfloat16", (3,), bytes_of(6, 100), parameter=True)),
        ("s", "int64", (), (), (), save("int64", (), bytes_of(8, 7))),
        ("f", "float8_e4m3fn", (2, 2), (0, 0), (2, 2),
         save("float8_e4m3fn", (2, 2), bytes_of(9, 50), strides=(3, 1), offset=1)),
        ("h", "float4_e2m1fn_x2", (2, 3), (0, 0), (2, 3),
         save("float4_e2m1fn_x2", (2, 3), bytes_of(6, 200))),
        ("e", "bool", (0, 3), (0, 0), (0, 3), save("bool", (0, 3), b"")),
    ]
    tensors, places, files = {}, {}, collections.defaultdict(bytes)
    for number, (name, dtype, size, offset, chunk, data) in enumerate(items):
        path = f"__{number % 2}_0.distcp"
        listed = tensors.setdefault(name, TensorStorageMetadata(
            TensorProperties(DTYPES[dtype]), Size(size), []))
        places[MetadataIndex(name, Size(offset), len(listed.chunks) if number != 1 else None)] = \
            _StorageInfo(path, len(files[path]), len(data))
        listed.chunks.append(ChunkStorageMetadata(Size(offset), Size(chunk)))
        files[path] += data
    tensors["step"] = BytesStorageMetadata()
    places[MetadataIndex("step")] = _StorageInfo("__0_0.distcp", len(files["__0_0.distcp"]), 3)
    files["__0_0.distcp"] += b"abc"
    metadata = Metadata(tensors, {name: ("model", name, 0) for name in tensors}, places,
                        StorageMeta(pathlib.PurePosixPath("/tmp/x"), "1"), "1.0.0")
    for path, data in files.items():
        (pathlib.Path(folder) / path).write_bytes(data)
    with open(pathlib.Path(folder) / ".metadata", "wb") as out:
        pickle.dump(metadata, out, protocol)


def main():
    for protocol in (2, 4, 5):
        write(pathlib.Path(sys.argv[1]) / f"protocol{protocol}", protocol)


main()
