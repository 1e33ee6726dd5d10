from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, TypeVar, final

from typing_extensions import Buffer, disjoint_base

_Array: TypeAlias = Any
"""An array of any library: with DLPack's exchange table, `__dlpack__` or the buffer protocol."""

_StreamLike: TypeAlias = _device.Stream | int | Any | None
"""None, a _device.Stream, the address of a vendor's stream, or an object with `__cuda_stream__`."""

version: str

_Class = TypeVar("_Class", bound=type)

def use(class_: _Class, /) -> _Class: ...




@final
class Context:
    def __new__(
        cls,
        backend: str | None = None,
        *,
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
    @property
    def _layouts(self) -> dict[Any, Any]: ...
    def _leave(self) -> None: ...
    def close(self) -> None: ...
    def wait(self, stream: _StreamLike = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@disjoint_base
class Tensor:
    @classmethod
    def create(cls, context: Context, spec: _layouts.Spec, name: str | None = None) -> _tensors.Tensor: ...
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
    def send(self, array: _Array, peer: int, tag: int = 0, stream: _StreamLike = None) -> None: ...
    def receive(self, array: _Array, peer: int, tag: int = 0, stream: _StreamLike = None) -> None: ...
    def report(self) -> list[str]: ...
    def group_begin(self) -> None: ...
    def group_end(self) -> None: ...

def spec_from_shards(
    mesh: _layouts.Mesh, dtype: str, placements: str, dims: int, shards: Sequence[int] | memoryview
) -> _layouts.Spec: ...
def describe(array: _Array, /) -> tuple[str, tuple[int, ...]]: ...
def reorder(nodes: Sequence[tuple[Any, ...]], method: int, memory_limit: int, /) -> tuple[Any, ...]: ...
def move_array(
    context: Context,
    array: _Array,
    source: _layouts.Spec,
    target: _layouts.Spec,
    out: _Array = None,
    stream: _StreamLike = None,
) -> _Array: ...

# ---- operators ----

_Kernel: TypeAlias = Callable[
    [str, int, tuple[Shard | None, ...], tuple[Shard, ...], tuple[dict[str, Any], ...] | None, float, int], object
]
_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]

@final
class Shard:
    @property
    def spec(self) -> _layouts.Spec | None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def offset(self) -> tuple[int, ...]: ...
    @property
    def _memory(self) -> tuple[int, tuple[int, ...], str, bool]: ...
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

@disjoint_base
class Backward:
    def __new__(
        cls,
        name: str,
        inputs: Sequence[_layouts.Spec | None],
        attrs: Mapping[str, Any] | None = None,
        outputs: _Outputs = None,
        wanted: Sequence[bool] | None = None,
        mixed_dtypes: bool = False,
    ) -> Self: ...
    @property
    def calls(self) -> tuple[tuple[str, dict[str, Any], tuple[tuple[str, int], ...]], ...]: ...
    @property
    def gradients(self) -> tuple[_layouts.Spec | None, ...]: ...
    @property
    def local(self) -> bool: ...
    @property
    def cost_ns(self) -> int: ...
    def apply(
        self,
        context: Context,
        forward: Sequence[_tensors.Tensor | None],
        gradients: Sequence[_tensors.Tensor | None],
        kernel: _Kernel,
        stream: _StreamLike = None,
    ) -> tuple[_tensors.Tensor | None, ...]: ...

def op_register(text: str, replace: bool = False) -> None: ...
def op_remove(name: str, /) -> None: ...
def op_text(kind: str, text: str | None = None, /) -> str: ...
def op_digest() -> int: ...
def op_fallback_count() -> int: ...
def op_cache_clear() -> None: ...
def op_check(
    name: str,
    inputs: Sequence[_layouts.Spec | None],
    attrs: Mapping[str, Any] | None = None,
    outputs: _Outputs = None,
    mesh: _layouts.Mesh | None = None,
    flags: int = 0,
    memory_limit: int = 0,
    costs: str | None = None,
    fixed_inputs: Sequence[_layouts.Spec | None] | None = None,
    fixed_outputs: Sequence[_layouts.Spec | None] | None = None,
    wanted_outputs: Sequence[_layouts.Spec | None] | None = None,
    mixed_dtypes: bool = False,
) -> Choice: ...
def op_propose(
    name: str,
    inputs: Sequence[_layouts.Spec | None],
    attrs: Mapping[str, Any] | None = None,
    outputs: _Outputs = None,
    mesh: _layouts.Mesh | None = None,
    flags: int = 0,
    memory_limit: int = 0,
    costs: str | None = None,
    fixed_inputs: Sequence[_layouts.Spec | None] | None = None,
    fixed_outputs: Sequence[_layouts.Spec | None] | None = None,
    wanted_outputs: Sequence[_layouts.Spec | None] | None = None,
    mixed_dtypes: bool = False,
) -> Choice: ...
def op_list(
    name: str,
    inputs: Sequence[_layouts.Spec | None],
    attrs: Mapping[str, Any] | None = None,
    outputs: _Outputs = None,
    mesh: _layouts.Mesh | None = None,
    flags: int = 0,
    memory_limit: int = 0,
    costs: str | None = None,
    fixed_inputs: Sequence[_layouts.Spec | None] | None = None,
    fixed_outputs: Sequence[_layouts.Spec | None] | None = None,
    wanted_outputs: Sequence[_layouts.Spec | None] | None = None,
    mixed_dtypes: bool = False,
) -> list[Choice]: ...
def op_apply(
    context: Context,
    name: str,
    inputs: Sequence[_tensors.Tensor | None],
    kernel: _Kernel,
    attrs: Mapping[str, Any] | None = None,
    outputs: _Outputs = None,
    mesh: _layouts.Mesh | None = None,
    stream: _StreamLike = None,
    mixed_dtypes: bool = False,
) -> tuple[_tensors.Tensor, ...]: ...
def op_apply_phases(
    context: Context,
    name: str,
    inputs: Sequence[_tensors.Tensor | None],
    kernel: _Kernel,
    attrs: Mapping[str, Any] | None = None,
    stream: _StreamLike = None,
    mixed_dtypes: bool = False,
) -> tuple[_tensors.Tensor | None, ...]: ...
def op_moves_set(context: Context, moves: int, /) -> int: ...

# ---- checkpoints ----

@disjoint_base
class Checkpoint:
    def __new__(cls, path: _Path) -> Self: ...
    @property
    def format(self) -> str: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def files(self) -> int: ...
    @property
    def mesh(self) -> _layouts.Mesh | None: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def describe(self, name: str, /) -> dict[str, Any]: ...
    def read_into(
        self,
        name: str,
        target: _Array,
        offset: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
    ) -> None: ...
    def read_shard(self, name: str, target: _Array, spec: _layouts.Spec, rank: int) -> None: ...
    def checksum(self, name: str, /) -> int: ...
    def check_replicas(self, name: str, /) -> None: ...
    def map(self, rules: Rules, /) -> Self: ...

@final
class Writer:
    def __new__(
        cls,
        path: _Path,
        entries: Sequence[
            tuple[str, str, Sequence[int]] | tuple[str, str, Sequence[int], str | None]
        ],
        format: str | None = None,
        replace: bool = False,
        mesh: _layouts.Mesh | None = None,
        file_bytes: int = 0,
        metadata: Mapping[str, str] | None = None,
    ) -> Self: ...
    def write(self, name: str, array: _Array, offset: Sequence[int] | None = None) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Layout:
    def __new__(cls, text: str, mesh: _layouts.Mesh | None = None) -> Self: ...
    @classmethod
    def open(cls, path: _Path, mesh: _layouts.Mesh | None = None) -> Self: ...
    @property
    def mesh(self) -> _layouts.Mesh: ...
    def find(self, name: str, /) -> str: ...

@final
class Rules:
    def __new__(cls, text: str, values: str | None = None) -> Self: ...
    @classmethod
    def open(cls, path: _Path, values: str | None = None) -> Self: ...

@final
class Saving:
    def wait(self, timeout: float = -1) -> None: ...
    def state(self) -> dict[str, Any]: ...

def load(
    context: Context,
    checkpoint: Checkpoint,
    layout: Layout,
    names: Sequence[str] | None = None,
    jobs: int = 0,
) -> tuple[_tensors.Tensor, ...]: ...
def save(
    context: Context,
    path: _Path,
    tensors: Sequence[_tensors.Tensor],
    names: Sequence[str] | None = None,
    layout: Layout | None = None,
    format: str | None = None,
    replace: bool = False,
    file_bytes: int = 0,
    metadata: Mapping[str, str] | None = None,
    stream: _StreamLike = None,
    jobs: int = 0,
) -> None: ...
def save_begin(
    context: Context,
    path: _Path,
    tensors: Sequence[_tensors.Tensor],
    names: Sequence[str] | None = None,
    layout: Layout | None = None,
    format: str | None = None,
    replace: bool = False,
    file_bytes: int = 0,
    metadata: Mapping[str, str] | None = None,
    stream: _StreamLike = None,
    jobs: int = 0,
) -> Saving: ...
def reshard(
    checkpoint: Checkpoint,
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

# ---- training ----

def clip_grad_norm(
    context: Context,
    tensors: Sequence[_tensors.Tensor | None],
    max_norm: float,
    p: float = 2,
    nonfinite: Literal["scale", "keep", "zero", "error"] = "scale",
    reduce_partials: bool = False,
    stages: _comm.Comm | None = None,
    stream: _StreamLike = None,
) -> float: ...
def clip_grad_value(
    context: Context, tensors: Sequence[_tensors.Tensor | None], most: float, stream: _StreamLike = None
) -> None: ...

# ---- observation ----

@final
class Counting:
    def __new__(cls, context: Context) -> Self: ...
    def stop(self) -> dict[str, Any]: ...

@final
class Recording:
    def __new__(cls, context: Context, capacity: int) -> Self: ...
    def stop(self) -> tuple[list[dict[str, Any]], int]: ...



def style_layouts(
    style: str,
    part: str,
    spec: _layouts.Spec,
    axis: int | str,
    *,
    embedding: bool = False,
    sequence_dim: int = 0,
    given: str | None = None,
    passed: str | None = None,
) -> tuple[_layouts.Spec, _layouts.Spec, _layouts.Spec, _layouts.Spec]: ...
@final
class Styles:
    def __new__(cls, text: str, mesh: _layouts.Mesh | None = None) -> Self: ...
    @property
    def mesh(self) -> _layouts.Mesh: ...
    def find(self, name: str, axis: int | str, /) -> str: ...
    def apply(self, name: str, part: str, spec: _layouts.Spec, /) -> _layouts.Spec: ...

@disjoint_base
class Symm:
    def __new__(cls, comm: _comm.Comm, bytes: int, channels: int = 0) -> Self: ...
    def memory(self, peer: int | None = None, /) -> Shard | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@disjoint_base
class Pipeline:
    def __new__(cls) -> Self: ...
    def open(
        self,
        comm: Communicator,
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
    def run(self) -> None: ...

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
