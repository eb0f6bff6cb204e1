"""One process of a cluster on this host: started, read from, started again when it dies, and ended.

    start ──▶ starting ──"is listening on"──▶ serving ──its end──▶ pause ──▶ starting ...
                 └ its end, before it ever served: the cluster's start has failed, with its last words

Its standard input is a pipe from here and ends with us, however we end: a process that was started with
`--end-with-input` then stops by itself. It has a session of its own, so that Ctrl-C in a terminal comes to us alone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final

from ottla import logs

log_event = logs.logger("up")

#: What stands before the address that a process prints once it can be reached: a broker, or the tree.
LISTENING: Final = " listening on "
#: Before the one line that a verb of ours ends with; the process that reports it puts its own name there.
_OUR_NAME: Final = "ottla: "
#: Between the end of a process and its next start: at once after a long life, then longer.
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 10.0
#: A life that was shorter counts as one more failure in a row.
LONG_LIFE_S: Final = 30.0
#: The longest line of a process that is passed on whole.
LINE_BYTES_MAX: Final = 1024 * 1024
#: How long a process may take to stop before it is killed.
STOP_S_MAX: Final = 60.0


class StartFailed(Exception):
    """A process ended before it could be reached; the message is what it said last."""


class Member:
    def __init__(self, name: str, command: Sequence[str], passed_on: Callable[[str, bytes], None]) -> None:
        """`passed_on` is given each line that the process writes to its standard error."""
        self.name = name
        #: For the next start.
        self.command = list(command)
        self.process: asyncio.subprocess.Process | None = None
        #: Done with its address once it can be reached for the first time.
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        #: Set while it can be reached.
        self.serving = asyncio.Event()
        self.starts = 0
        self._passed_on = passed_on
        self._last_words = ""
        self._is_wanted = True
        self._life: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._life = asyncio.get_running_loop().create_task(self._live())

    async def _live(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), 0.0
        while True:
            began = loop.time()
            code = await self._run()
            if not self._is_wanted:
                return
            if not self.address.done():
                self.address.set_exception(StartFailed(self._last_words or f"{self.name} ended with {code}"))
                return
            lived_s = loop.time() - began
            pause_s = PAUSE_S if lived_s >= LONG_LIFE_S else min(PAUSE_S_MAX, max(PAUSE_S, 2 * pause_s))
            log_event.warning("a process has ended and is started again", process=self.name, code=code)
            await asyncio.sleep(pause_s)

    async def _run(self) -> int:
        """From its start to its end; the code that it ended with, or what could not be started."""
        self.starts += 1
        try:
            process = self.process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:
            self._last_words = f"{self.name} cannot be started: {error.strerror or error}"
            return error.errno or 1
        try:
            await asyncio.gather(self._read_output(process), self._read_errors(process))
            return await process.wait()
        finally:
            self.serving.clear()
            self.process = None

    async def _read_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in _lines(process.stdout):
            text = line.decode(errors="replace").strip()
            said, listening, address = text.partition(LISTENING)
            if listening and said.startswith("Ottla"):
                self.serving.set()
                if not self.address.done():
                    self.address.set_result(address)

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in _lines(process.stderr):
            if self.address.done():
                self._passed_on(self.name, line)
            else:
                # Its start may fail, and then the last line says why.
                said = line.decode(errors="replace").strip().removeprefix(_OUR_NAME)
                self._last_words = said or self._last_words
                self._passed_on(self.name, line)

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    def signal(self, number: int) -> None:
        """Nothing where it does not run."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and it is not started again; `stop` waits for its end."""
        self._is_wanted = False
        self.signal(signal.SIGKILL)

    async def stop(self) -> None:
        """Ends it cleanly, and does not start it again."""
        self._is_wanted = False
        life, self._life = self._life, None
        if life is None:
            return
        if self.process is None:
            life.cancel()  # it waits to be started again
        self.signal(signal.SIGTERM)
        _, late = await asyncio.wait([life], timeout=STOP_S_MAX)
        if late:
            log_event.warning("a process does not stop, and is killed", process=self.name)
            self.signal(signal.SIGKILL)
            await asyncio.wait([life])
        if not self.address.done():
            self.address.cancel()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue  # longer than may be: it was dropped
        if not line:
            return
        yield line


def ottla(*words: str) -> list[str]:
    """The command line of one of our own verbs, in this interpreter."""
    return [sys.executable, "-m", "ottla", *words]
