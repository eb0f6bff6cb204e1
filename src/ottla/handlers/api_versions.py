"""ApiVersions (18), versions 0 to 4: what this broker serves, and nothing else.

A client that asks in a version which we do not know is answered in version 0 with error 35 and our range of
ApiVersions itself, so that it can ask again (KIP-511). Versions above 2 check the name and version of the client's
software, since they end in logs and metrics.

Of Kafka's features two are listed: `group.version` at level 1, the newer group protocol (KIP-848), which is left out
where `group.coordinator.rebalance.protocols` leaves that protocol out; and `transaction.version` at the level that the
cluster has, 2 unless it was set (UpdateFeatures): an epoch for each transaction (KIP-890). As with Kafka a feature at
level 0 is not among the finalized ones.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import serves_consumer_protocol
from ottla.handlers.routes import API_VERSIONS, ROUTES, advertised
from ottla.metadata.features import GROUP_LEVEL_MAX, GROUP_VERSION, TRANSACTION_LEVEL_MAX, TRANSACTION_VERSION
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
#: Some forty kinds of answers to one level; more come only where levels have changed, and then old ones may go.
_ANSWERS_MAX: Final = 100


class _Kind(NamedTuple):
    """All that an answer hangs on."""

    version: int
    consumer_protocol: bool
    #: Whether it is for a listener that brokers use among themselves.
    between_brokers: bool
    transaction_level: int
    features_epoch: int


_answers: dict[_Kind, ApiVersionsResponse] = {}


def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    throttle_ms = call.throttle_ms()
    if call.version >= _SOFTWARE_CHECKED_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, throttle_time_ms=throttle_ms)
    between_brokers = call.listener in call.services.config.server.broker_listeners
    features = call.services.features
    kind = _Kind(
        call.version, serves_consumer_protocol(call), between_brokers, features.transaction_version, features.epoch
    )
    if throttle_ms:
        answer = _answer(kind)
        answer.throttle_time_ms = throttle_ms
        return answer
    kept = _answers.get(kind)
    if kept is None:
        if len(_answers) >= _ANSWERS_MAX:
            _answers.clear()
        kept = _answers[kind] = _answer(kind)
    return kept


def _answer(kind: _Kind) -> ApiVersionsResponse:
    answer = ApiVersionsResponse(api_keys=_api_keys(between_brokers=kind.between_brokers))
    if kind.version >= _FEATURES_SINCE:
        answer.finalized_features_epoch = kind.features_epoch
        if kind.version >= _LEVEL_0_SINCE:
            answer.supported_features = [
                SupportedFeatureKey(name=GROUP_VERSION, min_version=0, max_version=GROUP_LEVEL_MAX),
                SupportedFeatureKey(name=TRANSACTION_VERSION, min_version=0, max_version=TRANSACTION_LEVEL_MAX),
            ]
        answer.finalized_features = []
        if kind.consumer_protocol:
            answer.finalized_features.append(_finalized(GROUP_VERSION, GROUP_LEVEL_MAX))
        if kind.transaction_level:
            answer.finalized_features.append(_finalized(TRANSACTION_VERSION, kind.transaction_level))
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
