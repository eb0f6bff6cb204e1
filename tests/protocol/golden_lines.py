"""Bytes that Apache Kafka's own encoder made, with its JSON of the same messages: see java/Golden.java."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ottla.protocol.apis import APIS, ApiInfo

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "java" / "Golden.java"
FILES = {"4.3": HERE / "golden" / "kafka-4.3.txt.gz", "3.9": HERE / "golden" / "kafka-3.9.txt.gz"}

#: What Kafka 4.3 can no longer encode: the requests between brokers and their controller in ZooKeeper mode.
_ONLY_39 = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown", "AlterPartition", "Envelope"}


class Body(NamedTuple):
    name: str
    kind: str
    version: int
    variant: str
    raw: bytes
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.name}{self.kind}-{self.version}-{self.variant}"


class Header(NamedTuple):
    name: str
    key: int
    version: int
    request: bytes
    response: bytes


def wanted(kafka: str) -> str:
    """What Golden.java is to encode with this Kafka, as its input."""
    rows: list[tuple[ApiInfo, int, int]] = []
    for api in APIS.values():
        if api.name == "Produce":
            rows.append((api, 0, 2) if kafka == "3.9" else (api, 3, api.max))
        elif (api.name in _ONLY_39) == (kafka == "3.9"):
            rows.append((api, api.min, api.max))
    return "".join(f"{api.name} {api.key} {first} {last}\n" for api, first, last in rows)


@cache
def lines() -> tuple[str, ...]:
    found: list[str] = []
    for path in FILES.values():
        found += gzip.decompress(path.read_bytes()).decode().splitlines()
    return tuple(found)


@cache
def bodies() -> tuple[Body, ...]:
    found = []
    for line in lines():
        words = line.split("\t")
        if words[0] == "body":
            _, name, kind, version, variant, raw, fields = words
            found.append(Body(name, kind, int(version), variant, bytes.fromhex(raw), json.loads(fields)))
    return tuple(found)


@cache
def headers() -> tuple[Header, ...]:
    found = []
    for line in lines():
        words = line.split("\t")
        if words[0] == "header":
            found.append(Header(words[1], int(words[2]), int(words[3]), *map(bytes.fromhex, words[4:])))
    return tuple(found)
