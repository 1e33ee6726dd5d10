"""weft moves tensors between distributed layouts on any hardware.

>>> import weft
>>> mesh = weft.mesh("dp=2,tp=4")
>>> plan = weft.plan("bf16[4096,4096]", mesh, "S(0),R", "R,S(1)")
>>> plan.bytes_received_max
6291456
"""

import atexit as _atexit

from ._errors import *  # noqa: F403
from ._errors import Error as Error
from ._weft import Context, Mesh, Move, Plan, Spec, Stream, Tensor, describe, move_array
from ._weft import version as __version__

_current = None
_specs = {}


def init(backend=None, **options):
    """Join the job, and make its context the current one.  Collective."""
    global _current
    if _current is not None and not _current.closed:
        raise RuntimeError("weft.init was called before; weft.current() is its context")
    _current = Context(backend, **options)
    return _current


def current():
    """The context of weft.init.  Without one, it is made from the launcher's variables."""
    if _current is None or _current.closed:
        return init()
    return _current


def _leave():
    if _current is not None and not _current.closed:
        try:
            _current.close()
        except RuntimeError:
            pass  # the process ends; tensors that are still in use end with it


_atexit.register(_leave)


def mesh(text):
    """The mesh with this text, such as "dp=2,tp=4"."""
    return text if isinstance(text, Mesh) else Mesh(text)


def spec(text, on):
    """The layout with this text, such as "f32[64,64] S(0),R", on a mesh."""
    return text if isinstance(text, Spec) else Spec(text, mesh(on))


def plan(tensor, on, source, target, **options):
    """The plan that moves a tensor, such as "bf16[4096,4096]", between two layouts on a mesh."""
    on = mesh(on)
    return Plan(Spec(f"{tensor} {source}", on), Spec(f"{tensor} {target}", on), **options)


def redistribute(x, on, source, target, shape=None, *, out=None, stream=None, context=None):
    """Move x, this rank's shard, from one layout to another.  Collective.

    The result is an array of the library of x.  Without `shape`, the global shape follows from the
    shards of all ranks, which the first call with a shard of this shape exchanges.
    """
    if context is None:
        context = current()
    dtype, local = describe(x)
    key = (context, on, source, target, dtype, local, shape)
    specs = _specs.get(key)
    if specs is None:
        grid = mesh(on)
        if shape is None:
            raise NotImplementedError("redistribute needs shape")
        sizes = ",".join(map(str, shape))
        specs = (Spec(f"{dtype}[{sizes}] {source}", grid), Spec(f"{dtype}[{sizes}] {target}", grid))
        _specs[key] = specs
    return move_array(context, x, specs[0], specs[1], out, stream)
