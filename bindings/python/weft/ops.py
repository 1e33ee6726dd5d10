"""Operators on layouts: which layouts are legal, which moves they need, and kernels that run on shards.

>>> from weft import ops
>>> import weft
>>> x, w = weft.spec("f32[8,16] S(0)", "4"), weft.spec("f32[16,32] R", "4")
>>> str(ops.check("mm", [x, w]).outputs[0])
'f32[8,32] S(0)'
"""

import contextlib
import re
from typing import Any, NamedTuple

from . import _weft

Choice = _weft.Choice
Shard = _weft.Shard

_FLAGS = {"exact": 1, "no_moves": 2, "no_partials": 4, "fallback": 8, "price_partials": 16}
_MOVES = ("refused", "made", "shown")


class Run(NamedTuple):
    """What a kernel computes: the outputs from the inputs, on one rank's shards."""

    name: str
    rank: int
    inputs: tuple[Shard | None, ...]
    outputs: tuple[Shard, ...]
    attrs: dict[str, Any]
    count: float
    stream: int


def register(text, *, replace=False):
    """Register the rules of a text, one per line."""
    _weft.op_register(text, replace)


def remove(name):
    """Remove the rules that were registered under a name."""
    _weft.op_remove(name)


def format(text):  # noqa: A001
    """The one form of the rules of a text, without registering them."""
    return _weft.op_text("f", text)


def rules(name):
    """The rules of an operator, one per line."""
    return _weft.op_text("r", name)


def explain(name):
    """The rules of an operator, and what they mean in words."""
    return _weft.op_text("e", name)


def names():
    """The names of all operators."""
    return _weft.op_text("n").split()


digest = _weft.op_digest
fallback_count = _weft.op_fallback_count
cache_clear = _weft.op_cache_clear


def _tensors(outputs):
    """Pairs of dtype and shape, from texts such as "f32[3,4]"."""
    if outputs is None:
        return None
    pairs = []
    for output in outputs:
        if isinstance(output, str):
            match = re.fullmatch(r"(\w+)\[([\d,]*)\]", output)
            if match is None:
                raise ValueError(f"'{output}' is not a tensor; expected a text such as f32[3,4]")
            output = (match[1], tuple(int(size) for size in match[2].split(",") if size))
        pairs.append(output)
    return pairs


def _ask(function, name, inputs, attrs, outputs, options):
    flags = sum(bit for flag, bit in _FLAGS.items() if options.pop(flag, False))
    return function(name, inputs, attrs, _tensors(outputs), flags=flags, **options)


def check(name, inputs, attrs=None, outputs=None, **options):
    """The strategy for a call whose inputs are legal as they are; otherwise MismatchError.

    The options are exact, no_partials, fallback, memory_limit, costs, mesh, fixed_inputs,
    fixed_outputs, wanted_outputs and mixed_dtypes: the kernel takes several dtypes where the rule wants one.
    """
    return _ask(_weft.op_check, name, inputs, attrs, outputs, options)


def propose(name, inputs, attrs=None, outputs=None, **options):
    """The cheapest strategy for a call, with the moves of its inputs.  Options as in check."""
    return _ask(_weft.op_propose, name, inputs, attrs, outputs, options)


def strategies(name, inputs, attrs=None, outputs=None, **options):
    """All strategies for a call, without the plans of moves.  Options as in check."""
    return _ask(_weft.op_list, name, inputs, attrs, outputs, options)


def _kernel(function):
    return lambda *parts: function(Run(*parts))


def apply(
    name, inputs, kernel, attrs=None, outputs=None, *, mesh=None, stream=None, context=None, mixed_dtypes=False
):
    """Call a kernel with this rank's shards, and return the output tensors.  Collective.

    kernel is a function of a Run.  It writes to arrays of run.outputs, which np.from_dlpack or
    torch.from_dlpack make, and must not keep them.  inputs are tensors, None where absent.  With mixed_dtypes the
    kernel takes several dtypes where the rule wants one.
    """
    if context is None:
        context = _context_of(inputs)
    return _weft.op_apply(context, name, inputs, _kernel(kernel), attrs, _tensors(outputs), mesh, stream, mixed_dtypes)


def apply_phases(name, inputs, kernel, attrs=None, *, stream=None, context=None, mixed_dtypes=False):
    """Apply an operator over a dimension that mesh axes split, such as a softmax, without gathering it.  Collective.

    kernel is called once per phase, with run.name such as "softmax.max", "softmax.sum_exp" and "softmax.finish"; the
    chapter "Operators over a split dimension" of docs/engine-guide.md lists the phases.  The output tensors are
    returned.
    """
    if context is None:
        context = _context_of(inputs)
    outputs = _weft.op_apply_phases(context, name, inputs, _kernel(kernel), attrs, stream, mixed_dtypes)
    while outputs and outputs[-1] is None:
        outputs = outputs[:-1]
    return outputs


def _context_of(inputs):
    for tensor in inputs:
        if tensor is not None:
            return tensor.context
    import weft

    return weft.current()


class Backward(_weft.Backward):
    """The calls that compute the gradients of a call whose inputs have these layouts."""

    __slots__ = ()

    def __new__(cls, name, inputs, attrs=None, outputs=None, wanted=None, mixed_dtypes=False):
        return super().__new__(cls, name, inputs, attrs, _tensors(outputs), wanted, mixed_dtypes)

    def apply(self, forward, gradients, kernel, *, stream=None, context=None):
        """The gradients of the inputs.  forward has the inputs and outputs of the call.  Collective."""
        if context is None:
            context = _context_of(gradients)
        return super().apply(context, forward, gradients, _kernel(kernel), stream)


@contextlib.contextmanager
def moves(context, what="made"):
    """Within the block, apply moves inputs ("made"), also with a line in the log ("shown"), or not ("refused")."""
    if what not in _MOVES:
        raise ValueError(f"what is '{what}'; expected 'made', 'shown' or 'refused'")
    before = _weft.op_moves_set(context, _MOVES.index(what))
    try:
        yield
    finally:
        _weft.op_moves_set(context, before)
