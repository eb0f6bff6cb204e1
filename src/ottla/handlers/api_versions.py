"""ApiVersions (18), versions 0 to 4: what this broker serves, and nothing else.

A client that asks in a version which we do not know is answered in version 0 with error 35 and our range of
ApiVersions itself, so that it can ask again (KIP-511). Versions above 2 check the name and version of the client's
software, since they end in logs and metrics.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.handlers.call import Call
from ottla.handlers.routes import API_VERSIONS, ROUTES, advertised
from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.header import encode_response

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_CHECKED_FROM: Final = 3

#: Answers by version: they never change while the broker runs.
_answers: dict[int, ApiVersionsResponse] = {}


def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= _SOFTWARE_CHECKED_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    answer = _answers.get(call.version)
    if answer is None:
        answer = _answers[call.version] = ApiVersionsResponse(api_keys=_api_keys())
    return answer


def _api_keys() -> list[ApiVersion]:
    return [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in advertised()]


def unsupported_version_answer(correlation_id: int) -> bytes:
    """The frame for a version that is not served; any client can read version 0."""
    route = ROUTES[API_VERSIONS]
    own = ApiVersion(api_key=API_VERSIONS, min_version=route.version_min, max_version=route.version_max)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    return encode_response(API_VERSIONS, 0, correlation_id, response)
