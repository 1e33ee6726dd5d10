"""Checkpoints: read, load, save, reshard and verify."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from . import _arrays, _weft
from ._errors import MismatchError, NotFoundError, ParseError, nearest
from ._layouts import Mesh, Spec
from ._tensors import Tensor
from ._weft import Context, LayoutFile, Rules, Saving

if TYPE_CHECKING:
    from typing import Unpack

    from ._weft import _Array

    class _SaveOptions(_weft._ContextSaveOptions, total=False):
        context: Context | None

_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Format: TypeAlias = Literal["safetensors", "huggingface", "ranks", "npy"]  # that weft writes
_Entry: TypeAlias = tuple[str, str, Sequence[int]] | tuple[str, str, Sequence[int], str | None]


@_weft.use
class Checkpoint(_weft.Checkpoint):
    """Named tensors in files: safetensors, Hugging Face folders, DCP, files per rank, .npy.

    A tensor is stated by its name, or by its number in the order of names.

    >>> import tempfile, weft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with weft.Writer(f"{folder}/x.safetensors", [("x", "u8", (2, 2))]) as writer:
    ...         writer.write("x", memoryview(b"abcd").cast("B", (2, 2)))
    ...     with weft.Checkpoint(f"{folder}/x.safetensors") as checkpoint:
    ...         print(checkpoint.names, checkpoint.read("x").tolist())
    ['x'] [[97, 98], [99, 100]]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        try:
            return f"<weft.Checkpoint, {self.format}, {self.tensors} tensors>"
        except RuntimeError:
            return "<weft.Checkpoint, closed>"

    def __len__(self) -> int:
        return self.tensors

    def __contains__(self, name: str) -> bool:
        try:
            self.find(name)
        except NotFoundError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def _number(self, name: int | str) -> int:
        return self.find(name) if isinstance(name, str) else name

    @property
    def names(self) -> list[str]:
        """The names of the tensors, in ascending order."""
        return [self._tensor(index)["name"] for index in range(self.tensors)]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the first file."""
        return dict(map(self._metadata, range(self.metadata_count)))

    @property
    def unlisted(self) -> list[dict[str, Any]]:
        """The tensors of safetensors files that model.safetensors.index.json does not list."""
        return list(map(self._unlisted, range(self.unlisted_count)))

    def describe(self, name: int | str) -> dict[str, Any]:
        """The dtype, the shape and the place of a tensor.

        stored is the dtype in the file; dtype is None if weft does not have it.
        """
        found = self._tensor(self._number(name))
        found["stored"] = found.pop("dtype_name")
        if not isinstance(found["dtype"], str):
            found["dtype"] = None
        return found

    def spec(self, name: int | str, placements: LayoutFile | str | os.PathLike[str] | None = None, mesh: Mesh | str | None = None) -> Spec:
        """The layout of a tensor: by a LayoutFile, its text, file or name, or its own one in a folder with a file per rank."""
        return self._spec(self._number(name), _target(placements, mesh))

    def read_into(
        self, name: int | str, target: _Array, offset: Sequence[int] | None = None, sizes: Sequence[int] | None = None
    ) -> None:
        """Read a box of a tensor to an array of its dtype and of the box's shape, or to its bytes (u8, one dimension)."""
        self._read("target", name, target, offset, sizes)

    def _read(self, argument: str, name: int | str, target: _Array, offset: Sequence[int] | None, sizes: Sequence[int] | None) -> None:
        number, about = self._number(name), self.describe(name)
        _arrays.check_part(argument, target, about["dtype"], self._box(name, about, offset, sizes), f"the box of tensor {name}")
        super().read(number, target, offset, sizes)

    @staticmethod
    def _box(name: int | str, about: dict[str, Any], offset: Sequence[int] | None, sizes: Sequence[int] | None) -> tuple[int, ...]:
        """The shape of a box; without sizes it ends with the tensor."""
        if sizes is not None:
            return tuple(sizes)
        start = offset if offset is not None else (0,) * len(about["shape"])
        if any(first > size for size, first in zip(about["shape"], start)):
            raise ValueError(f"offset is {tuple(start)}, but tensor {name} has the shape {about['shape']}")
        return tuple(size - first for size, first in zip(about["shape"], start))

    def read_shard(self, name: int | str, target: _Array, spec: Spec, rank: int) -> None:  # type: ignore[override]
        """Read a rank's shard of a tensor to an array of its dtype and shape, or to its bytes (u8, one dimension)."""
        number, dtype = self._number(name), self.describe(name)["dtype"]
        _arrays.check_part("target", target, dtype, spec.shard(rank)[0], f"the shard of rank {rank} of tensor {name}")
        super().read_shard(number, spec, rank, target)

    def read(  # type: ignore[override]
        self, name: int | str, offset: Sequence[int] | None = None, sizes: Sequence[int] | None = None, *, out: Any = None
    ) -> Any:
        """A box of a tensor; without offset and sizes the whole tensor.  Without out, a memoryview.

        out is an array of the dtype of the tensor and of the shape of the box, or bytes: u8 in one dimension.
        """
        if out is None:
            about = self.describe(name)
            if about["dtype"] is None:
                raise TypeError(f"tensor {name} is {about['stored']}, for which weft has no dtype; give out")
            out = _arrays.empty(memoryview(b""), self._box(name, about, offset, sizes), about["dtype"])
        self._read("out", name, out, offset, sizes)
        return out

    def checksum(self, name: int | str) -> int:
        """A checksum of the elements of a tensor, equal in every layout and format."""
        return super().checksum(self._number(name))

    def check_replicas(self, name: int | str) -> None:
        """Compare the replicas of a tensor in files of several ranks."""
        super().check_replicas(self._number(name))


