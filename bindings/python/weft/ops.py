"""Operators on layouts: which layouts are legal, which moves they need, and kernels that run on shards.

>>> from weft import ops
>>> import weft
>>> x, w = weft.spec("f32[8,16] S(0)", "4"), weft.spec("f32[16,32] R", "4")
>>> str(ops.check("mm", [x, w]).outputs[0])
'f32[8,32] S(0)'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from . import _weft
from ._tensors import Tensor
from ._texts import fields

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from ._layouts import Mesh, Plan, Spec

    class _Options(TypedDict, total=False):
        mesh: Mesh | None
        mixed_dtypes: bool
        costs: str | None
        exact: bool
        no_moves: bool
        no_partials: bool
        fallback: bool
        price_partials: bool
        memory_limit: int
        fixed_inputs: Sequence[Spec | None] | None
        fixed_outputs: Sequence[Spec | None] | None
        wanted_outputs: Sequence[Spec | None] | None

Shard = _weft.Shard

__all__ = [
    "apply", "apply_phases", "check", "propose", "strategies", "Choice", "Backward", "Run", "Shard", "register", "remove",
    "rules", "explain", "format", "names", "digest", "fallback_count", "cache_clear",
]  # fmt: skip

_Attrs: TypeAlias = Mapping[str, Any]
_Outputs: TypeAlias = Iterable["str | tuple[str, Sequence[int]]"]
_FIELDS = {"int": "integer", "real": "real", "list": "list", "text": "text"}


@fields(
    name="The name of the operator; of a phase OPERATOR.PHASE.",
    rank="The rank whose shards these are.",
    inputs="The shards of the inputs; None where an input is absent.",
    outputs="The shards of the outputs, which the kernel writes.",
    attrs="The attributes of the call, by name.",
    count="What an average divides the sum of this rank's elements by.",
    stream="The address of the stream to compute on; 0: the default stream.",
)
class Run(NamedTuple):
    """What a kernel computes: the outputs from the inputs, on one rank's shards."""

    name: str
    rank: int
    inputs: tuple[Shard | None, ...]
    outputs: tuple[Shard, ...]
    attrs: dict[str, Any]
    count: float  # type: ignore[assignment]  # tuple has a method of this name
    stream: int

    def input(self, index: int) -> Shard:
        """An input that the call must have; `inputs` has None for those that are absent."""
        found = self.inputs[index]
        if found is None:
            raise ValueError(f"input {index} of {self.name} is absent")
        return found


_Kernel: TypeAlias = Callable[[Run], object]
_Moves: TypeAlias = Literal["refused", "made", "shown"]


# ---- rules ----


def register(text: str, *, replace: bool = False) -> None:
    """Register the rules of a text, one per line."""
    (_weft._op_replace if replace else _weft._op_register)(text)


remove = _weft._op_remove
format = _weft._op_rules_print  # noqa: A001
rules = _weft._op_print
explain = _weft._op_meaning_print
digest = _weft._op_digest
fallback_count = _weft._op_fallback_count
cache_clear = _weft._op_cache_clear


def names() -> list[str]:
    """The names of all operators."""
    return _weft._op_names_print().split()


# ---- calls ----


def _attr(name: str, value: Any) -> dict[str, Any]:
    """An attribute as C has it."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an attribute must be a str, not {name!r}")
    kind = "int" if isinstance(value, int) else "real" if isinstance(value, float) else "text" if isinstance(value, str) else "list"
    if kind == "list" and not isinstance(value, Sequence):
        raise TypeError(f"attribute {name} must be a number, a list of numbers or a str, not {value!r}")
    return {"name": name, "kind": kind, _FIELDS[kind]: value}


def _attrs(given: Iterable[dict[str, Any]] | None) -> dict[str, Any]:
    """The dictionary of attributes that C has."""
    found = {}
    for attr in given or ():
        value = attr[_FIELDS[attr["kind"]]]
        found[attr["name"]] = list(value or ()) if attr["kind"] == "list" else value
    return found


def _tensors(outputs: _Outputs | None) -> list[tuple[str, Sequence[int]]] | None:
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


def _call(
    name: str, inputs: Sequence[Spec | None] | None, attrs: _Attrs | None, outputs: _Outputs | None,
    mixed_dtypes: bool, mesh: Mesh | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The fields of weft_op_call that are set."""
    call: dict[str, Any] = {"name": name}
    if inputs is not None:
        call["inputs"] = inputs
    if attrs:
        call["attrs"] = [_attr(*pair) for pair in attrs.items()]
    if outputs is not None:
        call["outputs"] = [{"dtype": _weft._dtype_parse(dtype), "shape": shape} for dtype, shape in _tensors(outputs) or ()]
    if mesh is not None:
        call["mesh"] = mesh
    if mixed_dtypes:
        call["mixed_dtypes"] = True
    return call


