"""Pipelines: the stages of a model on the ranks along a mesh axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import _weft
from ._layouts import Mesh, Spec
from ._schedules import Schedule
from ._tensors import Tensor
from ._texts import fields

_Value = Spec | str | tuple[Spec | str, bool]  # a tensor that a stage passes on, and True if it has no gradient
_Given = Spec | tuple[Spec, bool]


@fields(
    kind='"F", "B", "I" or "W"; otherwise "UNSHARD", "RESHARD" or "REDUCE_GRAD".',
    stage="The number of the stage.",
    microbatch='The number of the microbatch; -1 for "UNSHARD", "RESHARD" and "REDUCE_GRAD".',
    parts="Of a backward action: 1 for gradients of inputs, plus 2 for those of weights; otherwise 0.",
    is_last="Whether it is the last forward of the stage, or the last that computes gradients of its weights.",
    loss_scale="What the last stage multiplies the gradient of the loss of a microbatch by.",
    inputs="What the stage before passes on.",
    outputs="What the stage passes on; a forward writes them.",
    d_outputs="The gradients of the outputs; None where there is none.",
    d_inputs="The gradients of the inputs, which a backward writes; None where there is none.",
    stream="The address of the stream to compute on; 0: the default stream.",
)
class Action(NamedTuple):
    """What a function of a pipeline computes.

    Tensors are laid out on the ranks of the stage: those with this rank's coordinate along the axis of the pipeline.
    """

    kind: str
    stage: int
    microbatch: int
    parts: int
    is_last: bool
    loss_scale: float
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    d_outputs: tuple[Tensor | None, ...]
    d_inputs: tuple[Tensor | None, ...]
    stream: int


_Function = Callable[[Action], object]


def _stage(values: Sequence[_Value], mesh: Mesh) -> dict[str, list[tuple[Spec, bool]]]:
    """What a stage passes on, as the fields of C's struct: layout and without_gradient."""
    found = []
    for value in values:
        layout, without = value if isinstance(value, tuple) else (value, False)
        found.append((Spec(layout, mesh) if isinstance(layout, str) else layout, bool(without)))
    return {"tensors": found}


def _given(stage: dict[str, Any]) -> list[_Given]:
    """The other way: layouts, and pairs of a layout and True."""
    return [(tensor["spec"], True) if tensor["without_gradient"] else tensor["spec"] for tensor in stage["tensors"] or ()]


class _Functions:
    """The functions of a pipeline as weft calls them."""

    def __init__(self, mesh: Mesh, **functions: Callable[..., Any] | None) -> None:
        self.mesh = mesh
        self.functions = functions

    def of_c(self) -> dict[str, Callable[..., object]]:
        """The functions for weft_pipeline_options."""

        def made(name: str) -> Callable[..., object]:
            return self._shapes if name == "shapes" else lambda *calls: self._run(name, calls)

        return {name: made(name) for name, function in self.functions.items() if function is not None}

    def _run(self, name: str, calls: Sequence[dict[str, Any]]) -> None:
        function = self.functions[name]
        assert function is not None
        function(*map(_action, calls))

    def _shapes(self, stage: int, inputs: dict[str, Any]) -> dict[str, Any]:
        function = self.functions["shapes"]
        assert function is not None
        return _stage(function(stage, _given(inputs)), self.mesh)


def _action(call: dict[str, Any]) -> Action:
    """An action of the fields of weft_pipeline_call."""
    parts = ("inputs" in call["parts"]) + 2 * ("weights" in call["parts"])
    inputs, outputs, d_outputs, d_inputs = (call[name] or () for name in ("inputs", "outputs", "d_outputs", "d_inputs"))
    return Action(call["kind"], call["stage"], call["microbatch"], parts, call["is_last"], call["loss_scale"], inputs,
                  outputs, d_outputs, d_inputs, call["stream"])  # fmt: skip


@_weft.use
class Pipeline(_weft.Pipeline):
    """A schedule that is run: functions compute, and weft moves tensors between stages.  Collective.

    values has, for each stage but the last, the layouts of the tensors that it passes on, on the mesh of the pipeline and
    with R on its axis, or their texts, such as "f32[4,8] R"; a pair (layout, True) has no gradient.  values may be None if
    shapes is given, which is called as shapes(stage, inputs) on the rank of each stage but the last, and returns what the
    stage passes on if it gets these inputs.  forward and backward are functions of an Action.  overlap is a function of two
    Actions that may run together, a forward and a backward, in the order of the schedule (OVERLAP_F_B).  A backward writes
    all d_inputs: fill(0) sets one that it does not compute.  The tensors get the elements of other microbatches later.

    >>> import weft
    >>> with weft.Context() as context:  # a job of one rank, which has the only stage
    ...     mesh, schedule = weft.mesh("pp=1"), weft.Schedule("gpipe", 1, 2)
    ...     run = lambda action: print(action.kind, action.stage, action.microbatch)
    ...     with weft.Pipeline(context, mesh, "pp", schedule, [], run, run) as pipeline:
    ...         pipeline.run()
    ...     del pipeline
    F 0 0
    F 0 1
    B 0 0
    B 0 1
    """

    __slots__ = ()

    def __new__(
        cls,
        context: _weft.Context,
        mesh: Mesh,
        axis: str,
        schedule: Schedule,
        values: Sequence[Sequence[_Value]] | None,
        forward: _Function,
        backward: _Function,
        *,
        unshard: _Function | None = None,
        reshard: _Function | None = None,
        reduce: _Function | None = None,
        overlap: Callable[[Action, Action], object] | None = None,
        shapes: Callable[[int, list[_Given]], Sequence[_Value]] | None = None,
        loss_scale: float = 0,
    ) -> Pipeline:
        for name, function in (("forward", forward), ("backward", backward)):
            if not callable(function):
                raise TypeError(f"{name} must be a function of an Action, not {function!r}")
        functions = _Functions(
            mesh, forward=forward, backward=backward, unshard=unshard, reshard=reshard, reduce=reduce,
            overlap=overlap, shapes=shapes)  # fmt: skip
        passed = None if values is None else [_stage(stage, mesh) for stage in values]
        return super().__new__(
            cls, context, mesh, axis, schedule=schedule, values=passed, loss_scale=loss_scale, **functions.of_c())

    def values(self, stage: int) -> list[_Given]:  # type: ignore[override]
        """What a stage passes on, in the form of the argument `values`."""
        return _given(super().values(stage))
