"""A command in a process of its own, whose standard error is read as it comes."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.conftest import SECONDS_MAX, environment


class Watched:
    """A command whose standard error is read as it comes."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.said = ""

    def says(self, pattern: str) -> re.Match[str]:
        assert self.child.stderr is not None
        deadline = time.monotonic() + SECONDS_MAX
        while (found := re.search(pattern, self.said)) is None:
            assert time.monotonic() < deadline, self.said
            if select.select([self.child.stderr], [], [], 0.1)[0]:
                piece = os.read(self.child.stderr.fileno(), 65536)
                assert piece, self.said
                self.said += piece.decode()
        return found

    def ends(self) -> int:
        out, err = self.child.communicate(timeout=SECONDS_MAX)
        del out
        self.said += err.decode()
        return self.child.returncode


@contextmanager
def watched(bootstrap: str, *words: str) -> Iterator[Watched]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        env=environment(OTTLA_BOOTSTRAP_SERVER=bootstrap),
        **pipes,  # type: ignore[call-overload]
    )
    try:
        yield Watched(child)
    finally:
        child.kill()
        child.communicate()


def first_line(command: Watched) -> str:
    assert command.child.stdout is not None
    return command.child.stdout.readline().decode().rstrip("\n")
