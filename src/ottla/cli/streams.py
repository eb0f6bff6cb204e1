"""Standard streams as a shell may leave them: closed, or on a disk that is full.

Python puts None in a closed stream's place, and the next file that is opened gets its number: a broker's segment could
become its standard output. So the three numbers are taken first, and what is written to a closed stream fails like what
is written to a full disk.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import NoReturn

_CLOSED = "it is closed"
_ESCAPED = "ottla.escaped"


class _ClosedBytes(io.BufferedIOBase):
    def write(self, data: object, /) -> NoReturn:
        raise OSError(errno.EBADF, _CLOSED)

    def writable(self) -> bool:
        return True


class ClosedOutput(io.TextIOBase):
    """Takes nothing; a command that prints nothing does not notice."""

    #: For what writes bytes.
    buffer = _ClosedBytes()

    def write(self, text: str, /) -> NoReturn:
        raise OSError(errno.EBADF, _CLOSED)

    def writable(self) -> bool:
        return True


def repair() -> None:
    """Before anything is opened."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR if number else os.O_RDONLY)  # gets the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error(_ESCAPED, _escaped)
        sys.stdout.reconfigure(errors=_ESCAPED)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as this process lives


def _escaped(error: UnicodeError) -> tuple[str, int]:
    r"""What a terminal's encoding has no character for, as JSON writes it: \u00e4, and in two halves above \uffff."""
    import json

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end]).strip('"'), error.end


def is_input_closed() -> bool:
    return sys.stdin is None


def forget_output() -> None:
    """What could not be written is not tried again: the interpreter would at its end, and complain."""
    if not isinstance(sys.stdout, ClosedOutput):
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.close(silence)
        sys.stdout.flush()


def print_address(line: str, part: str) -> None:
    """Scripts wait for this line, so it stands alone on standard output: logs go to standard error.

    Clients do not read it: where it cannot be written, the log of `part` says so, and the server goes on.
    """
    try:
        print(line, flush=True)
    except OSError as error:
        from ottla import logs

        forget_output()
        logs.logger(part).warning("the address could not be written to standard output", reason=error.strerror)


def settle_errors() -> None:
    """Where nobody can read errors, the exit code stays what it is."""
    try:
        sys.stderr.flush()
    except OSError:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stderr.fileno())
        os.close(silence)
        sys.stderr.flush()


def output_fault(error: OSError) -> str | None:
    """Why standard output took nothing, if that is what the error is about."""
    if isinstance(sys.stdout, ClosedOutput):
        return _CLOSED if error.strerror == _CLOSED else None
    try:
        sys.stdout.flush()  # what was not written is still there, and fails again
    except OSError as again:
        return again.strerror or str(again)
    # Larger pieces are not kept. Of files that are opened an error has the name.
    is_write = error.errno in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}
    return error.strerror if is_write and error.filename is None else None
