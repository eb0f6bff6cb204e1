"""What long requests and answers are made of, let go in steps.

A message of three hundred thousand elements is as many objects and more, and Python frees them one by one as soon as
nobody refers to the message any more: some thirty milliseconds in one piece. So code that has done with a long message
keeps a list of its parts, lets go of the message, which frees next to nothing then, and takes the list apart in steps.

    message -> [message, its elements, their elements, ...] -> first to last: each part is freed alone

A part that somebody else refers to stays as it is: nothing is taken out of a message.

Work holds as much that it has gathered itself, in the frames of its generators, and would free it in the step in which
a generator ends. `held_by` finds it there before: whoever drives the work looks now and then, keeps what it finds, and
frees what has left the frames since. Work that fails has let go of its frames, and its fault keeps them: `kept_by`
finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from gc import get_referents
from inspect import CO_GENERATOR
from sys import getrefcount
from types import CellType, CodeType, GeneratorType
from typing import Any, Final, ParamSpec, TypeVar

from ottla.protocol.message import Structure
from ottla.steps import Steps

P = ParamSpec("P")
R = TypeVar("R")

#: Encoded. Whatever has less is freed in half a millisecond.
LONG_BYTES: Final = 64 * 1024
#: Parts that are looked into, and parts that are freed, in a step.
_FOUND_A_STEP: Final = 32
_FREED_A_STEP: Final = 256


#: What has parts of its own.
_CONTAINERS: Final = (Structure, list, dict, tuple, set)
#: The code of work that lets go itself.
_LET_GO: Final[set[CodeType]] = set()


class Parts:
    """All that messages are made of. They are to be let go first, and these in steps then."""

    __slots__ = ("_leaves", "_structures")

    def __init__(self, *messages: Any) -> None:
        #: Structures; before their own parts are found also lists and dictionaries of such.
        self._structures: list[Any] = list(messages)
        #: What stands in arrays of anything else, some at a time.
        self._leaves: list[Sequence[object]] = []

    def found(self) -> Steps[None]:
        """To be done while the messages are still held."""
        structures = self._structures
        before: Any = None
        for number, structure in enumerate(structures, 1):  # which grows meanwhile
            if structure is before:  # what is said again and again may be one object
                pass
            elif isinstance(structure, (list, tuple)):
                yield from self._elements(structure)
            elif isinstance(structure, set):
                yield from self._elements(list(structure))
            elif isinstance(structure, dict):
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

    def _elements(self, elements: Sequence[object]) -> Steps[None]:
        if not elements:
            return
        # A list has elements of one kind, and a tuple may have several.
        looked_at = elements[:1] if isinstance(elements, list) else elements
        of_structures = any(isinstance(each, _CONTAINERS) for each in looked_at)
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


def lets_go_itself(work: Callable[P, R]) -> Callable[P, R]:
    """Decorates work in steps that takes apart what it holds: nobody else is to keep that meanwhile."""
    _LET_GO.add(work.__code__)
    return work


def gathered_by(steps: object) -> dict[int, Any]:
    """What work in steps would free with its frames when it ends, by the objects' ids."""
    return {id(each): each for each in held_by(steps, without=_LET_GO)}


def left_by(before: dict[int, Any], now: dict[int, Any]) -> list[Any]:
    """Of what was gathered what is no more, and what nobody else has: the rest goes with whoever has it."""
    gone = [before.pop(number) for number in before.keys() - now.keys()]
    # Names for it are the list, the loop and the call.
    return [each for each in gone if getrefcount(each) <= 3]


def held_by(steps: object, *, without: AbstractSet[CodeType] = frozenset()) -> list[Any]:
    """What the local names of work in steps refer to, and of the work that it waits for: lists and the like."""
    held: list[Any] = []
    generators = [steps]
    for generator in generators:  # which grows meanwhile
        if type(generator) is not GeneratorType or generator.gi_frame is None:
            continue
        # Not by `f_locals`, which would keep all that it has shown.
        for value in get_referents(generator):
            inner = get_referents(value) if type(value) is CellType else (value,)
            generators += [each for each in inner if type(each) is GeneratorType and each not in generators]
            if generator.gi_code not in without:
                held += [each for each in inner if _is_much(each)]
    return held


def _is_much(value: object) -> bool:
    if not isinstance(value, _CONTAINERS):
        return False
    if isinstance(value, (Structure, dict)) or len(value) >= _FREED_A_STEP:
        return True
    return any(isinstance(each, _CONTAINERS) for each in value)


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
