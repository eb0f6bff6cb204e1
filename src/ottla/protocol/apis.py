"""Which APIs there are, in which versions. Cheap to import: a message's module is loaded when its API is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple, cast

from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.catalogue import ROWS, ApiKey
from ottla.protocol.message import Message

__all__ = ["APIS", "ApiInfo", "ApiKey", "api", "request_header_version", "response_header_version"]


class ApiInfo(NamedTuple):
    """One API. `min` to `max` is what Kafka 4.3 advertises, or Kafka 3.9 for the APIs of its ZooKeeper mode."""

    key: int
    name: str
    module: str
    min: int
    max: int
    #: The first version with compact lengths and tagged fields; None if there is none.
    flexible_from: int | None
    #: Sent by brokers only: never advertised to clients for its own sake, never sent by one. For clusters of several
    #: brokers, where a principal must have a right to them.
    inter_broker: bool

    def request_type(self) -> type[Message]:
        return self._message("Request")

    def response_type(self) -> type[Message]:
        return self._message("Response")

    def supports(self, version: int) -> bool:
        return self.min <= version <= self.max

    def _message(self, kind: str) -> type[Message]:
        module = import_module(f"ottla.protocol.generated.{self.module}")
        return cast("type[Message]", getattr(module, self.name + kind))


#: All APIs by key.
APIS: Final[dict[int, ApiInfo]] = {row[0]: ApiInfo(*row) for row in ROWS}


def api(key: int) -> ApiInfo:
    """The API with this key; DecodeError where there is none, since keys come from the wire."""
    try:
        return APIS[key]
    except KeyError:
        raise DecodeError(f"there is no API with key {key}") from None


def request_header_version(key: int, version: int) -> int:
    """Header 2 in flexible versions, 1 before, and 0 (without a client id) for the first ControlledShutdown."""
    flexible_from = api(key).flexible_from
    if flexible_from is not None and version >= flexible_from:
        return 2
    return 0 if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0 else 1


def response_header_version(key: int, version: int) -> int:
    """Header 1 (tagged fields) in flexible versions, except for ApiVersions: its reader may not know the version."""
    flexible_from = api(key).flexible_from
    return 1 if flexible_from is not None and version >= flexible_from and key != ApiKey.API_VERSIONS else 0
