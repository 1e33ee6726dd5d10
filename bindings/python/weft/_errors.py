"""The exceptions of weft: one class for each status of the C library."""

import builtins
import functools
import re

__all__ = [  # what users catch
    "Error", "InvalidError", "UnsupportedError", "NotFoundError", "OutOfMemoryError", "SystemCallError", "DeviceError", "PeerError",
    "TimeoutError", "AbortedError", "VersionError", "InternalError", "MismatchError", "ParseError", "NoBackendError",
    "NoLibraryError", "OldLibraryError", "NoDeviceError", "NoFileError",
]  # fmt: skip


class Error(Exception):
    """A call of weft failed.

    `code` is the status, `name` its name, such as "ERR_TIMEOUT", and `rank` the first rank that the text
    names, or None.  `vendor` is the vendor library that caused it, such as ("NCCL", 5) with its error code, or None.
    """

    code = 0
    name = ""
    rank: int | None = None
    vendor: tuple[str, int] | None = None


class InvalidError(Error, ValueError):
    """An argument is not valid."""


class UnsupportedError(Error, NotImplementedError):
    """Not supported here."""


class NotFoundError(Error, LookupError):
    """There is no such thing."""


class NoFileError(NotFoundError, FileNotFoundError):
    """There is no such file.  `errno` and `filename` are set."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""


class SystemCallError(Error, OSError):
    """The operating system refused.  `errno` and `filename` are set where the text has them."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class DeviceError(Error):
    """The device or its vendor library failed."""


class PeerError(Error, ConnectionError):
    """Another rank failed or is gone."""


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001
    """The time limit passed."""


class AbortedError(Error):
    """The communicator was aborted."""


class VersionError(Error):
    """Versions do not fit together."""


class InternalError(Error):
    """A defect in weft or in a plugin."""


class MismatchError(Error):
    """Ranks disagree."""


class ParseError(Error, ValueError):
    """Text could not be read."""


class NoBackendError(Error):
    """No backend is usable."""


class NoLibraryError(Error):
    """A vendor library is missing."""


class OldLibraryError(Error):
    """A vendor library or driver is too old."""


class NoDeviceError(Error):
    """No device of the kind is present."""


BY_CODE = {
    -1: InvalidError,
    -2: UnsupportedError,
    -3: NotFoundError,
    -4: OutOfMemoryError,
    -5: SystemCallError,
    -6: DeviceError,
    -7: PeerError,
    -8: TimeoutError,
    -9: AbortedError,
    -10: VersionError,
    -11: InternalError,
    -12: MismatchError,
    -13: ParseError,
    -14: NoBackendError,
    -15: NoLibraryError,
    -16: OldLibraryError,
    -17: NoDeviceError,
}
for _class in (Error, NoFileError, *BY_CODE.values()):
    _class.__module__ = "weft"  # where users find it, as tracebacks show

@functools.cache
def _words() -> re.Pattern[str]:
    """A name of C, with the field of a struct; a field alone, as in `.size`; a constant; what Python does not have."""
    return re.compile(
        r"(?<![\w/.\"-])(?P<name>weft_\w+)(?P<field>\.\w+)?(?:\(\))?(?![\w/\"])|(?P<absent> or \.threads)|(?<= )\.(?P<other>[a-z]\w+)|(?<![\w/\"])(?P<constant>WEFT_[A-Z_]+)(?: \(\d+\))?"
        r"|\b(?P<none>NULL)\b| \((?P<count>\w+_count)\)|\bthe callback (?P<callback>\w+)")


def spoken(text: str) -> str:
    """A text of C with the names of Python."""
    text = text.replace(", but the plan was not bound with in_place", "; give each target memory of its own")
    if not _words().search(text):
        return text
    from ._names import NAMES  # few programs see an error

    def word(match: re.Match[str]) -> str:
        name, field, constant = match["name"], match["field"], match["constant"]
        if field and NAMES.get(name, "").startswith("weft."):  # a function, and the end of a sentence
            return NAMES[name] + field
        if field:
            return NAMES.get(name + field, field[1:])
        if match["count"] or match["absent"]:
            return ""
        return NAMES.get(name or constant, match[0]) if name or constant else "None" if match["none"] else match["other"] or match["callback"]

    return _words().sub(word, text)


@functools.cache
def _system_texts() -> dict[str, int]:
    import errno
    import os

    return {os.strerror(number): number for number in sorted(errno.errorcode, reverse=True)}


def _system_error(text: str) -> tuple[int, str] | None:
    """The number of the operating system's error that a text has, and the file before it."""
    found = max((known for known in _system_texts() if f": {known}" in text), key=len, default=None)
    if found is None:
        return None
    parts = text.partition(f": {found}")[0].split(": ")
    file = parts[1] if len(parts) > 1 and parts[0].startswith("weft.") else parts[0]
    return _system_texts()[found], re.sub(r" (?:cannot (?:be|have)|and) .*", "", file)


def nearest(name: str, known: list[str]) -> str:
    """`; did you mean "jobs"?`, if a name is like a known one."""
    import difflib  # few programs misspell

    found = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{found[0]}'?" if found else ""


def refuse_option(function: str, name: str, known: str) -> None:
    """The error for an argument that a function does not have; it has the known ones."""
    raise TypeError(f"{function}() has no argument '{name}'{nearest(name, known.split())}")


def refuse_choice(name: str, given: object, known: list[str]) -> None:
    """The error for a text that is none of the known ones."""
    raise ValueError(f"{name} is {given!r}; expected one of: {', '.join(known)}")


def error_of(code: int, name: str, text: str, vendor: str | None = None, vendor_code: int = 0) -> Error:
    """The exception of a status."""
    text = spoken(text)
    kind = BY_CODE.get(code, Error)
    system = _system_error(text) if kind in (NotFoundError, SystemCallError) else None
    if system is not None and kind is NotFoundError:
        kind = NoFileError
    error = kind(text)
    if system is not None and isinstance(error, OSError):
        error.errno, error.filename = system
    error.code = code
    error.name = name
    error.vendor = None if vendor is None else (vendor, vendor_code)
    named = re.search(r"\branks? (\d+)\b", text)
    error.rank = int(named[1]) if named else None
    return error
