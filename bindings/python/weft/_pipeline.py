"""Pipelines: the stages of a model on the ranks of a communicator."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _weft
from ._comm import Comm
from ._schedules import Schedule
from .ops import _tensors

if TYPE_CHECKING:
    from ._weft import Shard

_Value = str | tuple[str, bool]  # a tensor that a stage passes on, and True if it has no gradient


class Action(NamedTuple):
    """What a function of a pipeline computes.  Tensors are shards, which from_dlpack makes arrays of."""

    kind: str  # "F", "B", "I" or "W"; otherwise "UNSHARD", "RESHARD" or "REDUCE_GRAD"
    stage: int
    microbatch: int
    parts: int  # of a backward action: 1 for gradients of inputs, plus 2 for those of weights
    is_last: bool  # of the stage
    loss_scale: float
    inputs: tuple[Shard, ...]
    outputs: tuple[Shard, ...]  # a forward writes them
    d_outputs: tuple[Shard | None, ...]  # gradients; None where there is none
    d_inputs: tuple[Shard | None, ...]  # a backward writes them
    stream: int  # the address of the stream to compute on


_Function = Callable[[Action], object]


def _stage(values: Sequence[_Value]) -> dict[str, list[tuple[str, tuple[int, ...], bool]]]:
    """What a stage passes on, as the fields of C's struct: dtype, shape and without_gradient."""
    found = []
    for value in values:
        text, without = value if isinstance(value, tuple) and isinstance(value[1], bool) else (value, False)
        dtype, shape = (_tensors([text]) or [])[0]
        found.append((dtype, tuple(shape), bool(without)))
    return {"tensors": found}


def _texts(stage: dict[str, Any]) -> list[_Value]:
    """The other way: texts, and pairs of a text and True."""
    found: list[_Value] = []
    for tensor in stage["tensors"]:
        text = f"{tensor['dtype']}[{','.join(map(str, tensor['shape']))}]"
        found.append((text, True) if tensor["without_gradient"] else text)
    return found


class _Functions:
    """The functions of a pipeline as weft calls them.  C keeps none of the user's, so that cycles of objects end."""

    def __init__(self, context: _weft.Context, **functions: Callable[..., Any] | None) -> None:
        self.context = context
        self.functions = functions

    def of_c(self) -> dict[str, Callable[..., object]]:
        """The functions for weft_pipeline_options."""
        me = weakref.ref(self)

        def made(name: str) -> Callable[..., object]:
            return lambda *calls: me()._shapes(*calls) if name == "shapes" else me()._run(name, calls)  # type: ignore[union-attr]

        return {name: made(name) for name, function in self.functions.items() if function is not None}

    def _run(self, name: str, calls: Sequence[dict[str, Any]]) -> None:
        function = self.functions[name]
        assert function is not None
        actions = [_action(call) for call in calls]
        absent = function(*actions) or ()
        gradients = next((action for action in actions if action.parts), actions[-1])
        for number in absent:
            if not 0 <= number < len(gradients.d_inputs):
                raise ValueError(f"the stage has no gradient of input {number}")
            if (target := gradients.d_inputs[number]) is not None:
                self.context.memory_fill(target, 0, gradients.stream or None)

    def _shapes(self, stage: int, inputs: dict[str, Any]) -> dict[str, Any]:
        function = self.functions["shapes"]
        assert function is not None
        return _stage(function(stage, _texts(inputs)))


def _action(call: dict[str, Any]) -> Action:
    """An action of the fields of weft_pipeline_call."""
    parts = ("inputs" in call["parts"]) + 2 * ("weights" in call["parts"])
    inputs, outputs, d_outputs, d_inputs = (call[name] or () for name in ("inputs", "outputs", "d_outputs", "d_inputs"))
    return Action(call["kind"], call["stage"], call["microbatch"], parts, call["is_last"], call["loss_scale"], inputs,
                  outputs, d_outputs, d_inputs, call["stream"])  # fmt: skip


@_weft.use
class Pipeline(_weft.Pipeline):
    """A schedule that is run: functions compute, and weft moves tensors between stages.  Collective.

    values has, for each stage but the last, the tensors that it passes on, as texts such as "f32[4,8]"; a pair
    (text, True) has no gradient.  values may be None if shapes is given, which is called as shapes(stage, inputs) on the
    rank of each stage but the last, and returns what the stage passes on if it gets these inputs.  forward and backward
    are functions of an Action; a backward may return the numbers of the inputs whose gradients it leaves out.  overlap
    is a function of two Actions that may run together, a forward and a backward, in the order of the schedule
    (OVERLAP_F_B), and returns what the backward would.  They must not keep arrays of the shards.
    """

    __slots__ = ("_functions",)
    _functions: _Functions

    def __new__(
        cls,
        comm: Comm,
        schedule: Schedule,
        values: Sequence[Sequence[_Value]] | None,
        forward: _Function,
        backward: _Function,
        *,
        unshard: _Function | None = None,
        reshard: _Function | None = None,
        reduce: _Function | None = None,
        overlap: Callable[[Action, Action], object] | None = None,
        shapes: Callable[[int, list[_Value]], Sequence[_Value]] | None = None,
        loss_scale: float = 0,
    ) -> Pipeline:
        functions = _Functions(
            comm.context, forward=forward, backward=backward, unshard=unshard, reshard=reshard, reduce=reduce,
            overlap=overlap, shapes=shapes)  # fmt: skip
        passed = None if values is None else [_stage(stage) for stage in values]
        made = _weft.Pipeline.create(comm, schedule, values=passed, loss_scale=loss_scale, **functions.of_c())
        made._functions = functions
        return made

    def values(self, stage: int) -> list[_Value]:  # type: ignore[override]
        """What a stage passes on, in the form of the argument `values`."""
        return _texts(super().values(stage))
