"""Admin's feature levels: shown by any broker, set by the controller."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin.at_controller import at_controller, refuse_elsewhere
from ottla.client.admin.results import FeatureChange, FeatureLevels
from ottla.client.errors import error_of
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import SOFTWARE_NAME
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse


async def describe(cluster: Cluster) -> dict[str, FeatureLevels]:
    from ottla import __version__

    connection = await cluster.any_connection()
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    answer = await connection.ask(request, ApiVersionsResponse, timeout_ms=cluster.settings.request_timeout_ms)
    if answer.error_code:
        raise error_of(answer.error_code)
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    return {
        one.name: FeatureLevels(level=finalized.get(one.name, 0), least=one.min_version, most=one.max_version)
        for one in sorted(answer.supported_features, key=lambda one: one.name)
    }


async def update(
    cluster: Cluster, levels: Mapping[str, int], change: FeatureChange, timeout_ms: int, *, validate_only: bool
) -> None:
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=change) for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=keys, validate_only=validate_only)

    async def attempt(controller: int) -> UpdateFeaturesResponse:
        wait_ms = cluster.settings.request_timeout_ms + timeout_ms
        answer = await cluster.ask(controller, request, UpdateFeaturesResponse, timeout_ms=wait_ms)
        refuse_elsewhere([answer.error_code])
        return answer

    answer = await at_controller(cluster, attempt)
    if answer.error_code:
        raise error_of(answer.error_code, answer.error_message)
