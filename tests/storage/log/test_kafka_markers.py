"""Markers that Apache Kafka wrote, made again: the same bytes."""

from __future__ import annotations

import pytest
from tests.storage.log.test_kafka_log import GOLDEN

from ottla.coordinators.journal import EndMarker
from ottla.records.batch import BatchHeader, parse_header
from ottla.replication.journal_producers import end_batch
from ottla.storage.log.markers import read_marker

#: Where the checksum begins: what stands before is the offset, and what a leader stamps.
_SUMMED_WITH_CRC = 17


def markers() -> list[tuple[BatchHeader, bytes]]:
    found = []
    for path in sorted(GOLDEN.glob("*/*.log")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            header = parse_header(data, at)
            if header.is_control:
                found.append((header, data[at : at + header.size]))
            at += header.size
    return found


@pytest.mark.parametrize("place", range(4))
def test_a_marker_is_kafkas_byte_for_byte(place: int) -> None:
    header, stored = markers()[place]
    said = read_marker(stored)
    assert said is not None
    end = EndMarker(header.producer_id, header.producer_epoch, said.coordinator_epoch, is_commit=not said.aborts)
    made = end_batch(end, header.max_timestamp)
    assert made[_SUMMED_WITH_CRC:] == stored[_SUMMED_WITH_CRC:]
    assert made[8:12] == stored[8:12]
