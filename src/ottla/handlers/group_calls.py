"""What the handlers of groups share: who calls, whether they may, and how long work goes in steps (`ottla.steps`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.groups.caller import Caller, Now
from ottla.handlers.call import Call
from ottla.handlers.later import Gathered, Later
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


class Places:
    """Which elements of an answer came from which partitions of the offsets topic: they wait until it has settled."""

    def __init__(self, call: Call) -> None:
        self._groups = call.services.groups
        self._indexes: dict[int, list[int]] = {}

    def add(self, group_id: str, index: int) -> None:
        self._indexes.setdefault(self._groups.partition_for(group_id), []).append(index)

    def answered(self, refuse: Callable[[int, ErrorCode], None], response: Callable[[], object]) -> Later:
        """The answer once all is committed that it tells of; `refuse` is called for each element that is in doubt."""
        answer = Later()
        partitions = list(self._indexes)

        def done(errors: list[ErrorCode]) -> None:
            for partition, error in zip(partitions, errors, strict=True):
                if error:
                    for index in self._indexes[partition]:
                        refuse(index, error)
            answer.set(response())

        gathered = Gathered(len(partitions), done)
        for place, partition in enumerate(partitions):
            self._groups.when_settled(partition, gathered.place(place))
        return answer
