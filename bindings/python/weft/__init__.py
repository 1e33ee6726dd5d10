"""weft moves tensors between distributed layouts on any hardware.

redistribute    moves an array of NumPy, PyTorch or another library to another layout
Tensor          a layout and this rank's memory
Context, init   this process's connection to its job; simulated ranks need no job
Comm            collectives and messages on arrays
mesh, spec      layouts; plan tells how a tensor would move, and what it costs
load, save      checkpoints in any layout
weft.ops        operators on layouts; weft.torch: PyTorch

>>> import weft
>>> mesh = weft.mesh("dp=2,tp=4")
>>> plan = weft.plan("bf16[4096,4096]", mesh, "S(0),R", "R,S(1)")
>>> plan.bytes_received_max
4194304
"""

import atexit as _atexit
import copyreg as _copyreg
import re as _re
from array import array as _array
from collections.abc import Callable as _Callable, Sequence as _Sequence
from operator import index as _index
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any, Literal as _Literal, TypeVar as _TypeVar, overload as _overload

from . import _errors, _weft
from ._generated import *  # noqa: F403  classes and functions that nothing here refines
from ._errors import *  # noqa: F403
from ._errors import Error as Error
from ._attention import Attention as Attention, AttentionPlan as AttentionPlan, Problem as Problem
from ._clip import clip_gradient_norm as clip_gradient_norm, clip_gradient_value as clip_gradient_value
from ._comm import Comm as Comm
from ._context import Context as Context
from ._device import Stream as Stream, Symm as Symm
from ._elastic import Generation as Generation, elastic as elastic
from ._experts import Experts as Experts, Overlap as Overlap, Routing as Routing
from ._files import (  # fmt: skip
    Checkpoint as Checkpoint, Writer as Writer, load as load, load_into as load_into, reshard as reshard, save as save, save_begin as save_begin, verify as verify,
)
from ._fsdp import FSDP as FSDP, FSDPGroup as FSDPGroup
from ._layouts import Mesh as Mesh, Plan as Plan, Spec as Spec
from ._pipeline import Action as Action, Pipeline as Pipeline
from ._random import Random as Random
from ._reorder import Node as Node, Reordered as Reordered, reorder as reorder
from ._schedules import Schedule as Schedule
from ._styles import Styles as Styles, style_layouts as style_layouts
from ._tensors import Tensor as Tensor
from ._trace import Counts as Counts, Trace as Trace, counts as counts, dump as dump, trace as trace
from ._weft import FixedMove as FixedMove, Move as Move, Shard as Shard, describe as describe, move_array as _move_array
from ._weft import version as __version__

if _TYPE_CHECKING:
    from ._weft import _Array, _StreamLike

    _Shard = _TypeVar("_Shard", bound=_Array)

_current: Context | None = None
_contexts: list[Context] = []  # those that are left when the process ends


def _adopt(context: Context) -> None:
    """Leave the job of a context when the process ends.  It becomes the current one if there is none."""
    global _current
    _contexts[:] = [other for other in _contexts if not other.closed] + [context]
    if _current is None or _current.closed:
        _current = context


def _forget(context: Context) -> None:
    """Make a context that failed not the current one.  It is left when nothing uses it, or when the process ends."""
    global _current
    if _current is context:
        _current = None


def init(
    backend: str | None = None, *, rank: int = 0, size: int = 0, rendezvous: str | None = None, token: str | None = None,
    plugin_path: str | None = None, device: int = -1, timeout: float = 0, simulated_ranks: int = 0,
    exchange: _Callable[[bytes], bytes] | None = None,
) -> Context:  # fmt: skip
    """Join the job, and make its context the current one.  Collective.  The arguments are those of Context.

    >>> import weft
    >>> weft.init(simulated_ranks=2)
    <weft.Context, rank 0 of 2 on gloo-cpu>
    >>> weft.current().close()
    """
    if _current is not None and not _current.closed:
        raise RuntimeError("weft.init was called before; weft.current() is its context")
    context = Context(
        backend, rank=rank, size=size, rendezvous=rendezvous, token=token, plugin_path=plugin_path, device=device,
        timeout=timeout, simulated_ranks=simulated_ranks, exchange=exchange)  # fmt: skip
    _adopt(context)
    return context


