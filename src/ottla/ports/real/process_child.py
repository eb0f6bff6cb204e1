"""The other end of `RealWorkers.process`: takes pickled calls on standard input, answers on what was standard output.

Run as `python -m`, not forked and not by multiprocessing's spawn, which would import the user's main script again and
run it where it has no guard. Each message is its length in eight bytes and a pickle.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import traceback
from typing import IO, Any, Final

LENGTH: Final = struct.Struct("!Q")


def write_message(stream: IO[bytes], data: bytes) -> None:
    stream.write(LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes:
    """The next message; EOFError where the other side has ended."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    data = stream.read(LENGTH.unpack(head)[0])
    if len(data) < LENGTH.unpack(head)[0]:
        raise EOFError
    return data


def answered(call: bytes) -> bytes:
    """The pickled answer to a pickled call: (True, result) or (False, exception)."""
    answer: tuple[bool, Any]
    try:
        work, arguments = pickle.loads(call)  # noqa: S301 - the pipe comes from our own parent
        answer = (True, work(*arguments))
    except Exception as error:
        error.add_note("in the worker process:\n" + traceback.format_exc())
        answer = (False, error)
    try:
        return pickle.dumps(answer)
    except Exception as error:
        return pickle.dumps((False, RuntimeError(f"the answer {answer[1]!r} cannot be sent back: {error}")))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    calls = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not end up among the answers
    while True:
        try:
            call = read_message(calls)
        except EOFError:
            return
        write_message(answers, answered(call))


if __name__ == "__main__":
    main()