_Source: TypeAlias = Checkpoint | _Path
_Rules: TypeAlias = Rules | str | os.PathLike[str] | None


@_weft.use
class Writer(_weft.Writer):
    """A new checkpoint.  At the end of a `with` block it is complete.

    An entry is (name, dtype, shape) or, for files per rank, (name, dtype, shape, placements).
    """

    __slots__ = ("_entries",)
    _entries: dict[str, tuple[int, int, str]]  # name -> number, dimensions, dtype

    def __new__(
        cls,
        path: _Path,
        entries: Sequence[_Entry],
        format: _Format | None = None,
        replace: bool = False,
        mesh: Mesh | None = None,
        file_bytes: int = 0,
        metadata: Mapping[str, str] | None = None,
    ) -> Writer:
        _check_format(format)
        entries = [_checked(entry) for entry in entries]
        made = super().__new__(
            cls, path, entries, format=format, replace=replace, mesh=mesh, file_bytes=file_bytes, metadata=None if metadata is None else dict(metadata))  # fmt: skip
        made._entries = {
            entry[0]: (index, len(entry[2]), entry[1].replace("_", "").lower()) for index, entry in enumerate(entries)
        }
        return made

    def write(self, name: str, array: Any, offset: Sequence[int] | None = None) -> None:  # type: ignore[override]
        """Write the box of a tensor that begins at offset, with the shape of the array."""
        if name not in self._entries:
            known = list(self._entries)
            raise NotFoundError(
                f"weft.Writer.write: the checkpoint has no tensor {name!r}{nearest(str(name), known) or _listed(known)}")
        (number, dims, dtype), (found, shape) = self._entries[name], _weft.describe(array)
        if _weft._dtype_parse(dtype) != found:
            raise TypeError(f"tensor {name} is {dtype}, the array {found}")
        if len(shape) != dims:
            raise ValueError(f"tensor {name} has {dims} dimensions, the array {len(shape)}")
        super().write(number, array, offset, shape)

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                self.commit()
        finally:
            self.close()


def _listed(names: list[str]) -> str:
    """`; its tensors are "a" and "b"`, and how many more."""
    shown = ", ".join(map(repr, names[:8]))
    return f"; its tensors are {shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"


def _check_format(format: str | None) -> None:  # noqa: A002
    """ValueError for a format that weft does not write."""
    written = get_args(_Format)
    if format is not None and format not in written:
        raise ValueError(f"format is {format!r}; expected one of: {', '.join(written)}")


