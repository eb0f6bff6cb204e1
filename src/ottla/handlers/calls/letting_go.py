"""What long requests and answers are made of, let go in steps.

A message of three hundred thousand elements is as many objects and more, and Python frees them one by one as soon as
nobody refers to the message any more: some thirty milliseconds in one piece. So code that has done with a long message
keeps a list of its parts, lets go of the message, which frees next to nothing then, and takes the list apart in steps.

    message -> [message, its elements, their elements, ...] -> first to last: each part is freed alone

A part that somebody else refers to stays as it is: nothing is taken out of a message.

Work that is given up in its middle holds as much, in the frames of its generators: `held_by` finds it there, before the
generators are closed. Work that fails has let go of its frames, and its fault keeps them: `kept_by` finds it there.
"""

from __future__ import annotations

from inspect import CO_GENERATOR
from types import GeneratorType
from typing import Any, Final

from ottla.protocol.message import Structure
from ottla.steps import Steps

#: Encoded. Whatever has less is freed in half a millisecond.
LONG_BYTES: Final = 64 * 1024
#: Parts that are looked into, and parts that are freed, in a step.
_FOUND_A_STEP: Final = 32
_FREED_A_STEP: Final = 256


#: What has parts of its own.
_CONTAINERS: Final = (Structure, list, dict)


class Parts:
    """All that messages are made of. They are to be let go first, and these in steps then."""

    __slots__ = ("_leaves", "_structures")

    def __init__(self, *messages: Any) -> None:
        #: Structures; before their own parts are found also lists and dictionaries of such.
        self._structures: list[Any] = list(messages)
        #: What stands in arrays of anything else, some at a time.
        self._leaves: list[list[object]] = []

    def found(self) -> Steps[None]:
        """To be done while the messages are still held."""
        structures = self._structures
        before: Any = None
        for number, structure in enumerate(structures, 1):  # which grows meanwhile
            if structure is before:  # what is said again and again may be one object
                pass
            elif type(structure) is list:
                yield from self._elements(structure)
            elif type(structure) is dict:
                yield from self._elements(list(structure.values()))
            else:
                before = structure
                for name in type(structure).__slots__:
                    value = getattr(structure, name, None)  # decoding may have ended before that field
                    if isinstance(value, Structure):
                        structures.append(value)
                    elif type(value) is list and value:
                        yield from self._elements(value)
            if number % _FOUND_A_STEP == 0:
                yield

    def _elements(self, elements: list[object]) -> Steps[None]:
        if not elements:
            return
        of_structures = isinstance(elements[0], _CONTAINERS)
        for start in range(0, len(elements), _FREED_A_STEP):
            some = elements[start : start + _FREED_A_STEP]
            if of_structures:
                self._structures += [each for each in some if isinstance(each, _CONTAINERS)]
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


def held_by(steps: object) -> list[Any]:
    """What the local names of work in steps refer to, and of the work that it waits for: lists and the like."""
    held: list[Any] = []
    generators = [steps]
    for generator in generators:  # which grows meanwhile
        if type(generator) is not GeneratorType or generator.gi_frame is None:
            continue
        generators.append(generator.gi_yieldfrom)
        for value in generator.gi_frame.f_locals.values():
            if type(value) is GeneratorType:
                if value is not generator.gi_yieldfrom:
                    generators.append(value)
            elif isinstance(value, _CONTAINERS):
                held.append(value)
    return held


def kept_by(fault: BaseException) -> list[Any]:
    """The same of work that this has ended: as soon as nobody has the fault any more, all of it would be freed."""
    held: list[Any] = []
    faults: list[BaseException | None] = [fault]
    for each in faults:  # which grows meanwhile
        if each is None:
            continue
        following = each.__cause__ or each.__context__
        if following not in faults:
            faults.append(following)
        traceback, is_work = each.__traceback__, False
        while traceback is not None:
            frame = traceback.tb_frame
            # What drives the work is still at it, and has the fault itself among its names: a look there would tie the
            # one to the other.
            is_work = is_work or bool(frame.f_code.co_flags & CO_GENERATOR)
            if is_work:
                held += [value for value in frame.f_locals.values() if isinstance(value, _CONTAINERS)]
            traceback = traceback.tb_next
    return held
