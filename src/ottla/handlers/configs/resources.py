"""The resources that have settings: topics, brokers and groups; and which of them a request may name."""

from __future__ import annotations

from typing import Final

from ottla.controller.interface import ConfigResult, ConfigTarget, ConfigTargetType
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import client_id_to_controller
from ottla.model import ErrorCode, topic_name_fault
from ottla.security.authorizer import Operation, Resource

#: The resource that stands for all brokers.
ALL_BROKERS: Final = ""
#: What of a name that a client made up stands in a message.
_NAME_SHOWN_MAX: Final = 300

_TYPES: Final = frozenset(ConfigTargetType)


def resource(type_code: int, name: str) -> ConfigTarget | ConfigResult:
    """The resource that a request names, or why there is none such."""
    if type_code not in _TYPES:
        unknown = ConfigTarget(type_code, name)  # type: ignore[arg-type] # answered as it came
        return ConfigResult(unknown, ErrorCode.INVALID_REQUEST, f"Unknown resource type {type_code}")
    return ConfigTarget(ConfigTargetType(type_code), name)


def refusal(call: Call, asked: ConfigTarget, operation: Operation) -> ConfigResult | None:
    """Why this client may not read or change the resource, or None."""
    describes = operation is Operation.DESCRIBE_CONFIGS
    if asked.type == ConfigTargetType.TOPIC:
        return _refused_topic(call, asked, operation, describes=describes)
    if asked.type == ConfigTargetType.GROUP:
        return _refused_group(call, asked, operation, describes=describes)
    return _refused_broker(call, asked, operation, describes=describes)


def _refused_topic(call: Call, asked: ConfigTarget, operation: Operation, *, describes: bool) -> ConfigResult | None:
    name = asked.name
    if not call.allowed_on_topic(operation, name):
        return ConfigResult(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if not name and not describes:
        return ConfigResult(asked, ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = topic_name_fault(name)
    if fault is not None:
        return ConfigResult(asked, ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
    if describes and name not in call.services.metadata.topics:
        return ConfigResult(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    # What is to be changed the controller looks for: this broker may not have heard of it yet.
    return None


def _refused_group(call: Call, asked: ConfigTarget, operation: Operation, *, describes: bool) -> ConfigResult | None:
    if not call.allowed(operation, Resource.GROUP, asked.name):
        return ConfigResult(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
    if asked.name:
        return None
    message = "Group name must not be empty" if describes else "Default group resources are not allowed."
    return ConfigResult(asked, ErrorCode.INVALID_REQUEST, message)


def _refused_broker(call: Call, asked: ConfigTarget, operation: Operation, *, describes: bool) -> ConfigResult | None:
    if not call.allowed_on_cluster(operation):
        return ConfigResult(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    own = str(call.services.broker_id)
    if asked.name in (ALL_BROKERS, own):
        return None
    shown = asked.name[:_NAME_SHOWN_MAX]
    if not _is_number(asked.name):
        kind = "Broker" if describes else "Node"
        return ConfigResult(asked, ErrorCode.INVALID_REQUEST, f"{kind} id must be an integer, but it is: {shown}")
    if call.client_id == client_id_to_controller(int(asked.name)):
        return None  # it was asked for at that broker, which passes it on to the controller
    others = " or empty string" if describes else ""
    message = f"Unexpected broker id, expected {own}{others}, but received {shown}"
    return ConfigResult(asked, ErrorCode.INVALID_REQUEST, message)


def _is_number(text: str) -> bool:
    """Whether Java would read it as an `int`."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and -(2**31) <= int(text) < 2**31
