"""One process of a cluster on this host: started, read from, started again when it dies, and ended.

    start ──▶ starting ──"is listening on"──▶ serving ──its end──▶ pause ──▶ starting ...
                 └ its end, before it ever served: the cluster's start has failed, with its last words

One whose every second away is felt has a *spare*: a second process of the same command, which has loaded its code and
waits for a line on its standard input before it touches anything. It takes the place of the one that died, at once.

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
#: A spare is made so long after the present process serves: others start beside it.
SPARE_AFTER_S: Final = 2.0
#: A life that was shorter counts as one more failure in a row.
LONG_LIFE_S: Final = 30.0
#: The longest line of a process that is passed on whole.
LINE_BYTES_MAX: Final = 1024 * 1024
#: How long a process may take to stop before it is killed.
STOP_S_MAX: Final = 60.0


class StartFailed(Exception):
    """A process ended before it could be reached; the message is what it said last."""


class Member:
    def __init__(
        self, name: str, command: Sequence[str], passed_on: Callable[[str, bytes], None], *, has_spare: bool = False
    ) -> None:
        """`passed_on` is given each line that the process writes to its standard error. With `has_spare` the command
        begins at a line on its standard input."""
        self.name = name
        self._has_spare = has_spare
        #: Made when the present one has served for a while.
        self._spare: asyncio.subprocess.Process | None = None
        self._sparing: asyncio.Task[None] | None = None
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
            if lived_s < LONG_LIFE_S:
                pause_s = min(PAUSE_S_MAX, max(PAUSE_S, 2 * pause_s))
            else:
                pause_s = 0.0 if self._has_spare else PAUSE_S
            log_event.warning("a process has ended and is started again", process=self.name, code=code)
            await asyncio.sleep(pause_s)

    async def _run(self) -> int:
        """From its start to its end; the code that it ended with, or what could not be started."""
        self.starts += 1
        try:
            process = self.process = await self._process()
        except OSError as error:
            self._last_words = f"{self.name} cannot be started: {error.strerror or error}"
            return error.errno or 1
        try:
            await asyncio.gather(self._read_output(process), self._read_errors(process))
            return await process.wait()
        finally:
            self.serving.clear()
            self.process = None

    async def _process(self) -> asyncio.subprocess.Process:
        """The spare one where it lives, or a new one; it begins. Raises OSError."""
        spare, self._spare = self._spare, None
        process = spare if spare is not None and spare.returncode is None else await self._made()
        if self._has_spare:
            assert process.stdin is not None
            process.stdin.write(b"\n")
        return process

    async def _made(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LINE_BYTES_MAX,
        )

    async def _make_spare(self) -> None:
        """Where it cannot be made there is none, and the next start takes as long as any."""
        try:
            await asyncio.sleep(SPARE_AFTER_S)
            if self._spare is None:
                with suppress(OSError):
                    self._spare = await self._made()
        finally:
            self._sparing = None

    async def _end_spare(self) -> None:
        if self._sparing is not None:
            self._sparing.cancel()
            await asyncio.wait([self._sparing])
        spare, self._spare = self._spare, None
        if spare is not None:
            with suppress(ProcessLookupError):
                spare.kill()
            await spare.communicate()

    async def _read_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in _lines(process.stdout):
            text = line.decode(errors="replace").strip()
            said, listening, address = text.partition(LISTENING)
            if listening and said.startswith("Ottla"):
                self.serving.set()
                if not self.address.done():
                    self.address.set_result(address)
                if self._has_spare and self._sparing is None:
                    self._sparing = asyncio.get_running_loop().create_task(self._make_spare())

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
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self.process is None and self._life is not None:
            self._life.cancel()  # it waits to be started again
        self.signal(number)

    async def stop(self) -> None:
        """Ends it cleanly, and does not start it again."""
        self._is_wanted = False
        life = self._life
        if life is None:
            return
        await self._end_spare()
        self._end(signal.SIGTERM)
        _, late = await asyncio.wait([life], timeout=STOP_S_MAX)
        if late:
            log_event.warning("a process does not stop, and is killed", process=self.name)
            self.signal(signal.SIGKILL)
            await asyncio.wait([life])
        self._life = None
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
