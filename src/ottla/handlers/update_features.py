"""UpdateFeatures (57), versions 0 to 2: sets the cluster's feature levels, all that are asked for or none.

Only `transaction.version` can be set. Version 0 cannot say that a level shall go down: as with Kafka its
`allow_downgrade` has no effect. Up to version 1 each feature has a result of its own where all were taken.
"""

from __future__ import annotations

from typing import Final

from ottla.controller.interface import FeatureUpdate
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import controller_for
from ottla.model import ErrorCode
from ottla.protocol.generated.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.security.authorizer import Operation

#: What each feature's result says, as Kafka names this error.
_DONE: Final = "NONE"
_RESULTS_UNTIL: Final = 1
#: Kafka 4.3 knows seven. More in a request is somebody's fault, and would hold up the controller.
_FEATURES_MAX: Final = 100


async def handle(call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    error, message = await _update(call, request)
    response = UpdateFeaturesResponse(throttle_time_ms=call.throttle_ms(), error_code=error, error_message=message)
    if error is ErrorCode.NONE and call.version <= _RESULTS_UNTIL:
        response.results = [
            UpdatableFeatureResult(feature=each.feature, error_message=_DONE) for each in request.feature_updates
        ]
    return response


async def _update(call: Call, request: UpdateFeaturesRequest) -> tuple[ErrorCode, str | None]:
    if not call.allowed_on_cluster(Operation.ALTER):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    if len(request.feature_updates) > _FEATURES_MAX:
        return ErrorCode.INVALID_REQUEST, f"There are more than {_FEATURES_MAX} features in the request."
    updates = [
        FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates
    ]
    return await controller_for(call).update_features(
        updates, validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
