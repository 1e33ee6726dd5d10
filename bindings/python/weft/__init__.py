"""weft moves tensors between distributed layouts on any hardware.

>>> import weft
>>> mesh = weft.mesh("dp=2,tp=4")
>>> plan = weft.plan("bf16[4096,4096]", mesh, "S(0),R", "R,S(1)")
>>> plan.bytes_received_max
4194304
"""

from __future__ import annotations

import atexit as _atexit
import copyreg as _copyreg
from array import array as _array
from collections.abc import Sequence as _Sequence
from operator import index as _index
from typing import Any as _Any

from ._generated import *  # noqa: F403  classes and functions that nothing here refines
from ._errors import *  # noqa: F403
from ._errors import Error as Error
from ._attention import Attention as Attention, AttentionPlan as AttentionPlan, Problem as Problem
from ._clip import clip_grad_norm as clip_grad_norm, clip_grad_value as clip_grad_value
from ._comm import Comm as Comm
from ._context import Context as Context
from ._device import Stream as Stream, Symm as Symm
from ._experts import Experts as Experts, Overlap as Overlap, Routing as Routing
from ._files import (  # fmt: skip
    Checkpoint as Checkpoint, Writer as Writer, load as load, reshard as reshard, save as save, save_begin as save_begin, verify as verify,
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
from ._weft import (  # fmt: skip
    FixedMove as FixedMove, Move as Move, describe as describe, move_array as move_array,
)
from ._weft import version as __version__

_current: Context | None = None
_contexts: list[Context] = []  # those that are left when the process ends


def _adopt(context: Context) -> None:
    """Leave the job of a context when the process ends.  It becomes the current one if there is none."""
    global _current
    _contexts[:] = [other for other in _contexts if not other.closed] + [context]
    if _current is None or _current.closed:
        _current = context


def init(backend: str | None = None, **options: _Any) -> Context:
    """Join the job, and make its context the current one.  Collective."""
    if _current is not None and not _current.closed:
        raise RuntimeError("weft.init was called before; weft.current() is its context")
    context = Context(backend, **options)
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


def spec(text: Spec | str, on: Mesh | str) -> Spec:
    """The layout with this text, such as "f32[64,64] S(0),R", on a mesh."""
    return text if isinstance(text, Spec) else Spec(text, mesh(on))


def plan(tensor: str, on: Mesh | str, source: str, target: str, **options: _Any) -> Plan:
    """The plan that moves a tensor, such as "bf16[4096,4096]", between two layouts on a mesh."""
    on = mesh(on)
    return Plan(Spec(f"{tensor} {source}", on), Spec(f"{tensor} {target}", on), **options)


_DIMS = 8  # at most, of a tensor
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


def _shapes_of_all(context: Context, on: Mesh, local: tuple[int, ...]) -> bytes:
    """Per rank of the mesh, the number of dimensions and the shape of its shard, padded to _DIMS.  Collective."""
    size = on.size
    pair = context._layouts.get(on)
    if pair is None:
        _refuse_simulated(context)
        line = Mesh(f"{size}@{','.join(map(str, on.ranks))}")
        rows = Tensor(context, Spec(f"i64[{size},{1 + _DIMS}] S(0)", line), "shapes of shards")
        pair = context._layouts[on] = (rows, rows.full())
    pair[0].from_host(_array("q", (len(local), *local, *(0,) * (_DIMS - len(local)))))
    pair[0].move_into(pair[1])
    shapes = bytearray(8 * size * (1 + _DIMS))
    pair[1].to_host(shapes)
    return bytes(shapes)


def _source_of(context: Context, on: Mesh, placements: str, dtype: str, local: tuple[int, ...]) -> Spec:
    """The layout whose shards have the shapes that all ranks have.  Collective."""
    if context.rank not in on.ranks:
        raise InvalidError("a rank outside the mesh has no shard; give the shape")  # noqa: F405
    shapes = _shapes_of_all(context, on, local)
    key = (on, placements, dtype, shapes)
    spec: Spec | None = context._layouts.get(key)
    if spec is None:
        rows: _Any = memoryview(shapes).cast("q", (on.size, 1 + _DIMS)).tolist()
        for rank, row in zip(on.ranks, rows):
            if row[0] != rows[0][0]:
                raise MismatchError(  # noqa: F405
                    f"the shard of rank {on.ranks[0]} has {rows[0][0]} dimensions, "
                    f"and that of rank {rank} has {row[0]}")
        sizes = _array("q", [size for row in rows for size in row[1 : 1 + len(local)]])
        if local:
            spec = Spec.from_shards(on, dtype, placements, len(local), memoryview(sizes))
        else:
            spec = Spec(f"{dtype}[] {placements}", on)
        _keep(context, key, spec)
    return spec


def _sizes(shape: _Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple: any sequence of integers."""
    try:
        return tuple(_index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be the sizes of the whole tensor, such as (4, 6), not {shape!r}") from None


def _ends(on: Mesh | str, source: str, target: str, dtype: str, shape: Spec | tuple[int, ...]) -> tuple[Spec, Spec]:
    """The layouts of a redistribution."""
    for name, text in (("source", source), ("target", target)):
        if not isinstance(text, str):
            raise TypeError(f'{name} must be placements in one str, such as "S(0),R", not {text!r}')
    begin = shape if isinstance(shape, Spec) else Spec(f"{dtype}[{','.join(map(str, shape))}] {source}", mesh(on))
    return begin, begin.with_(target)


def redistribute(
    x: _Any, on: Mesh | str, source: str, target: str, shape: _Sequence[int] | None = None, *, out: _Any = None,
    stream: _Any = None, context: Context | None = None,
) -> _Any:  # fmt: skip
    """Move x, this rank's shard, from one layout to another.  Collective.

    The result is an array of the library of x.  Without `shape`, the ranks exchange the shapes of
    their shards in every call, and the global shape follows from them.
    """
    if context is None:
        context = current()
    dtype, local = describe(x)
    whole: Spec | tuple[int, ...] = ()
    if shape is None:
        on = mesh(on)
        if type(source) is str and type(target) is str:
            whole = _source_of(context, on, source, dtype, local)
    else:
        whole = shape if type(shape) is tuple else _sizes(shape)
    key = (on, source, target, dtype, whole)
    try:
        specs = context._layouts.get(key)
    except TypeError:  # of an argument that has no hash, which _ends refuses
        specs = None
    if specs is None:
        specs = _ends(on, source, target, dtype, whole)
        _keep(context, key, specs)
    return move_array(context, x, specs[0], specs[1], out, stream)
