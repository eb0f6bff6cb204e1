"""What long requests and answers are made of, let go in steps.

A message of three hundred thousand elements is as many objects and more, and Python frees them one by one as soon as
nobody refers to the message any more: some thirty milliseconds in one piece. So code that has done with a long message
keeps a list of its parts, lets go of the message, which frees next to nothing then, and takes the list apart in steps.

    message -> [message, its elements, their elements, ...] -> first to last: each part is freed alone

A part that somebody else refers to stays as it is: nothing is taken out of a message.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.message import Structure
from ottla.steps import Steps

#: Encoded. Whatever has less is freed in half a millisecond.
LONG_BYTES: Final = 64 * 1024
#: Parts that are looked into, and parts that are freed, in a step.
_FOUND_A_STEP: Final = 32
_FREED_A_STEP: Final = 256


class Parts:
    """All that a message is made of. The message is to be let go first, and these in steps then."""

    __slots__ = ("_leaves", "_structures")

    def __init__(self, message: Structure) -> None:
        self._structures: list[Structure] = [message]
        #: What stands in arrays of anything else, some at a time.
        self._leaves: list[list[object]] = []

    def found(self) -> Steps[None]:
        """To be done while the message is still held."""
        structures = self._structures
        before: Structure | None = None
        for number, structure in enumerate(structures, 1):  # which grows meanwhile
            if structure is not before:  # what is said again and again may be one object
                before = structure
                for name in type(structure).__slots__:
                    value = getattr(structure, name)
                    if isinstance(value, Structure):
                        structures.append(value)
                    elif type(value) is list and value:
                        yield from self._elements(value)
            if number % _FOUND_A_STEP == 0:
                yield

    def _elements(self, elements: list[object]) -> Steps[None]:
        of_structures = isinstance(elements[0], Structure)
        for start in range(0, len(elements), _FREED_A_STEP):
            some = elements[start : start + _FREED_A_STEP]
            if of_structures:
                self._structures += some  # type: ignore[arg-type]  # all of them are
            else:
                self._leaves.append(some)
            if start:
                yield

    def let_go(self) -> Steps[None]:
        structures = self._structures
        structures.reverse()
        while structures:
            del structures[-_FREED_A_STEP:]
            yield
        while self._leaves:
            self._leaves.pop()
            yield
