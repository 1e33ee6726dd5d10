"""Pipelines: the stages of a model on the ranks of a communicator."""

import dataclasses

from ._weft import Pipeline as _Pipeline
from .ops import _tensors


@dataclasses.dataclass(frozen=True)
class Action:
    """What a function of a pipeline computes.  Tensors are shards, which from_dlpack makes arrays of."""

    kind: str  # "F", "B", "I" or "W"; otherwise "UNSHARD", "RESHARD" or "REDUCE_GRAD"
    stage: int
    microbatch: int
    parts: int  # of a backward action: 1 for gradients of inputs, plus 2 for those of weights
    is_last: bool  # of the stage
    loss_scale: float
    inputs: tuple
    outputs: tuple  # a forward writes them
    d_outputs: tuple  # gradients; None where there is none
    d_inputs: tuple  # a backward writes them
    stream: int  # the address of the stream to compute on


def _function(function):
    return None if function is None else lambda *parts: function(Action(*parts))


def _stage(tensors):
    """The triples of dtype, shape and without_gradient of what a stage passes on."""
    triples = []
    for tensor in tensors:
        tensor, without = tensor if isinstance(tensor, tuple) and isinstance(tensor[1], bool) else (tensor, False)
        triples.append((*_tensors([tensor])[0], without))
    return triples


def _texts(triples):
    """The other way: texts, and pairs of a text and True."""
    texts = [(f"{dtype}[{','.join(map(str, shape))}]", without) for dtype, shape, without in triples]
    return [(text, True) if without else text for text, without in texts]


def _pair(function):
    return None if function is None else lambda first, second: function(Action(*first), Action(*second))


def _shapes(function):
    return None if function is None else lambda stage, triples: _stage(function(stage, _texts(triples)))


class Pipeline(_Pipeline):
    """A schedule that is run: functions compute, and weft moves tensors between stages.  Collective.

    values has, for each stage but the last, the tensors that it passes on, as texts such as "f32[4,8]"; a pair
    (text, True) has no gradient.  values may be None if shapes is given, which is called as shapes(stage, inputs) on the
    rank of each stage but the last, and returns what the stage passes on if it gets these inputs.  forward and backward
    are functions of an Action; a backward may return the numbers of the inputs whose gradients it leaves out.  overlap
    is a function of two Actions that may run together, a forward and a backward, in the order of the schedule
    (OVERLAP_F_B), and returns what the backward would.  They must not keep arrays of the shards.
    """

    __slots__ = ()

    def __new__(
        cls, comm, schedule, values, forward, backward, *,
        unshard=None, reshard=None, reduce=None, overlap=None, shapes=None, loss_scale=0,
    ):  # fmt: skip
        functions = [_function(function) for function in (forward, backward, unshard, reshard, reduce)]
        if values is not None:
            values = [_stage(stage) for stage in values]
        return super().__new__(cls, comm, schedule, values, *functions, _pair(overlap), _shapes(shapes), loss_scale)

    def values(self, stage):
        """What a stage passes on, in the form of the argument `values`."""
        return _texts(super().values(stage))
