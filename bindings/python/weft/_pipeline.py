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


class Pipeline(_Pipeline):
    """A schedule that is run: functions compute, and weft moves tensors between stages.  Collective.

    values has, for each stage but the last, the tensors that it passes on, as texts such as "f32[4,8]"; a pair
    (text, True) has no gradient.  forward and backward are functions of an Action; a backward may return the numbers
    of the inputs whose gradients it leaves out.  They must not keep arrays of the shards.
    """

    __slots__ = ()

    def __new__(cls, comm, schedule, values, forward, backward, *, unshard=None, reshard=None, reduce=None, loss_scale=0):
        functions = [_function(function) for function in (forward, backward, unshard, reshard, reduce)]
        return super().__new__(cls, comm, schedule, [_stage(stage) for stage in values], *functions, loss_scale)
