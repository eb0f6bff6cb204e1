"""Produce, WriteTxnMarkers and TxnOffsetCommit in transactions: each question has the code that Kafka answered."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import WatchServer
from tests.interop.conftest import new_broker
from tests.interop.transaction_answers import PROPERTIES
from tests.interop.transactional_writes import ANSWERS, conversation


def test_every_write_is_answered_as_kafka_does(tmp_path: Path, watch_server: WatchServer) -> None:
    broker = new_broker(tmp_path, PROPERTIES)
    with watch_server(broker.server), broker.server:
        assert conversation(broker.bootstrap) == ANSWERS.read_text().splitlines()
