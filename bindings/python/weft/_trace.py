"""Counts and records of the operations of a block of code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from . import _weft
from ._errors import spoken
from ._generated import _WEFT_RECORD_OPERATION, _WEFT_STEP_KIND


def _counted(count: Callable[[Any], int], names: Iterable[str]) -> dict[str, int]:
    """The numbers above 0, by name."""
    return {name: number for name in names if (number := count(name))}


class Counts:
    """The numbers of operations of a `with` block."""

    def __repr__(self) -> str:
        return f"<weft.Counts, {'ended' if self._result is not None else 'counting' if self._counting else 'not begun'}>"

    __slots__ = ("_context", "_counting", "_result")

    def __init__(self, context: _weft.Context) -> None:
        self._context = context
        self._counting: _weft._RecordCounts | None = None
        self._result: dict[str, Any] | None = None

    def __enter__(self) -> Counts:
        if self._counting is not None:
            raise RuntimeError("the block has begun")
        self._counting, self._result = _weft._RecordCounts(self._context), None
        return self

    def __exit__(self, *exception: object) -> None:
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.end()
            axes = (counting.axes(index) for index in range(counting.axes_count))
            self._result = {
                "operations": _counted(counting.operations, _WEFT_RECORD_OPERATION),
                "steps": _counted(counting.steps, _WEFT_STEP_KIND),
                "axes": {one.pop("axes"): one for one in axes},
                **counting.info,
            }
            counting.close()

    @property
    def result(self) -> dict[str, Any]:
        """The counts, after the end."""
        if self._result is None:
            raise RuntimeError("the counting has not ended")
        return self._result


class Trace:
    """The operations that finish in a `with` block."""

    def __repr__(self) -> str:
        ended = f"{len(self._records)} records" if self._records is not None else "recording" if self._recording else "not begun"
        return f"<weft.Trace, rank {self.rank}, {ended}>"

    __slots__ = {
        "_capacity": "", "_context": "", "_records": "", "_recording": "",
        "lost": "How many operations found no room.", "rank": "The rank whose operations these are.",
    }  # fmt: skip

    def __init__(self, context: _weft.Context, capacity: int = 65536) -> None:
        self._context = context
        self._capacity = capacity
        self._recording: _weft.Recording | None = None
        self._records: list[dict[str, Any]] | None = None
        self.lost = 0
        self.rank = context.rank

    def __enter__(self) -> Trace:
        if self._recording is not None:
            raise RuntimeError("the block has begun")
        self._recording, self._records = _weft.Recording(self._context, self._capacity), None
        return self

    def __exit__(self, *exception: object) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            self._records, self.lost = recording.stop()
            for record in self._records:
                record["label"] = spoken(record["label"])  # of an operation that a function makes: its name

    @property
    def records(self) -> list[dict[str, Any]]:
        """A dictionary per operation that has finished.

        peer is the other rank of a message, or the root; None: there is none.  error is None, or the name of the status,
        such as "ERR_TIMEOUT".  sent and received are bytes.
        """
        if self._records is None:
            raise RuntimeError("the trace has not ended")
        return self._records

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the records as JSON that Perfetto and chrome://tracing show."""
        import json  # few programs write

        events = [
            {
                "name": record["text"], "cat": record["operation"], "ph": "X", "pid": self.rank,
                "tid": record["comm"] or "rank", "ts": start / 1000,
                "dur": (record["finished_ns"] - start) / 1000,
                "args": {key: record[key] for key in ("label", "sent", "received", "sequence")},
            }
            for record in self.records
            for start in [record["started_ns"] or record["submitted_ns"]]
            if record["finished_ns"]
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)


def _context(context: _weft.Context | None) -> _weft.Context:
    import weft

    return weft.current() if context is None else context


def counts(context: _weft.Context | None = None) -> Counts:
    """Count the operations of a block: `with weft.counts() as c: ...`, then c.result."""
    return Counts(_context(context))


def trace(context: _weft.Context | None = None, capacity: int = 65536) -> Trace:
    """Record the operations of a block: `with weft.trace() as t: ...`, then t.records and t.save(path)."""
    return Trace(_context(context), capacity)


def dump(context: _weft.Context, prefix: str | None = None) -> None:
    """Write the recorder, which has the recent operations, as PREFIX.RANK and PREFIX-RANK.json; None: the value of WEFT_DUMP."""
    context._dump(prefix or "")
