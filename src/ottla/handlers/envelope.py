"""Envelope (58), version 0: a client's request that another broker forwards to the controller, and its answer.

The request in it is served as if its client had sent it here: under the client's principal and from its address, as the
forwarding broker says (KIP-590). Only what a controller decides may be forwarded, and only to the active one.

NOT_CONTROLLER has the forwarding broker send the request again, to the next controller. So that is said of a request
that was refused with it, as by Kafka, and of no other: one that was carried out, or whose end nobody knows, would be
carried out twice, though another broker decides by now.
"""

from __future__ import annotations

import socket
from importlib import import_module
from types import GeneratorType
from typing import Any, Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import from_broker
from ottla.handlers.calls.loading import api_loaded
from ottla.handlers.routes import FORWARDED, ROUTES
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import LENGTH_BYTES
from ottla.protocol.generated.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.header import RequestHeader, decode_request_header, encode_response
from ottla.protocol.message import Message, Structure
from ottla.protocol.stepping import DecodingAllowance
from ottla.security.forwarded import decode_principal
from ottla.security.principal import ANONYMOUS, Principal
from ottla.steps import Steps, pieces

#: By the length of an address.
_FAMILIES: Final = {4: socket.AF_INET, 16: socket.AF_INET6}


async def handle(call: Call, request: EnvelopeRequest) -> EnvelopeResponse:
    refusal = from_broker(call)
    if refusal is not ErrorCode.NONE:
        return EnvelopeResponse(error_code=refusal)
    if not call.services.own_controller.active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    inner = _inner_call(call, request)
    if isinstance(inner, ErrorCode):
        return EnvelopeResponse(error_code=inner)
    header, position, as_client = inner
    await call.services.turns.to_end(api_loaded(call.services.workers, header.api_key))
    try:
        steps = (
            api(header.api_key)
            .request_type()
            .decode_steps(request.request_data, header.api_version, position, DecodingAllowance())
        )
        message, _ = await call.services.turns.to_end(steps)
    except DecodeError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    answer = await _served(as_client, header, message)
    if await call.services.turns.to_end(_is_refused(answer)):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    frame = encode_response(header.api_key, header.api_version, header.correlation_id, answer)
    return EnvelopeResponse(response_data=frame[LENGTH_BYTES:])


def _inner_call(call: Call, request: EnvelopeRequest) -> tuple[RequestHeader, int, Call] | ErrorCode:
    try:
        header, position = decode_request_header(request.request_data, 0)
    except DecodeError:
        return ErrorCode.INVALID_REQUEST
    route = ROUTES.get(header.api_key)
    if header.api_key not in FORWARDED or route is None:
        return ErrorCode.INVALID_REQUEST
    if not route.version_min <= header.api_version <= route.version_max:
        return ErrorCode.UNSUPPORTED_VERSION
    principal = _principal(request.request_principal)
    if principal is None:
        return ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    family = _FAMILIES.get(len(request.client_host_address))
    if family is None:
        return ErrorCode.INVALID_REQUEST
    services = call.services
    return (
        header,
        position,
        call._replace(
            # Should another one become the controller meanwhile, nothing is forwarded a second time.
            services=services._replace(controller=services.own_controller),
            version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            principal=principal,
            host=socket.inet_ntop(family, request.client_host_address),
        ),
    )


def _principal(raw: bytes | memoryview | None) -> Principal | None:
    if raw is None:
        return ANONYMOUS
    try:
        return decode_principal(bytes(raw))
    except DecodeError:
        return None


async def _served(call: Call, header: RequestHeader, message: Message) -> Message:
    result: Any = import_module(f"ottla.handlers.{ROUTES[header.api_key].module}").handle(call, message)
    while not isinstance(result, Message):
        result = await (call.services.turns.to_end(result) if type(result) is GeneratorType else result)
    return result


def _is_refused(answer: Structure) -> Steps[bool]:
    """Whether it says NOT_CONTROLLER, as a whole or of anything in it."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if name == "error_code" and value == ErrorCode.NOT_CONTROLLER:
            return True
        for piece in pieces(value) if isinstance(value, list) else ():
            for part in piece:
                if isinstance(part, Structure) and (yield from _is_refused(part)):
                    return True
            yield
    return False
