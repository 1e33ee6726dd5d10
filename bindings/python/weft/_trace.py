"""Counts and records of the operations of a block of code."""

import json

from . import _weft
from ._weft import Counts, dump


class Trace(_weft.Trace):
    """The operations that finish in a `with` block."""

    __slots__ = ()

    def save(self, path):
        """Write the records as JSON that Perfetto and chrome://tracing show."""
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


def _context(context):
    import weft

    return weft.current() if context is None else context


def counts(context=None):
    """Count the operations of a block: `with weft.counts() as c: ...`, then c.result."""
    return Counts(_context(context))


def trace(context=None, capacity=65536):
    """Record the operations of a block: `with weft.trace() as t: ...`, then t.records and t.save(path)."""
    return Trace(_context(context), capacity)


__all__ = ["Counts", "Trace", "counts", "dump", "trace"]
