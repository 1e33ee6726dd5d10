"""PyTorch's distributed checkpoints (DCP) in files of libweft_file."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import (  # fmt: skip
    BytesStorageMetadata, ChunkStorageMetadata, Metadata, StorageMeta, TensorProperties, TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

import weft

from ._dtypes import DTYPES

ITEMS = "weft.items"  # metadata of each file: the names of the items that are no tensors, a JSON list
PARTIAL, BEFORE = ".weft-partial", ".weft-before"  # beside the path, while a checkpoint is written
_Path = str | os.PathLike[str]
_Value = TypeVar("_Value")


def finished_with(value: _Value) -> Future[_Value]:
    """A future that has its value."""
    future: Future[_Value] = Future()
    future.set_result(value)
    return future


class _Piece(NamedTuple):
    """A part of a tensor, or an item as its bytes, that this rank writes."""

    item: WriteItem
    array: torch.Tensor
    dtype: str
    offset: tuple[int, ...]


class Writer(StorageWriter):
    """Writes a checkpoint of torch.distributed.checkpoint as safetensors files, one or few of each rank.

    weft and PyTorch's HuggingFaceStorageReader read them.  The folder gets its name when all ranks have written.  With
    replace, a checkpoint that has the name is replaced then.
    """

    def __init__(self, path: _Path, replace: bool = False) -> None:
        self._path, self._replace = os.fspath(path), replace

    def reset(self, checkpoint_id: _Path | None = None) -> None:
        """Write the next checkpoint to another path."""
        if checkpoint_id is not None:
            self._path = os.fspath(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _Path) -> bool:
        """Whether it is a path."""
        return isinstance(checkpoint_id, (str, os.PathLike)) and "://" not in os.fspath(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        """The path."""
        return StorageMeta(checkpoint_id=self._path)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Refuse ranks that do not plan together: nobody would know when all have written."""
        if not kwargs.get("use_collectives", True):
            raise weft.UnsupportedError("weft.torch.Writer: ranks write one checkpoint together; pass use_collectives=True")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Nothing."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Coordinator: make an empty folder, and tell all ranks their numbers and the items that are no tensors."""
        if os.path.lexists(self._path) and not self._replace:
            raise FileExistsError(f"weft.torch.Writer: {self._path} exists; with replace=True it is replaced")
        shutil.rmtree(self._path + PARTIAL, ignore_errors=True)
        os.makedirs(self._path + PARTIAL)
        names = sorted({item.index.fqn for plan in plans for item in plan.items if item.type is WriteItemType.BYTE_IO})
        return [_with_storage(plan, (number, len(plans), names)) for number, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of this rank.  A file has each name once, so further parts of a tensor are in further files."""
        number, ranks, names = plan.storage_data
        results: list[WriteResult] = []
        for turn, pieces in enumerate(_by_file(plan.items, planner)):
            file = f"shard-{number + 1 + turn * ranks:05}-model-00001-of-00001.safetensors"
            _write(os.path.join(self._path + PARTIAL, file), pieces, names)
            for piece in pieces.values():
                size = piece.array.numel() * piece.array.element_size()
                results.append(WriteResult(index=piece.item.index, size_in_bytes=size, storage_data=file))
        return finished_with(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Coordinator: the folder gets its name."""
        if os.path.lexists(self._path):
            shutil.rmtree(self._path + BEFORE, ignore_errors=True)
            os.rename(self._path, self._path + BEFORE)
        os.rename(self._path + PARTIAL, self._path)
        _flush_folder(os.path.dirname(os.path.abspath(self._path)))
        shutil.rmtree(self._path + BEFORE, ignore_errors=True)


def _with_storage(plan: SavePlan, data: object) -> SavePlan:
    return dataclasses.replace(plan, storage_data=data)


def _flush_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _piece(item: WriteItem, planner: SavePlanner) -> _Piece:
    data = planner.resolve_data(item)
    if isinstance(data, io.BytesIO):
        content = bytearray(data.getbuffer())
        return _Piece(item, torch.frombuffer(content, dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8), "u8", (0,))
    array = data.detach().resolve_conj().resolve_neg().cpu().contiguous()
    dtype, _ = weft.describe(array)
    offset = tuple(item.tensor_data.chunk.offsets) if item.tensor_data is not None else (0,) * array.dim()
    return _Piece(item, array, dtype, offset)


def _by_file(items: list[WriteItem], planner: SavePlanner) -> Iterator[dict[str, _Piece]]:
    """The pieces of each file, by name.  A file's pieces are in memory of the host until the next file."""
    turns: list[dict[str, WriteItem]] = []
    for item in items:
        fits = next((turn for turn in turns if item.index.fqn not in turn), None)
        if fits is None:
            turns.append(fits := {})
        fits[item.index.fqn] = item
    for turn in turns:
        yield {name: _piece(item, planner) for name, item in turn.items()}


def _write(path: str, pieces: Mapping[str, _Piece], items: list[str]) -> None:
    """A safetensors file with the metadata that DCP gives its own."""
    offsets = {name: {"saved_offsets": list(piece.offset)} for name, piece in pieces.items()}
    metadata = {"DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(offsets), ITEMS: json.dumps(items), "format": "pt"}
    entries = [(name, piece.dtype, tuple(piece.array.shape)) for name, piece in pieces.items()]
    with weft.Writer(path, entries, format="safetensors", metadata=metadata) as writer:
        for name, piece in pieces.items():
            if piece.array.numel() > 0:
                writer.write(name, piece.array)


class Reader(StorageReader):
    """Reads any checkpoint of weft for torch.distributed.checkpoint: those of Writer and of PyTorch's writers, Hugging Face
    folders, safetensors, files per rank.

    Each rank reads what its shards need.  Items that are no tensors are in checkpoints of Writer and of FileSystemWriter.
    """

    def __init__(self, path: _Path) -> None:
        self._path = os.fspath(path)
        self._open: weft.Checkpoint | None = None
        self._items: FileSystemReader | None = None  # of a folder of FileSystemWriter, for what is no tensor

    def reset(self, checkpoint_id: _Path | None = None) -> None:
        """Read another path from now on."""
        if checkpoint_id is not None:
            self._path = os.fspath(checkpoint_id)
        self._open = self._items = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _Path) -> bool:
        """Whether it is a path that exists."""
        return Writer.validate_checkpoint_id(checkpoint_id) and os.path.exists(checkpoint_id)

    @property
    def _checkpoint(self) -> weft.Checkpoint:
        if self._open is None:
            self._open = weft.Checkpoint(self._path)
        return self._open

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint has; each tensor as one part, because weft reads any box of it."""
        found = Metadata(state_dict_metadata={}, storage_meta=StorageMeta(checkpoint_id=self._path))
        checkpoint = self._checkpoint
        if checkpoint.format == "dcp":
            self._items = FileSystemReader(self._path)
            found = self._items.read_metadata()
        names = json.loads(checkpoint.metadata.get(ITEMS, "[]"))
        for name in checkpoint.names:
            found.state_dict_metadata[name] = BytesStorageMetadata() if name in names else _about(checkpoint, name, found)
        return found

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if self._checkpoint.format == "dcp":
            self._items = FileSystemReader(self._path) if self._items is None else self._items
            self._items.set_up_storage_reader(metadata, is_coordinator)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the boxes that the plan of this rank names."""
        others = []
        for item in plan.items:
            if item.type is not LoadItemType.BYTE_IO:
                target = planner.resolve_tensor(item).detach()
                _read_box(self._checkpoint, item.storage_index.fqn, target, tuple(item.storage_offsets), tuple(item.lengths))
                planner.commit_tensor(item, target)
            elif self._items is not None:
                others.append(item)
            else:
                planner.load_bytes(item, io.BytesIO(bytes(self._checkpoint.read(item.storage_index.fqn))))
        if others and self._items is not None:
            self._items.read_data(dataclasses.replace(plan, items=others), planner)
        return finished_with(None)


def _about(checkpoint: weft.Checkpoint, name: str, found: Metadata) -> TensorStorageMetadata:
    """The dtype and the shape of a tensor."""
    shape = torch.Size(checkpoint.describe(name)["shape"])
    known = found.state_dict_metadata.get(name)
    if isinstance(known, TensorStorageMetadata):
        properties, shape = known.properties, known.size
    else:
        properties = TensorProperties(dtype=_dtype(checkpoint, name))
    return TensorStorageMetadata(properties, shape, [ChunkStorageMetadata(torch.Size([0] * len(shape)), shape)])


def _dtype(checkpoint: weft.Checkpoint, name: str) -> torch.dtype:
    about = checkpoint.describe(name)
    if about["dtype"] not in DTYPES:
        raise weft.UnsupportedError(f"weft.torch.Reader: tensor {name} is {about['stored']}, for which PyTorch has no dtype here")
    return DTYPES[about["dtype"]]


def _read_box(checkpoint: weft.Checkpoint, name: str, target: torch.Tensor, offset: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    """Read a box of a tensor to a tensor of any device, dtype and strides."""
    dtype = _dtype(checkpoint, name)
    if tuple(target.shape) != sizes:
        raise ValueError(f"weft.torch.Reader: the box of {name} is {list(sizes)}, but the tensor for it {list(target.shape)}")
    is_direct = target.device.type == "cpu" and target.dtype is dtype and target.is_contiguous() and not target.is_conj() and not target.is_neg()
    box = target if is_direct else torch.empty(sizes, dtype=dtype)
    if box.numel() == 0:
        return
    checkpoint.read_into(name, box, offset, sizes)
    if not is_direct:
        target.copy_(box)
