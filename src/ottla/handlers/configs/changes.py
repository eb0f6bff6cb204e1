"""What both ways of changing settings share: who may, which resource stands twice, and the controller's word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ottla.controller.interface import ConfigChanges, ConfigOverrides, ConfigResult, ConfigTarget
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import controller_for
from ottla.handlers.configs.resources import refusal, resource
from ottla.model import ErrorCode
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces


class AskedResource(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


AskedT = TypeVar("AskedT", bound=AskedResource)
ResultT = TypeVar("ResultT")
ResponseT = TypeVar("ResponseT")


class ConfigChangeResult(NamedTuple):
    """One resource's part of the answer."""

    type_code: int
    name: str
    error: ErrorCode
    message: str | None


_Key = tuple[int, str]
#: What the controller is asked for, or why it is not.
Asked = ConfigChanges | ConfigOverrides | ConfigResult


class ConfigAlteration:
    """One request: what of it is refused here, and what the controller is asked to do."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._results: dict[_Key, ConfigResult] = {}
        self._wanted: list[ConfigChanges | ConfigOverrides] = []

    def take(self, resources: Sequence[AskedT], read: Callable[[ConfigTarget, AskedT], Asked]) -> Steps[None]:
        times: Counter[_Key] = Counter()
        for piece in pieces(resources):
            times.update((asked.resource_type, asked.resource_name) for asked in piece)
            yield
        for asked in resources:
            key = (asked.resource_type, asked.resource_name)
            if key not in self._results:
                self._take(key, times[key], asked, read)
            yield

    def _take(
        self,
        key: _Key,
        times: int,
        asked: AskedT,
        read: Callable[[ConfigTarget, AskedT], Asked],
    ) -> None:
        named = resource(*key)
        if isinstance(named, ConfigResult):
            self._results[key] = named
        elif times > 1:
            self._results[key] = ConfigResult(
                named, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
            )
        else:
            refused = refusal(self._call, named, Operation.ALTER_CONFIGS)
            if refused is not None:
                self._results[key] = refused
            else:
                found = read(named, asked)
                if isinstance(found, ConfigResult):
                    self._results[key] = found
                else:
                    self._wanted.append(found)

    async def carry_out(
        self,
        resources: Sequence[AskedT],
        respond: Callable[[list[ResultT]], ResponseT],
        result: Callable[[ConfigChangeResult], ResultT],
        *,
        validate_only: bool,
    ) -> ResponseT:
        """Asks the controller, and answers each resource in the order of the request, as often as it stands there."""
        services = self._call.services
        altered = await controller_for(self._call).alter_configs(self._wanted, validate_only=validate_only)
        answers = await services.turns.to_end(self._answers(resources, altered, result))
        await services.turns.to_end(self._let_go(altered))
        return respond(answers)

    def _answers(
        self,
        resources: Sequence[AskedT],
        altered: Sequence[ConfigResult],
        result: Callable[[ConfigChangeResult], ResultT],
    ) -> Steps[list[ResultT]]:
        for piece in pieces(altered):
            self._results.update(((int(each.resource.type), each.resource.name), each) for each in piece)
            yield
        answers: list[ResultT] = []
        for asked_piece in pieces(resources):
            for asked in asked_piece:
                key = (asked.resource_type, asked.resource_name)
                answers.append(result(ConfigChangeResult(*key, self._results[key].error, self._results[key].message)))
            yield
        return answers

    def _let_go(self, altered: list[ConfigResult]) -> Steps[None]:
        """Frees what a long request has left in steps as well: it takes as long as making it."""
        while altered or self._wanted or self._results:
            del altered[-PIECE:], self._wanted[-PIECE:]
            for _ in range(min(PIECE, len(self._results))):
                self._results.popitem()
            yield


def change_all(
    call: Call,
    resources: Sequence[AskedT],
    read: Callable[[ConfigTarget, AskedT], Asked],
    respond: Callable[[list[ResultT]], ResponseT],
    result: Callable[[ConfigChangeResult], ResultT],
    *,
    validate_only: bool,
) -> Steps[Awaitable[ResponseT]]:
    """The steps before the controller decides, and then the wait for it."""
    alteration = ConfigAlteration(call)
    yield from alteration.take(resources, read)
    return alteration.carry_out(resources, respond, result, validate_only=validate_only)
