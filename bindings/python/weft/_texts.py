"""The texts of objects that have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

_Class = TypeVar("_Class", bound=type)

MOST = 4  # facts that a text has


def fields(**texts: str) -> Callable[[_Class], _Class]:
    """Give the fields of a NamedTuple their docstrings."""

    def document(kind: _Class) -> _Class:
        for name, text in texts.items():
            getattr(kind, name).__doc__ = text
        return kind

    return document


def text_of(thing: Any) -> str:
    """<weft.FSDPGroup, state "sharded", count 2>: the name of an object, and the first of its figures."""
    kind = type(thing)
    module = "weft.ops" if kind.__module__ == "weft.ops" else "weft"
    try:
        facts = [f"{name} {value!r}" for name, value in _facts(thing)]
    except RuntimeError:
        facts = ["closed"]
    return f"<{', '.join([f'{module}.{kind.__name__}', *facts])}>"


def _kinds_of(things: list[Any]) -> str:
    """weft.Tensor "w" f32[4] S(0), weft.Stream, and 3 more: what objects are, without a call that could wait."""
    texts = []
    for thing in things[:MOST]:
        names = [repr(thing.name), str(thing.spec)] if type(thing).__name__ == "Tensor" else []
        texts.append(" ".join([f"weft.{type(thing).__name__}", *(name for name in names if name not in ("''", "None"))]))
    more = len(things) - MOST
    return ", ".join(texts) + (f", and {more} more" if more > 0 else "")


def refuse_close(count: int, users: list[Any]) -> NoReturn:
    """The error for a context that objects still use."""
    names = _kinds_of(users)
    users.clear()  # the traceback keeps this frame
    raise RuntimeError(
        f"the context cannot be closed: {count} of its objects are in use: {names}; delete them first, also arrays"
        " of their memory: write `del x`, or use them in a function that is called in the `with` block")


def _facts(thing: Any) -> list[tuple[str, Any]]:
    """Texts and numbers of the object itself and of its `info`."""
    found = {name: getattr(thing, name, None) for name in ("name", "dtype", "shape", "mesh", "count")}
    found |= getattr(thing, "info", {})
    given = [(name, value) for name, value in found.items() if isinstance(value, (str, int, float, tuple)) or name == "mesh"]
    return [(name, value) for name, value in given if value not in (None, "", ())][:MOST]
