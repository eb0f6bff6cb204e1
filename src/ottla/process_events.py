"""What befalls a process that serves: signals, the end of its input, and what nobody caught.

Whatever serves needs these, a tree without a broker too: they load nothing of one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Callable
from typing import Any, Final

from ottla import logs

log_event = logs.logger("server")

#: Calls of a traceback that a log line names, the innermost ones.
_FRAMES_NAMED_MAX: Final = 6


def report_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody caught in a call-back, a round or a task: an event like any other, and the loop goes on."""
    del loop
    error = context.get("exception")
    fields = {"what": context.get("message"), "fault": error}
    if error is not None and error.__traceback__ is not None:
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_NAMED_MAX:]
        fields["where"] = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log_event.error("unhandled", **fields)


def stopped_by_signals() -> asyncio.Event:
    """Is set once SIGINT, SIGTERM or SIGHUP has come."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A user who starts it by `nohup` wants it to outlive the terminal.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    return stop


def stop_with_input(stop: Callable[[], None]) -> None:
    """Calls once standard input ends: the process that held its other end is gone, however it ended."""
    loop, standard_input = asyncio.get_running_loop(), 0

    def read() -> None:
        try:
            if os.read(standard_input, 4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        loop.remove_reader(standard_input)
        stop()

    loop.add_reader(standard_input, read)