# ---- strategies ----


@_weft.use
class Choice(_weft.Choice):
    """The layouts in which ranks can run an operator."""

    __slots__ = ()

    @property
    def inputs(self) -> tuple[Spec | None, ...]:
        """The layouts in which the operator reads its inputs."""
        return tuple(map(self._input, range(self.input_count)))

    def __repr__(self) -> str:
        return f"<weft.ops.Choice, {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"

    @property
    def outputs(self) -> tuple[Spec, ...]:
        """The layouts of the outputs."""
        return tuple(map(self._output, range(self.output_count)))

    @property
    def gradients(self) -> tuple[Spec | None, ...]:
        """The layouts of the gradients of inputs."""
        return tuple(map(self._gradient, range(self.input_count)))

    @property
    def output_gradients(self) -> tuple[Spec | None, ...]:
        """The layouts of the gradients of outputs."""
        return tuple(map(self._output_gradient, range(self.output_count)))

    @property
    def moves(self) -> tuple[Plan | None, ...]:
        """The plan that moves each input; None: it is in place."""
        return tuple(map(self._move, range(self.input_count)))

    @property
    def memory(self) -> tuple[int | None, ...]:
        """The input whose memory each output is; None: it has memory of its own."""
        return tuple(map(self._memory, range(self.output_count)))


def _strategy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of check, with the table of costs in place of its name."""
    found = dict(options)
    if found.get("costs") is not None:
        found["costs"] = _weft.CostTable(found["costs"])
    return found


def _question(
    name: str, inputs: Sequence[Spec | None], attrs: _Attrs | None, outputs: _Outputs | None,
    mesh: Mesh | None = None, mixed_dtypes: bool = False, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """The fields of a call and of its options."""
    return {**_call(name, list(inputs), attrs, outputs, mixed_dtypes, mesh), **_strategy(options)}


def check(
    name: str, inputs: Sequence[Spec | None], attrs: _Attrs | None = None, outputs: _Outputs | None = None,
    **options: Unpack[_Options],
) -> Choice:
    """The strategy for a call whose inputs are legal as they are; otherwise MismatchError.

    The options are exact, no_partials, fallback, memory_limit, costs, mesh, fixed_inputs,
    fixed_outputs, wanted_outputs and mixed_dtypes: the kernel takes several dtypes where the rule wants one.
    """
    return _weft._op_check(**_question(name, inputs, attrs, outputs, **options))


def propose(
    name: str, inputs: Sequence[Spec | None], attrs: _Attrs | None = None, outputs: _Outputs | None = None,
    **options: Unpack[_Options],
) -> Choice:
    """The cheapest strategy for a call, with the moves of its inputs.  Options as in check."""
    return _weft._op_propose(**_question(name, inputs, attrs, outputs, **options))


def strategies(
    name: str, inputs: Sequence[Spec | None], attrs: _Attrs | None = None, outputs: _Outputs | None = None,
    **options: Unpack[_Options],
) -> list[Choice]:
    """All strategies for a call, without the plans of moves.  Options as in check."""
    found = _weft._OpList(**_question(name, inputs, attrs, outputs, **options))
    return [cast(Choice, found.choice(index)) for index in range(found.count)]


# ---- kernels ----


def _kernel(function: _Kernel) -> Callable[[dict[str, Any]], object]:
    if not callable(function):
        raise TypeError(f"kernel must be a function of a weft.ops.Run, not {function!r}")
    return lambda run: function(
        Run(run["name"], run["rank"], run["inputs"], run["outputs"], _attrs(run["attrs"]), run["count"], run["stream"]))


def _apply_options(moves: _Moves, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of weft_op_apply_options that are set."""
    return {"moves": moves, **({"strategy": _strategy(strategy)} if strategy else {})}