def _checked(entry: Any) -> Any:
    """An entry of a Writer: three or four parts, with a dtype that weft or a file has."""
    if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) not in (3, 4):
        raise ValueError(f"an entry must be (name, dtype, shape) or (name, dtype, shape, placements), not {entry!r}")
    dtype = entry[1]
    if not isinstance(dtype, str):
        raise TypeError(f'the dtype of an entry must be a str such as "f32", not {dtype!r}')
    if dtype not in _arrays.NUMPY_NAMES and dtype in _arrays.NUMPY_NAMES.values():
        known = next(name for name, other in _arrays.NUMPY_NAMES.items() if other == dtype)
        raise ValueError(f"the dtype of an entry is {dtype!r}; did you mean {known!r}?")
    return (entry[0], dtype, tuple(entry[2]), *entry[3:])


def checkpoint(path: _Source) -> Checkpoint:
    """The checkpoint at a path; a Checkpoint is returned as it is."""
    return path if isinstance(path, Checkpoint) else Checkpoint(path)


def _for_all(placements: str, mesh: Mesh) -> LayoutFile:
    """The layout in which all tensors have these placements."""
    try:
        return LayoutFile.parse(f"mesh {mesh}\n* {placements}\n")
    except ParseError as error:  # of a line that the user has not written
        error.args = (re.sub(r"^.*?(?=placements \")", "", str(error)),)
        raise


def layout(text: LayoutFile | str | os.PathLike[str], mesh: Mesh | None = None) -> LayoutFile:
    """The layout of a text or a file, or one that comes with weft, by its name.

    A text has a line `mesh ...`, or is placements for all tensors.
    """
    if isinstance(text, LayoutFile):
        return text
    text = str(text)
    if "\n" in text or text.startswith("mesh "):
        return LayoutFile.parse(text, mesh)
    if re.match(r"\s*(\*|[A-Z]+\s*(\(|,|$))", text) and not os.path.exists(text):  # placements, such as S(0),R
        if mesh is None:
            raise ValueError(f"'{text}' is not a file; if it is placements of all tensors, give their mesh")
        return _for_all(text, mesh)
    return LayoutFile(text, mesh)


def _source(path: _Source, rules: _Rules) -> Checkpoint:
    source = checkpoint(path)
    if rules is None:
        return source
    return source.map(rules if isinstance(rules, Rules) else Rules(rules))


def _target(placements: LayoutFile | str | os.PathLike[str] | None, mesh: Mesh | str | None) -> LayoutFile | None:
    import weft

    if placements is None:
        if mesh is not None:
            raise ValueError("mesh is given without placements")
        return None
    return layout(placements, weft.mesh(mesh) if mesh is not None else None)


def _context(context: Context | None) -> Context:
    import weft

    return weft.current() if context is None else context


def load(
    path: _Source,
    placements: LayoutFile | str | os.PathLike[str] | None = None,
    mesh: Mesh | str | None = None,
    names: Sequence[str] | None = None,
    *,
    rules: _Rules = None,
    jobs: int = 0,
    context: Context | None = None,
) -> dict[str, Tensor]:
    """Load the tensors of a checkpoint in a layout, by name.  Collective.

    placements is a LayoutFile, its text or file, the name of one that comes with weft ("llama"), or with a mesh the
    placements of all tensors.  A folder with a file per rank needs none.  rules are Rules, or their file or name
    ("fuse-qkv").

    >>> import tempfile, weft
    >>> with weft.Context() as context, tempfile.TemporaryDirectory() as folder:  # a job of one rank
    ...     with weft.Writer(f"{folder}/x.safetensors", [("x", "u8", (4,))]) as writer:
    ...         writer.write("x", b"abcd")
    ...     tensors = weft.load(f"{folder}/x.safetensors", "S(0)", "tp=1", context=context)
    ...     print(tensors["x"].spec, tensors["x"].local(0).shape)
    ...     del tensors
    u8[4] S(0) (4,)
    """
    source = _source(path, rules)
    tensors = _context(context)._load(source, _target(placements, mesh), names=names, jobs=jobs)
    return dict(zip(source.names if names is None else names, tensors))


_Tensors: TypeAlias = Mapping[str, Tensor] | Sequence[Tensor]


