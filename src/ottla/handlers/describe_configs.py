"""DescribeConfigs (32), versions 1 to 4: settings of topics, brokers and groups, where they come from, what they mean.

A frame of 0.1 MB may ask for the same broker 20,000 times, in an answer of a gigabyte. What is asked again is looked up
once, and an answer has a bound: resources beyond it get an error, as a Kafka controller's do in a batch that is too
large, and may be asked for with the next request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.controller.interface import ConfigResult, ConfigTarget
from ottla.handlers.calls.call import Call
from ottla.handlers.configs.described import Setting, SettingsOf
from ottla.handlers.configs.resources import refusal, resource
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces

#: What an answer and the objects that it is made from may weigh together, about: all settings of six thousand topics,
#: or of four hundred brokers.
ANSWER_BYTES_MAX: Final = 16 << 20
TOO_MUCH: Final = f"The answer would be longer than {ANSWER_BYTES_MAX} bytes: ask for fewer resources at a time."

#: Refusals that are given again when a request repeats a resource; of more there is a new one each time.
REFUSALS_KEPT_MAX: Final = 10_000

#: Of a result, beside its settings.
_RESULT_BYTES: Final = 16

_Key = tuple[int, str]


def handle(call: Call, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    answer = _ConfigsAnswer(call, request)
    results = []
    for asked in request.resources:
        results.append((yield from answer.result(asked)))
        yield
    return DescribeConfigsResponse(throttle_time_ms=call.throttle_ms(), results=results)


class _ConfigsAnswer:
    def __init__(self, call: Call, request: DescribeConfigsRequest) -> None:
        self._call = call
        self._settings = SettingsOf(call, request)
        #: Results for all settings of a resource, with what they weigh, and refusals: when asked again, the same.
        self._whole: dict[_Key, tuple[DescribeConfigsResult, int]] = {}
        self._refused: dict[_Key, DescribeConfigsResult] = {}
        self._bytes = 0
        #: A result did not fit: none is looked up any more.
        self._is_full = False

    def result(self, asked: DescribeConfigsResource) -> Steps[DescribeConfigsResult]:
        key = (asked.resource_type, asked.resource_name)
        refused = self._refused.get(key)
        if refused is not None:
            return refused
        # No names at all and an empty list both ask for everything.
        if key in self._whole and not asked.configuration_keys:
            result, size = self._whole[key]
            return self._bounded(key, result, size)
        named = resource(*key)
        fault = named if isinstance(named, ConfigResult) else refusal(self._call, named, Operation.DESCRIBE_CONFIGS)
        if fault is not None:
            refused = _result(key, fault.error, fault.message)
            if len(self._refused) < REFUSALS_KEPT_MAX:
                self._refused[key] = refused
            return refused
        assert isinstance(named, ConfigTarget)
        if self._is_full:
            return _result(key, ErrorCode.POLICY_VIOLATION, TOO_MUCH)
        settings = yield from self._settings.all(named)
        if asked.configuration_keys:
            result, size = _with(key, (yield from _picked(settings, asked.configuration_keys)))
        else:
            result, size = _with(key, [each for each in settings.values() if each.is_listed])
            self._whole[key] = result, size
        return self._bounded(key, result, size)

    def _bounded(self, key: _Key, result: DescribeConfigsResult, size: int) -> DescribeConfigsResult:
        self._is_full = self._is_full or self._bytes + self._settings.held_bytes + size > ANSWER_BYTES_MAX
        if self._is_full:
            return _result(key, ErrorCode.POLICY_VIOLATION, TOO_MUCH)
        self._bytes += size
        return result


def _picked(settings: dict[str, Setting], names: Iterable[str]) -> Steps[list[Setting]]:
    """Each once, in the order of the settings."""
    wanted: set[str] = set()
    for piece in pieces(names):
        wanted.update(settings.keys() & piece)
        yield
    return [setting for name, setting in settings.items() if name in wanted]


def _with(key: _Key, settings: list[Setting]) -> tuple[DescribeConfigsResult, int]:
    result = _result(key, ErrorCode.NONE, "")
    result.configs = [setting.result for setting in settings]
    return result, _RESULT_BYTES + len(key[1]) + sum(setting.answer_bytes for setting in settings)


def _result(key: _Key, error: ErrorCode, message: str | None) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error, error_message=message, resource_type=key[0], resource_name=key[1], configs=[]
    )