def apply(
    name: str, inputs: Sequence[Tensor | None], kernel: _Kernel, attrs: _Attrs | None = None,
    outputs: _Outputs | None = None, *, mesh: Mesh | None = None, stream: Any = None,
    context: _weft.Context | None = None, mixed_dtypes: bool = False, moves: _Moves = "refused", **options: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Call a kernel with this rank's shards, and return the output tensors.  Collective.

    kernel is a function of a Run.  It writes to arrays of run.outputs, which np.from_dlpack or
    torch.from_dlpack make, and must not keep them.  inputs are tensors, None where absent.  With mixed_dtypes the
    kernel takes several dtypes where the rule wants one.  moves says whether inputs may be moved: "refused", "made", or
    "shown", which also writes each move to the log.  Options as in check.

    >>> import weft
    >>> from weft import ops
    >>> with weft.Context(simulated_ranks=2) as context:
    ...     x = weft.Tensor(context, weft.spec("f32[4] S(0)", "2"))
    ...     (y,) = ops.apply("neg", [x], lambda run: print(run.name, run.rank, run.input(0).shape, run.outputs[0].shape))
    ...     print(y.spec)
    ...     del x, y
    neg 0 (2,) (2,)
    neg 1 (2,) (2,)
    f32[4] S(0)
    """
    run = _kernel(kernel)
    call = {**_call(name, None, attrs, outputs, mixed_dtypes, mesh), **_apply_options(moves, options)}
    return cast("tuple[Tensor, ...]", _context_of(context, inputs)._op_apply(inputs, run, stream, **call))


def apply_phases(
    name: str, inputs: Sequence[Tensor | None], kernel: _Kernel, attrs: _Attrs | None = None, *,
    stream: Any = None, context: _weft.Context | None = None, mixed_dtypes: bool = False, moves: _Moves = "refused",
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Apply an operator over a dimension that mesh axes split, such as a softmax, without gathering it.  Collective.

    kernel is called once per phase, with run.name such as "softmax.max", "softmax.sum_exp" and "softmax.finish"; the
    chapter "Operators over a split dimension" of docs/engine-guide.md lists the phases.  The output tensors are
    returned.  moves as in apply.
    """
    call = {**_call(name, None, attrs, None, mixed_dtypes), **_apply_options(moves, {})}
    outputs = list(_context_of(context, inputs)._op_apply_phases(inputs, _kernel(kernel), stream, **call) or ())
    while outputs and outputs[-1] is None:
        outputs.pop()
    return tuple(outputs)


def _context_of(context: _weft.Context | None, inputs: Sequence[Tensor | None]) -> _weft.Context:
    if context is not None:
        return context
    for tensor in inputs:
        if isinstance(tensor, Tensor):
            return tensor.context
        if tensor is not None:
            raise TypeError(f"a kernel runs on objects of weft.Tensor, or None, not on {tensor!r}; Tensor.wrap makes one of an array")
    import weft

    return weft.current()


# ---- gradients ----


@_weft.use
class Backward(_weft.Backward):
    """The calls that compute the gradients of a call whose inputs have these layouts."""

    __slots__ = ()

    def __new__(
        cls, name: str, inputs: Sequence[Spec | None], attrs: _Attrs | None = None, outputs: _Outputs | None = None,
        wanted: Sequence[bool] | None = None, mixed_dtypes: bool = False, costs: str | None = None,
    ) -> Backward:  # fmt: skip
        call = _call(name, list(inputs), attrs, outputs, mixed_dtypes)
        return super().__new__(cls, **call, **_strategy({"wanted": wanted, "costs": costs}))

    @property
    def calls(self) -> tuple[tuple[str, dict[str, Any], tuple[tuple[str, int], ...]], ...]:
        """The calls in order: name, attributes, and where each input comes from."""
        found = [cast("dict[str, Any]", self._call(index)) for index in range(self.call_count)]
        return tuple(
            (one["call"]["name"], _attrs(one["call"]["attrs"]), tuple((each["source"], each["index"]) for each in one["operands"]))
            for one in found
        )

    @property
    def gradients(self) -> tuple[Spec | None, ...]:
        """The layout of the gradient of each input; None: it has none."""
        found = map(self._gradient, range(self.input_count))
        return tuple(None if operand is None else self._spec(**operand) for operand in found)

    def apply(
        self, forward: Sequence[Tensor | None], gradients: Sequence[Tensor | None], kernel: _Kernel, *,
        stream: Any = None, context: _weft.Context | None = None, moves: _Moves = "refused",
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """The gradients of the inputs.  forward has the inputs and outputs of the call.  moves as in apply.  Collective."""
        context = _context_of(context, gradients)
        return context._op_backward_apply(self, forward, gradients, _kernel(kernel), stream, moves=moves) or ()
