"""Faults on demand: this operation, on files like these, from the nth time, that often; and a power cut at step n."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ottla.ports.memory.namespace import problem

#: What every operation asks for that needs a descriptor. `*` leaves it out: a disk has nothing to do with it.
DESCRIPTOR: Final = "descriptor"


class SimulatedCrash(BaseException):
    """The power went off in the middle of an operation. No `except Exception` of a program survives it."""


@dataclass(slots=True)
class Fault:
    #: Or several, with `|` between them; `*` for all.
    operation: str
    pattern: str
    number: int
    #: Matching operations that still succeed.
    after: int
    #: How often it strikes from then on; None for ever.
    times: int | None


class DiskFaults:
    """Asked before every operation."""

    __slots__ = ("_crash_at", "_faults", "down", "operations")

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        #: Operations so far that change something, syncs among them. Reads do not count.
        self.operations = 0
        self._crash_at = 0
        #: Between the power cut and `MemoryDisk.crash` nothing works.
        self.down = False

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def crash_at(self, operation: int) -> None:
        self._crash_at = self.operations + operation

    def restore(self) -> None:
        self.down = False
        self._crash_at = 0

    def check(self, operation: str, path: str) -> None:
        """Raises what was asked for."""
        for fault in self._faults:
            wanted = set(fault.operation.split("|"))
            is_wanted = operation in wanted or ("*" in wanted and operation != DESCRIPTOR)
            if not is_wanted or not fnmatchcase(path, fault.pattern):
                continue
            if fault.after > 0:
                fault.after -= 1
            elif fault.times is None or fault.times > 0:
                if fault.times is not None:
                    fault.times -= 1
                raise problem(fault.number, path)

    def check_power(self, operation: str, path: str) -> None:
        if self.down:
            raise SimulatedCrash(f"the machine is off: {operation} of {path}")

    def count(self, operation: str, path: str) -> None:
        """Called where an operation has changed what is seen, but before it has made anything certain."""
        self.operations += 1
        if self.operations == self._crash_at:
            self.down = True
            raise SimulatedCrash(f"power cut in operation {self.operations}: {operation} of {path}")
