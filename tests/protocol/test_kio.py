"""A second independent codec, written in Python: kio reads what we wrote, and says it again in the same bytes."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.protocol.random_messages import Kind, kinds, random_message

index = pytest.importorskip("kio.index", reason="kio is not installed")
serial = pytest.importorskip("kio.serial", reason="kio is not installed")
constants = pytest.importorskip("kio.static.constants", reason="kio is not installed")

NAMES = (
    "Produce",
    "Fetch",
    "Metadata",
    "ListOffsets",
    "CreateTopics",
    "JoinGroup",
    "DescribeConfigs",
    "TxnOffsetCommit",
)


def kio_type(kind: Kind) -> Any:
    request = kind.struct.name.endswith("Request")
    which = constants.EntityType.request if request else constants.EntityType.response
    return getattr(index.load_payload_module(kind.schema.api_key, kind.version, which), kind.struct.name)


@pytest.mark.parametrize("name", NAMES)
def test_kio_reads_and_says_our_bytes(name: str) -> None:
    compared = 0
    for kind in kinds():
        if kind.schema.name != name or (name == "Produce" and kind.version < 3):
            continue
        theirs = kio_type(kind)
        read, write = serial.entity_reader(theirs), serial.entity_writer(theirs)
        for seed in range(5):
            raw = random_message(kind, seed, tags=False, modest=True).encode(kind.version)
            entity, end = read(raw, 0)
            assert end == len(raw), (kind.id, seed)
            again = io.BytesIO()
            write(again, entity)
            assert again.getvalue() == raw, (kind.id, seed)
            compared += 1
    assert compared > 0
