"""What the handlers of groups share: who calls, whether they may, and how long work goes in steps (`ottla.steps`)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final

from ottla.coordinators.caller import Caller, Now
from ottla.groups.no_shard import NoShard
from ottla.groups.shard import GroupShard
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import GatheredAnswers, Later
from ottla.model import ErrorCode
from ottla.security.authorizer import Operation, Resource
from ottla.steps import Steps

#: What is gathered of groups for one answer; the rest of what was asked for is refused. As encoded, about: the objects
#: take several times as much while the answer is written. Clients ask for what they want to know once, and a thousand
#: members with a thousand partitions each, described, stay below it.
ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
TOO_LARGE: Final = "The answer would become too large: ask for fewer groups at once."

#: Of a group's name, which is hashed to find its partition: about ten microseconds.
_CHARACTERS_A_STEP: Final = 512

#: In place of a shard's number.
_NOWHERE: Final = -1


def caller_of(call: Call) -> Caller:
    """The client as coordinators see it, and as tools show it."""
    now = Now(call.now_ms, call.services.clock.monotonic_ms())
    return Caller(call.client_id or "", f"/{call.host}", call.version, now)


def allowed_on_group(call: Call, operation: Operation, group_id: str) -> bool:
    return call.allowed(operation, Resource.GROUP, group_id)


def serves_consumer_protocol(call: Call) -> bool:
    return "consumer" in call.services.config.groups.rebalance_protocols


def steps_of_name(group_id: str) -> Steps[None]:
    """After something was done for one group: a step, or more where its name is long."""
    for _ in range(1 + len(group_id) // _CHARACTERS_A_STEP):
        yield


class SourceShards:
    """Which shards of the coordinator the elements of an answer came from: they wait until these have settled.

    It is the shards themselves: by the end of a long answer another one may keep the same partition, and knows nothing
    of what its predecessor had taken on and has lost.
    """

    __slots__ = ("_of", "_shards")

    def __init__(self) -> None:
        #: By element, in their order. Four bytes each: there may be some hundred thousand.
        self._of = array("i")
        #: Numbered as they came.
        self._shards: dict[GroupShard | NoShard, int] = {}

    def add(self, shard: GroupShard | NoShard | None) -> None:
        """The next element was read from it; None: it shows nothing that is stored."""
        self._of.append(_NOWHERE if shard is None else self._shards.setdefault(shard, len(self._shards)))

    def answered(self, response: Callable[[Refusals], Steps[object]]) -> Later:
        """The answer once all is committed that it shows; `response` is called with the elements in doubt."""
        answer = Later()

        def done(errors: list[ErrorCode]) -> None:
            in_doubt = {number: error for number, error in enumerate(errors) if error}
            answer.set(response(Refusals(self._of, in_doubt)))

        gathered = GatheredAnswers(len(self._shards), done)
        for shard, number in self._shards.items():
            shard.when_settled(gathered.place(number))
        return answer


class Refusals:
    """Why elements of an answer are errors: what they would show was not committed, or is not known to be."""

    __slots__ = ("_errors", "_of")

    def __init__(self, of: array[int], errors: Mapping[int, ErrorCode]) -> None:
        self._of = of
        self._errors = errors

    def __bool__(self) -> bool:
        return bool(self._errors)

    def of(self, index: int) -> ErrorCode | None:
        return self._errors.get(self._of[index])
