"""ApiVersions (18), versions 0 to 4: what this broker serves, and nothing else.

A client that asks in a version which we do not know is answered in version 0 with error 35 and our range of
ApiVersions itself, so that it can ask again (KIP-511). Versions above 2 check the name and version of the client's
software, since they end in logs and metrics.

Of Kafka's features two are listed: `group.version` at level 1, the newer group protocol (KIP-848), which is left out
where `group.coordinator.rebalance.protocols` leaves that protocol out; and `transaction.version` at level 2, an epoch
for each transaction (KIP-890).
"""

from __future__ import annotations

import re
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import serves_consumer_protocol
from ottla.handlers.routes import API_VERSIONS, ROUTES, advertised
from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.protocol.header import encode_response

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_CHECKED_FROM: Final = 3
_FEATURES_SINCE: Final = 3
#: Clients before this version cannot read a range of levels that begins at 0.
_LEVEL_0_SINCE: Final = 4
_GROUP_VERSION: Final = "group.version"
_GROUP_LEVEL_MAX: Final = 1
_TRANSACTION_VERSION: Final = "transaction.version"
_TRANSACTION_LEVEL_MAX: Final = 2
#: Levels are what this program does, so they have been the same since it started.
_FEATURES_EPOCH: Final = 0

#: Answers by version, with the newer group protocol and without it, and on listeners that brokers use among themselves
#: and on others: they never change while the broker runs.
_answers: dict[tuple[int, bool, bool], ApiVersionsResponse] = {}


def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    throttle_ms = call.throttle_ms()
    if call.version >= _SOFTWARE_CHECKED_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, throttle_time_ms=throttle_ms)
    between_brokers = call.listener in call.services.config.server.broker_listeners
    key = (call.version, serves_consumer_protocol(call), between_brokers)
    if throttle_ms:
        answer = _answer(*key)
        answer.throttle_time_ms = throttle_ms
        return answer
    kept = _answers.get(key)
    if kept is None:
        kept = _answers[key] = _answer(*key)
    return kept


def _answer(version: int, consumer_protocol: bool, between_brokers: bool) -> ApiVersionsResponse:
    answer = ApiVersionsResponse(api_keys=_api_keys(between_brokers=between_brokers))
    if version >= _FEATURES_SINCE:
        answer.finalized_features_epoch = _FEATURES_EPOCH
        if version >= _LEVEL_0_SINCE:
            answer.supported_features = [
                SupportedFeatureKey(name=_GROUP_VERSION, min_version=0, max_version=_GROUP_LEVEL_MAX),
                SupportedFeatureKey(name=_TRANSACTION_VERSION, min_version=0, max_version=_TRANSACTION_LEVEL_MAX),
            ]
        answer.finalized_features = [_finalized(_TRANSACTION_VERSION, _TRANSACTION_LEVEL_MAX)]
        if consumer_protocol:
            answer.finalized_features.insert(0, _finalized(_GROUP_VERSION, _GROUP_LEVEL_MAX))
    return answer


def _finalized(name: str, level: int) -> FinalizedFeatureKey:
    return FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)


def _api_keys(*, between_brokers: bool) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in advertised(between_brokers=between_brokers)
    ]


def unsupported_version_answer(correlation_id: int) -> bytes:
    """The frame for a version that is not served; any client can read version 0."""
    route = ROUTES[API_VERSIONS]
    own = ApiVersion(api_key=API_VERSIONS, min_version=route.version_min, max_version=route.version_max)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    return encode_response(API_VERSIONS, 0, correlation_id, response)
