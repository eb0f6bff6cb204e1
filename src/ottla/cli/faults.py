"""What ends a verb early: one line for a person, and a number for a script."""

from __future__ import annotations

OK = 0
#: The work was tried and failed: refused by the broker, damage found, a broker that cannot start.
FAILED = 1
#: The command line itself is wrong.
USAGE = 2
#: A topic, partition, broker or file that was named does not exist.
NOT_FOUND = 3
#: No broker answered in time.
UNREACHABLE = 4
#: What was to be created is there already.
EXISTS = 5
#: A plan was printed and nothing was done, since `--yes` was not given.
NOT_CONFIRMED = 6
#: The cluster is not healthy, as rpk says it.
UNHEALTHY = 10
#: As shells have it for a program that Ctrl-C or a closed pipe ended.
INTERRUPTED = 130
BROKEN_PIPE = 141


#: And for one that SIGHUP or SIGTERM ended.
HUNG_UP = 129
TERMINATED = 143


class StopSignal(BaseException):
    """SIGTERM or SIGHUP has come; what had to be put in order is."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = HUNG_UP if number == 1 else TERMINATED


class CommandFault(Exception):
    """Says what is wrong and what to do next, on one line."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class UsageFault(CommandFault):
    """The command line cannot be meant like that."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE)


class SaidFault(CommandFault):
    """What is wrong was said already, where it is looked for."""
