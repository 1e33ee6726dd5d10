from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, final

from typing_extensions import Buffer, disjoint_base

class _WithDLPack(Protocol):
    def __dlpack__(self, *, stream: Any = None) -> Any: ...

class _WithCudaInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

_Array: TypeAlias = _WithDLPack | Buffer | _WithCudaInterface
"""An array of any library: with DLPack's exchange table, `__dlpack__` or the buffer protocol."""
_StreamLike: TypeAlias = Stream | int | Any | None
"""None, a weft.Stream, the address of a vendor's stream, or an object with `__cuda_stream__`."""
version: str
_Kernel: TypeAlias = Callable[[dict[str, Any]], object]
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
    def _view(
        self, shape: Sequence[int], strides: Sequence[int] | None, dtype: str, is_written: bool, /
    ) -> Shard: ...

@final
class Callback: ...

@disjoint_base
class Symm:
    def memory(self, peer: int | None = None, /) -> Shard | None: ...

@final
class Recording:
    def __new__(cls, context: Context, capacity: int) -> Self: ...
    def stop(self) -> tuple[list[dict[str, Any]], int]: ...

@disjoint_base
class Comm:
    def collective(
        self,
        name: _Collective,
        send: _Array | None = None,
        recv: _Array | None = None,
        op: _Reduction = "sum",
        root: int = 0,
        send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
        count: int = 0,
        stream: _StreamLike = None,
    ) -> None: ...
    def group_begin(self) -> None: ...
    def group_end(self) -> None: ...

def describe(array: _Array, /) -> tuple[str, tuple[int, ...]]: ...
def move_array(
    context: Context,
    array: _Array,
    source: _layouts.Spec,
    target: _layouts.Spec,
    out: _Array | None = None,
    stream: _StreamLike = None,
) -> Any: ...
def routing_move(
    routing: Routing, source: _Array, target: _Array, stream: _StreamLike, combine: bool, unused: int = 0,
    keep_dropped: bool = False, /,
) -> None: ...
def attention_copy(
    attention: Attention, source: _Array, target: _Array, stream: _StreamLike, restore: bool, dim: int, /
) -> None: ...
def attention_run(
    attention: Attention, function: _Kernel, tensors: tuple[_Array, ...], stream: _StreamLike, /
) -> None: ...
