from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, TypeVar, final

from typing_extensions import Buffer, disjoint_base

_Array: TypeAlias = Any
"""An array of any library: with DLPack's exchange table, `__dlpack__` or the buffer protocol."""
_StreamLike: TypeAlias = Stream | int | Any | None
"""None, a weft.Stream, the address of a vendor's stream, or an object with `__cuda_stream__`."""
version: str
_Kernel: TypeAlias = Callable[
    [str, int, tuple[Shard | None, ...], tuple[Shard, ...], tuple[dict[str, Any], ...] | None, float, int], object
]
_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]

_Class = TypeVar("_Class", bound=type)

def use(class_: _Class, /) -> _Class: ...

@disjoint_base
class Context:
    def __new__(
        cls,
        backend: str | None = None,
        rank: int = 0,
        size: int = 0,
        rendezvous: str | None = None,
        token: str | None = None,
        plugin_path: str | None = None,
        device: int = -1,
        timeout: float = 0,
        simulated_ranks: int = 0,
        exchange: Callable[[bytes], bytes] | None = None,
    ) -> Self: ...
    @property
    def backend(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def _leave(self) -> None: ...
    def close(self) -> None: ...
    def wait(self, stream: _StreamLike = None) -> None: ...

@disjoint_base
class Tensor:
    @classmethod
    def wrap(
        cls, context: Context, spec: _layouts.Spec, array: _Array, name: str | None = None, agree: bool = False
    ) -> _tensors.Tensor: ...
    def local(self, rank: int, stream: Any = None) -> Shard: ...

@final
class Move:
    def __new__(cls, context: Context, sources: Sequence[_layouts.Spec], targets: Sequence[_layouts.Spec]) -> Self: ...
    def __call__(
        self, sources: Sequence[_Array], targets: Sequence[_Array], stream: _StreamLike = None
    ) -> None: ...
    def fix(self, sources: Sequence[_Array], targets: Sequence[_Array]) -> FixedMove: ...

@final
class FixedMove:
    def __call__(self, stream: _StreamLike = None) -> None: ...

@final
class Shard:
    @property
    def spec(self) -> _layouts.Spec | None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def offset(self) -> tuple[int, ...]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    @property
    def _memory(self) -> tuple[int, tuple[int, ...], str, bool]: ...

@disjoint_base
class Symm:
    def memory(self, peer: int | None = None, /) -> Shard | None: ...

@disjoint_base
class Pipeline:
    def __new__(cls) -> Self: ...
    def run(self) -> None: ...
    def open(
        self,
        comm: _comm.Comm,
        schedule: _schedules.Schedule,
        values: Sequence[Mapping[str, Any]] | None,
        loss_scale: float,
        unshard: bool,
        reshard: bool,
        reduce: bool,
        overlap: bool,
        shapes: bool,
        /,
    ) -> None: ...

@final
class Recording:
    def __new__(cls, context: Context, capacity: int | None = None) -> Self: ...
    def stop(self) -> tuple[list[dict[str, Any]], int, dict[str, Any]]: ...

@disjoint_base
class Comm:
    def collective(
        self,
        name: str,
        send: _Array = None,
        recv: _Array = None,
        op: str = "sum",
        root: int = 0,
        send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
        count: int = 0,
        stream: _StreamLike = None,
    ) -> None: ...
    def report(self) -> list[str]: ...
    def group_begin(self) -> None: ...
    def group_end(self) -> None: ...

def describe(array: _Array, /) -> tuple[str, tuple[int, ...]]: ...
def move_array(
    context: Context,
    array: _Array,
    source: _layouts.Spec,
    target: _layouts.Spec,
    out: _Array = None,
    stream: _StreamLike = None,
) -> _Array: ...
def op_apply(
    context: Context,
    call: dict[str, Any],
    inputs: Sequence[_tensors.Tensor | None],
    kernel: _Kernel,
    stream: _StreamLike,
    phases: bool,
    /,
) -> tuple[_tensors.Tensor | None, ...]: ...
def load(
    context: Context, checkpoint: _files.Checkpoint, layout: Layout, names: Sequence[str] | None, jobs: int, /
) -> tuple[_tensors.Tensor, ...]: ...
def checkpoint_read(
    checkpoint: _files.Checkpoint, index: int, target: _Array, offset: Sequence[int] | None, sizes: Sequence[int] | None, /
) -> None: ...
def checkpoint_read_shard(checkpoint: _files.Checkpoint, index: int, target: _Array, spec: _layouts.Spec, rank: int, /) -> None: ...
def checkpoint_write(
    writer: _files.Writer, index: int, dims: int, dtype: str, name: str, array: _Array, offset: Sequence[int] | None, /
) -> None: ...
def reshard_create(
    checkpoint: _files.Checkpoint,
    path: _Path,
    progress: Callable[[int, int], object] | None,
    /,
    *,
    layout: Layout | None = None,
    format: str | None = None,
    replace: bool = False,
    file_bytes: int = 0,
    checksums: bool = False,
    keep: bool = False,
    resume: bool = False,
    memory: int = 0,
    jobs: int = 0,
) -> Reshard: ...
def op_ask(what: str, call: dict[str, Any], options: dict[str, Any], /) -> Any: ...
def op_backward_call(backward: Backward, index: int, /) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]: ...
def op_backward_apply(
    backward: Backward,
    context: Context,
    forward: Sequence[_tensors.Tensor | None],
    gradients: Sequence[_tensors.Tensor | None],
    kernel: _Kernel,
    stream: _StreamLike,
    /,
) -> tuple[_tensors.Tensor | None, ...]: ...
def routing_move(
    routing: Routing, source: _Array, target: _Array, stream: _StreamLike, combine: bool, /
) -> None: ...
def attention_copy(
    attention: Attention, source: _Array, target: _Array, stream: _StreamLike, restore: bool, dim: int, /
) -> None: ...
def attention_run(
    attention: Attention, function: Callable[..., Any], tensors: tuple[_Array, ...], stream: _StreamLike, /
) -> None: ...
def overlap_run(
    overlap: Overlap,
    shard: _Array,
    rows: int,
    function: Callable[[Shard, int, int], object],
    chunks: int,
    flops: int,
    stream: _StreamLike,
    writes: bool,
    /,
) -> None: ...
