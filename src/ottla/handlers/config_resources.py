"""The resources that have settings: topics and brokers; and which of them a request may name."""

from __future__ import annotations

from typing import Final

from ottla.controller.interface import ConfigResource, ConfigResult, ResourceType
from ottla.handlers.call import Call
from ottla.model import ErrorCode, topic_name_fault
from ottla.security.authorizer import Operation

#: The resource that stands for all brokers.
ALL_BROKERS: Final = ""


def resource(type_code: int, name: str) -> ConfigResource | ConfigResult:
    """The resource that a request names, or why there is none such."""
    if type_code not in (ResourceType.TOPIC, ResourceType.BROKER):
        unknown = ConfigResource(type_code, name)  # type: ignore[arg-type] # told back as it came
        return ConfigResult(unknown, ErrorCode.INVALID_REQUEST, f"Unexpected resource type {type_code}.")
    return ConfigResource(ResourceType(type_code), name)


def refusal(call: Call, asked: ConfigResource, operation: Operation) -> ConfigResult | None:
    """Why this client may not read or change the resource, or None."""
    if asked.type == ResourceType.TOPIC:
        if not call.allowed_on_topic(operation, asked.name):
            return ConfigResult(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        fault = topic_name_fault(asked.name)
        if fault is not None:
            return ConfigResult(asked, ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
        if asked.name not in call.services.metadata.topics:
            return ConfigResult(
                asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.name}' does not exist."
            )
        return None
    if not call.allowed_on_cluster(operation):
        return ConfigResult(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    own = str(call.services.broker_id)
    if asked.name not in (ALL_BROKERS, own):
        return ConfigResult(
            asked,
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {own} or empty string, but received {asked.name}",
        )
    return None
