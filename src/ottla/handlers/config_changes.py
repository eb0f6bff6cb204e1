"""What both ways of changing settings share: who may, which resource stands twice, and the controller's word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ottla.controller.interface import ConfigChanges, ConfigOverrides, ConfigResource, ConfigResult
from ottla.handlers.call import Call
from ottla.handlers.config_resources import refusal, resource
from ottla.model import ErrorCode
from ottla.security.authorizer import Operation


class Asked(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


AskedT = TypeVar("AskedT", bound=Asked)


class Changed(NamedTuple):
    """One resource's part of the answer, in the order of the request."""

    type_code: int
    name: str
    error: ErrorCode
    message: str | None


async def change_all(
    call: Call,
    resources: Sequence[AskedT],
    read: Callable[[ConfigResource, AskedT], ConfigChanges | ConfigOverrides],
    *,
    validate_only: bool,
) -> list[Changed]:
    times = Counter((asked.resource_type, asked.resource_name) for asked in resources)
    results: dict[tuple[int, str], ConfigResult] = {}
    wanted: list[ConfigChanges | ConfigOverrides] = []
    for asked in resources:
        key = (asked.resource_type, asked.resource_name)
        named = resource(*key)
        refused = named if isinstance(named, ConfigResult) else refusal(call, named, Operation.ALTER_CONFIGS)
        if refused is not None:
            results[key] = refused
        elif times[key] > 1:
            assert isinstance(named, ConfigResource)
            results[key] = ConfigResult(named, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            assert isinstance(named, ConfigResource)
            wanted.append(read(named, asked))
    for result in await call.services.controller.alter_configs(wanted, validate_only=validate_only):
        results[int(result.resource.type), result.resource.name] = result
    return [Changed(*key, results[key].error, results[key].message) for key in times]