def load_into(
    path: _Source,
    tensors: _Tensors,
    *,
    rules: _Rules = None,
    jobs: int = 0,
    stream: Any = None,
    context: Context | None = None,
) -> None:
    """Read the elements of tensors that exist, a dictionary by name or a list, from a checkpoint.  Collective.

    Tensors of a list have the names that they were made with.  The call waits for the work on stream first.

    >>> import tempfile, weft
    >>> with weft.Context() as context, tempfile.TemporaryDirectory() as folder:  # a job of one rank
    ...     with weft.Writer(f"{folder}/x.safetensors", [("x", "u8", (4,))]) as writer:
    ...         writer.write("x", b"abcd")
    ...     x = weft.Tensor(context, weft.spec("u8[4] S(0)", "tp=1"))
    ...     weft.load_into(f"{folder}/x.safetensors", {"x": x}, context=context)
    ...     x.to_host(elements := bytearray(4))
    ...     print(bytes(elements))
    ...     del x
    b'abcd'
    """
    found, given, options = _save_arguments(tensors, {"context": context})
    found._load_into(_source(path, rules), given, names=options.get("names"), jobs=jobs, stream=stream)


def _save_arguments(tensors: _Tensors, options: Any) -> tuple[Context, list[Tensor], dict[str, Any]]:
    _check_format(options.get("format"))
    if isinstance(tensors, Tensor) or not isinstance(tensors, (Mapping, Sequence)):
        raise TypeError(f"tensors must be a dictionary of tensors by name, such as {{'x': tensor}}, or a list of them, not {tensors!r}")
    if isinstance(tensors, Mapping):
        options["names"] = list(tensors)
        tensors = list(tensors.values())
    return _context(options.pop("context", None)), list(tensors), options


def save(path: _Path, tensors: _Tensors, **options: Unpack[_SaveOptions]) -> None:
    """Write tensors of any layouts, a dictionary by name or a list, to a checkpoint.  Collective.

    The options are names, layout, format, replace, file_bytes, metadata, stream, jobs and context.  format is
    "safetensors", "huggingface", "ranks" or "npy".

    >>> import tempfile, weft
    >>> with weft.Context() as context, tempfile.TemporaryDirectory() as folder:  # a job of one rank
    ...     x = weft.Tensor(context, weft.spec("f32[4] S(0)", "tp=1"))
    ...     x.fill(1)
    ...     weft.save(f"{folder}/x.safetensors", {"x": x}, metadata={"step": "10"}, context=context)
    ...     weft.Checkpoint(f"{folder}/x.safetensors").metadata
    ...     del x
    {'step': '10'}
    """
    context, given, arguments = _save_arguments(tensors, options)
    context._save(path, given, **arguments)


def save_begin(path: _Path, tensors: _Tensors, **options: Unpack[_SaveOptions]) -> Saving:
    """As save, while the caller goes on: the result has wait and info.  Collective."""
    context, given, arguments = _save_arguments(tensors, options)
    return context._save_begin(path, given, **arguments)


def _files(plan: _weft.Reshard) -> Iterator[dict[str, Any]]:
    index = 0
    try:
        while True:
            yield plan.file(index)
            index += 1
    except NotFoundError:
        return


def _go_on(done: int, total: int) -> None:
    """The progress of a caller who does not ask: while Python runs, it sees interrupts."""


def reshard(
    source: _Source,
    path: _Path,
    placements: LayoutFile | str | os.PathLike[str] | None = None,
    mesh: Mesh | str | None = None,
    *,
    rules: _Rules = None,
    dry: bool = False,
    predict: bool = False,
    **options: Unpack[_weft._ReshardOptions],
) -> dict[str, Any]:
    """Write a checkpoint in another layout or format, without a job.  The figures of the run are returned.

    Without placements, whole tensors are written.  The options are layout, format, replace, file_bytes,
    checksums, keep, resume, memory, jobs, progress (called with the bytes done and in all), dry (nothing is written)
    and predict (the figures have predicted_ns, the time of a sample of the run).
    """
    _check_format(options.get("format"))
    if placements is not None:
        options["layout"] = _target(placements, mesh)
    options["progress"] = options.get("progress") or _go_on
    with _weft.Reshard(_source(source, rules), path, **options) as plan:
        predicted = plan.predict() if predict else None
        if not dry:
            plan.run()
        return {**plan.info, "files": list(_files(plan)), "predicted_ns": predicted}


def verify(first: _Source, second: _Source) -> list[str]:
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