def current() -> Context:
    """The context of weft.init.  Without one, it is made from the launcher's variables."""
    if _current is None or _current.closed:
        return init()
    return _current


def _leave() -> None:
    """Leave all jobs.  Those on devices are left even if tensors are in use: the vendors' libraries end next."""
    for context in reversed(_contexts):
        if context.closed:
            continue
        try:
            context.close()
        except RuntimeError:
            if context.kind != "cpu":
                context._leave()


_atexit.register(_leave)
_copyreg.pickle(Mesh, lambda mesh: (Mesh, (str(mesh),)))
_copyreg.pickle(Spec, lambda spec: (Spec, (str(spec), spec.mesh)))


def mesh(text: Mesh | str) -> Mesh:
    """The mesh with this text, such as "dp=2,tp=4"."""
    return text if isinstance(text, Mesh) else Mesh(text)


def spec(text: Spec | str, mesh: Mesh | str) -> Spec:
    """The layout with this text, such as "f32[64,64] S(0),R", on a mesh."""
    return text if isinstance(text, Spec) else Spec(text, mesh)


def plan(
    tensor: str, mesh: Mesh | str, source: str, target: str, *, minimize: _Literal["time", "bytes", "memory"] = "time",
    memory_limit: int = 0, costs: str | None = None,
) -> Plan:  # fmt: skip
    """The plan that moves a tensor, such as "bf16[4096,4096]", between two layouts on a mesh.

    minimize is what counts; memory_limit is in bytes of scratch, 0: none; costs is the name or the file of a cost table.

    >>> import weft
    >>> weft.plan("f32[8]", "2", "S(0)", "R").steps[0]["kind"]
    'all-gather'
    """
    for name, text in (("tensor", tensor), ("source", source), ("target", target)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a str, such as {'bf16[4096,4096]' if name == 'tensor' else 'S(0),R'!r}, not {text!r}")
    begin = Spec(f"{tensor} {source}", _mesh_of(mesh, source))
    return Plan(begin, begin.with_(target), minimize=minimize, memory_limit=memory_limit, costs=costs)


_DIMS = 8  # at most, of a tensor
_SHAPES = "shapes of shards"  # the name of a tensor
_LAYOUTS = 4096  # at most, that a context keeps


def _keep(context: Context, key: _Any, value: _Any) -> _Any:
    """Keep what follows from a key.  Old entries go if there are too many; ranks need not agree on them."""
    layouts = context._layouts
    if len(layouts) >= _LAYOUTS:
        for old in [old for old in layouts if type(old) is tuple]:
            del layouts[old]
    layouts[key] = value
    return value


def _refuse_simulated(context: Context) -> None:
    """An array is the memory of one rank; simulated ranks are moved together."""
    try:
        Comm(context).check()
    except UnsupportedError as error:  # noqa: F405
        raise UnsupportedError(  # noqa: F405
            f"weft.redistribute moves the array of one rank, but the {context.size} ranks of this context are simulated "
            "in one process; move a weft.Tensor, which has the shards of all ranks (Tensor.move), or start the ranks "
            f"(weft run -n {context.size})") from error


class _Exchange:
    """The exchange of the shapes of shards over a mesh: per rank, the number of dimensions and the shape, padded to _DIMS."""

    __slots__ = ("_all", "_local", "_mine", "_room")

    def __init__(self, context: Context, mesh: Mesh) -> None:
        line = Mesh(f"{mesh.size}@{','.join(map(str, mesh.ranks))}")
        row = Tensor(context, Spec(f"i64[{mesh.size},{1 + _DIMS}] S(0)", line), _SHAPES)
        self._mine, self._all = (row,), (row.full(),)
        self._local: tuple[int, ...] | None = None  # the shape that the row has
        self._room = bytearray(8 * mesh.size * (1 + _DIMS))

    def run(self, local: tuple[int, ...]) -> bytes:
        """The shapes of all ranks.  Collective."""
        if local != self._local:
            self._local = None
            self._mine[0].from_host(_array("q", (len(local), *local, *(0,) * (_DIMS - len(local)))).tobytes())
            self._local = local
        _weft.move_into(self._mine, self._all)
        self._all[0].to_host(self._room)
        return bytes(self._room)


def _shapes_of_all(context: Context, mesh: Mesh, local: tuple[int, ...]) -> bytes:
    """What _Exchange.run returns.  Collective."""
    exchange: _Exchange | None = context._layouts.get(mesh)
    if exchange is None:
        if context.rank not in mesh:
            raise InvalidError("a rank outside the mesh has no shard; give the shape")  # noqa: F405
        _refuse_simulated(context)
    try:
        if exchange is None:
            exchange = context._layouts[mesh] = _Exchange(context, mesh)
        return exchange.run(local)
    except Error as error:  # of a call that the user does not know
        text = str(error).replace(f'tensor "{_SHAPES}"', f"the exchange of the {_SHAPES}")
        error.args = (_re.sub(r"\bweft\.(?:Tensor(?:\.\w+)?|move_into)", "weft.redistribute", text),)
        raise


def _source_of(context: Context, mesh: Mesh, placements: str, dtype: str, local: tuple[int, ...]) -> Spec:
    """The layout whose shards have the shapes that all ranks have.  Collective."""
    shapes = _shapes_of_all(context, mesh, local)
    key = (mesh, placements, dtype, shapes)
    spec: Spec | None = context._layouts.get(key)
    if spec is None:
        rows: _Any = memoryview(shapes).cast("q", (mesh.size, 1 + _DIMS)).tolist()
        for rank, row in zip(mesh.ranks, rows):
            if row[0] != rows[0][0]:
                raise MismatchError(  # noqa: F405
                    f"the shard of rank {mesh.ranks[0]} has {rows[0][0]} dimensions, "
                    f"and that of rank {rank} has {row[0]}")
        sizes = _array("q", [size for row in rows for size in row[1 : 1 + len(local)]])
        if local:
            spec = Spec.from_shards(mesh, dtype, placements, len(local), memoryview(sizes))
        else:
            spec = Spec(f"{dtype}[] {placements}", mesh)
        _keep(context, key, spec)
    return spec


def _sizes(shape: _Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple: any sequence of integers."""
    try:
        return tuple(_index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be the sizes of the whole tensor, such as (4, 6), not {shape!r}") from None


def _ends(mesh: Mesh | str, source: str, target: str, dtype: str, shape: Spec | tuple[int, ...]) -> tuple[Spec, Spec]:
    """The layouts of a redistribution."""
    for name, text in (("source", source), ("target", target)):
        if not isinstance(text, str):
            raise TypeError(f'{name} must be placements in one str, such as "S(0),R", not {text!r}')
    begin = shape if isinstance(shape, Spec) else Spec(f"{dtype}[{','.join(map(str, shape))}] {source}", _mesh_of(mesh, source))
    return begin, begin.with_(target)


_mesh = mesh  # which arguments hide


def _mesh_of(mesh: Mesh | str, source: str) -> Mesh:
    """The mesh of a move.  TypeError if the placements are given in its place."""
    try:
        return _mesh(mesh)
    except ParseError:  # noqa: F405
        try:
            Mesh(source)
        except (ParseError, TypeError):  # noqa: F405
            is_swapped = False
        else:
            is_swapped = True
        if is_swapped:
            raise TypeError(f"mesh is {mesh!r} and source is {source!r}; give the mesh first, then the placements") from None
        raise


def _mesh_in(context: Context, mesh: Mesh | str, source: str) -> Mesh:
    """The same; the context keeps the mesh of a text."""
    if type(mesh) is not str:
        return _mesh_of(mesh, source)
    made: Mesh | None = context._layouts.get((mesh,))
    return _keep(context, (mesh,), _mesh_of(mesh, source)) if made is None else made


@_overload
def redistribute(
    x: "bytes | bytearray | _array[_Any]", mesh: Mesh | str, source: str, target: str, shape: _Sequence[int] | None = None, *,
    out: None = None, stream: "_StreamLike" = None, context: Context | None = None,
) -> memoryview: ...  # fmt: skip
@_overload
def redistribute(
    x: "_Shard", mesh: Mesh | str, source: str, target: str, shape: _Sequence[int] | None = None, *, out: None = None,
    stream: "_StreamLike" = None, context: Context | None = None,
) -> "_Shard": ...  # fmt: skip
@_overload
def redistribute(
    x: "_Array", mesh: Mesh | str, source: str, target: str, shape: _Sequence[int] | None = None, *, out: "_Shard",
    stream: "_StreamLike" = None, context: Context | None = None,
) -> "_Shard": ...  # fmt: skip
def redistribute(
    x: _Any, mesh: Mesh | str, source: str, target: str, shape: _Sequence[int] | None = None, *, out: _Any = None,
    stream: _Any = None, context: Context | None = None,
) -> _Any:  # fmt: skip
    """Move x, this rank's shard, from one layout to another.  Collective.

    The result is an array of the library of x, or out.  Without `shape`, the ranks exchange the shapes of
    their shards in every call, and the global shape follows from them.

    >>> import array, weft
    >>> with weft.Context() as context:  # a job of one rank
    ...     weft.redistribute(array.array("f", [1, 2]), "tp=1", "S(0)", "R", context=context).tolist()
    [1.0, 2.0]
    """
    if context is None:
        context = current()
    dtype, local = describe(x)
    whole: Spec | tuple[int, ...] = ()
    if shape is None:
        mesh = _mesh_in(context, mesh, source)
        if type(source) is str and type(target) is str:
            whole = _source_of(context, mesh, source, dtype, local)
    else:
        whole = shape if type(shape) is tuple else _sizes(shape)
    key = (mesh, source, target, dtype, whole)
    try:
        specs = context._layouts.get(key)
    except TypeError:  # of an argument that has no hash, which _ends refuses
        specs = None
    if specs is None:
        specs = _ends(mesh, source, target, dtype, whole)
        _keep(context, key, specs)
    return _move_array(context, x, specs[0], specs[1], out, stream)


__all__ = [
    "redistribute", "Tensor", "Context", "init", "current", "Comm", "Mesh", "Spec", "Plan", "mesh", "spec", "plan",
    "load", "load_into", "save", "save_begin", "reshard", "verify", "Checkpoint", "Writer", "LayoutFile", "Rules", "Reshard", "Saving",
    "Move", "FixedMove", "Shard", "describe", "move_into", "Stream", "Work", "Symm", "CostTable", "cost_table_built_in", "Random", "dtype_bytes",
    "FSDP", "FSDPGroup", "clip_gradient_norm", "clip_gradient_value", "owners_balance", "Styles", "style_layouts", "Schedule", "Graph", "Prediction", "Model",
    "model_is_text", "elastic", "Generation", "Publisher", "Subscriber",
    "Timeline", "Pipeline", "Action", "AttentionPlan", "Attention", "Problem", "Experts", "Routing", "Overlap", "reorder",
    "Node", "Reordered", "counts", "Counts", "trace", "Trace", "dump", *_errors.__all__,
]  # fmt: skip
for _name in __all__:  # help and texts show where users find them
    if (_thing := globals()[_name]).__module__.startswith("weft._"):
        _thing.__module__ = "weft"
