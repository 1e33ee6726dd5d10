"""The exceptions of weft: one class for each status of the C library."""

import builtins
import re

__all__ = [  # what users catch
    "Error", "InvalidError", "UnsupportedError", "NotFoundError", "OutOfMemoryError", "SystemCallError", "DeviceError", "PeerError",
    "TimeoutError", "AbortedError", "VersionError", "InternalError", "MismatchError", "ParseError", "NoBackendError",
    "NoLibraryError", "OldLibraryError", "NoDeviceError",
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


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""


class SystemCallError(Error, OSError):
    """The operating system refused."""


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
for _class in (Error, *BY_CODE.values()):
    _class.__module__ = "weft"  # where users find it, as tracebacks show


def error_of(code: int, name: str, text: str, vendor: str | None = None, vendor_code: int = 0) -> Error:
    """The exception of a status."""
    error = BY_CODE.get(code, Error)(text)
    error.code = code
    error.name = name
    error.vendor = None if vendor is None else (vendor, vendor_code)
    named = re.search(r"\brank (\d+)\b", text)
    error.rank = int(named[1]) if named else None
    return error
