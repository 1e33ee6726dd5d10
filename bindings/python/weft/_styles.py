"""Styles of tensor parallel (docs/training/tensor-parallel.md)."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from . import _weft
from ._layouts import Spec

_Style: TypeAlias = Literal["column", "row", "sequence", "loss", "placed"]
_Part: TypeAlias = Literal["weight", "bias", "input", "output"]


def style_layouts(
    style: _Style, part: _Part, spec: Spec, axis: int | str, *,
    embedding: bool = False, sequence_dim: int = 0, given: str | None = None, passed: str | None = None,
) -> tuple[Spec, ...]:  # fmt: skip
    """The layouts of a part of a module: from, to, and those of its gradient.

    style is "column", "row", "sequence", "loss" or "placed"; part is "weight", "bias", "input" or "output".

    >>> import weft
    >>> y = weft.spec("f32[8,16] R", "tp=4")
    >>> print(*weft.style_layouts("row", "output", y, "tp", passed="S(1)"), sep="; ")
    f32[8,16] P(sum); f32[8,16] S(1); f32[8,16] S(1); f32[8,16] R
    """
    for name, value, known in (("style", style, get_args(_Style)), ("part", part, get_args(_Part))):
        if value not in known:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, known))}")
    return spec._style_layouts(
        part, spec.mesh.axis(axis), kind=style, embedding=embedding, sequence_dim=sequence_dim, given=given, passed=passed)


@_weft.use
class Styles(_weft.Styles):
    """A list of styles: a mesh, then lines of a pattern of names, an axis and a style.

    >>> import weft
    >>> weft.Styles("mesh tp=2\\n*.q.weight tp column").find("layer.q.weight", "tp")
    '*.q.weight'
    """

    __slots__ = ()

    def find(self, name: str, axis: int | str) -> str:
        """The pattern of the first line that matches a name on an axis."""
        return super().find(name, self.mesh.axis(axis))
