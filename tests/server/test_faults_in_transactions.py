"""A fault of ours in a step of a transaction costs its client a connection at the most, and no transaction hangs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from tests.handlers.frames import fetch, list_offset, values
from tests.handlers.transactional import TransactionalClient
from tests.handlers.transactions.conftest import transactional_broker
from tests.searches import slow
from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer
from tests.server.planted import Plant

from ottla.model import ErrorCode

LATEST, COMMITTED = -1, 1
TOPIC = "t"
MARKERS, RECOGNISED = "ottla.handlers.transactions.markers", "ottla.handlers.transactions.recognised"
SITES: Final = (
    (MARKERS, "TransactionMarkers.stage"),
    (MARKERS, "TransactionMarkers._stage_all"),
    (MARKERS, "TransactionMarkers._stage"),
    (MARKERS, "TransactionMarkers.answer"),
    (MARKERS, "TransactionMarkers._answer_or_park"),
    (RECOGNISED, "RecognisedTransactions.serve_adds"),
    (RECOGNISED, "RecognisedTransactions.serve_ends"),
    (RECOGNISED, "RecognisedTransactions._noted"),
    (RECOGNISED, "RecognisedTransactions._understood"),
    ("ottla.handlers.transactions.memo", "TransactionMemo.answer"),
    ("ottla.handlers.produce.handler", "ProduceHandler._in_transaction"),
    ("ottla.handlers.produce.memo", "ProduceMemo.stage_first"),
)


class Writer:
    """Writes one transaction after the other; a client that has lost its connection begins anew, which aborts."""

    def __init__(self, broker: BrokerThread) -> None:
        self._broker = broker
        self._client: TransactionalClient | None = None
        self.written = 0
        self.committed: list[bytes] = []
        #: An end was asked for, and its answer did not come.
        self.in_doubt: list[bytes] = []

    def once(self) -> bool:
        self.written += 1
        value = b"%d" % self.written
        is_asked = False
        try:
            client = self._connected()
            if client.add(TOPIC, 0) != [ErrorCode.NONE] or client.produce(value, TOPIC).error_code:
                self._leave()
                return False
            is_asked = True
            assert client.end(commits=True) == ErrorCode.NONE
        except (EOFError, ConnectionError):
            self._leave()
            self.in_doubt += [value] * is_asked
            return False
        self.committed.append(value)
        return True

    def _connected(self) -> TransactionalClient:
        if self._client is None:
            client = TransactionalClient(self._broker.connect())
            client.init()
            self._client = client
        return self._client

    def _leave(self) -> None:
        if self._client is not None:
            self._client.peer.socket.close()
        self._client = None


def is_open(peer: Peer) -> bool:
    end, stable = (list_offset(peer, LATEST, TOPIC, isolation_level=level).offset for level in (0, COMMITTED))
    return bool(stable < end)


def every_fault() -> list[object]:
    """`./test` has each step at one of its ends, in turns, and `./test --slow` at the other."""
    cases = []
    for number, site in enumerate(SITES):
        for behind in (False, True):
            case = pytest.param(site, behind, id=f"{site[1]}-{'behind' if behind else 'before'}")
            cases.append(case if behind == (number % 2 == 0) else slow(case))
    return cases


@pytest.mark.parametrize(("site", "behind"), every_fault())
def test_no_transaction_hangs(
    site: tuple[str, str], behind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(*site, behind=behind)
    plant.put_in(monkeypatch)
    with transactional_broker(tmp_path) as broker:
        broker.create_topic(TOPIC)
        writer = Writer(broker)
        assert all(writer.once() for _ in range(4))
        plant.calls_left = 0
        for _ in range(6):
            writer.once()
        assert plant.met == 1 or site[1].endswith(("_noted", "_understood"))
        deadline = time.monotonic() + SECONDS_MAX
        while not writer.once():
            assert time.monotonic() < deadline, "nothing can be written any more"
        with broker.connect() as peer:
            while (
                list_offset(peer, LATEST, TOPIC, isolation_level=COMMITTED).offset
                < list_offset(peer, LATEST, TOPIC).offset
            ):
                assert time.monotonic() < deadline, "a transaction hangs"
            answer = fetch(peer, topic=TOPIC, isolation_level=COMMITTED)
            found = [value for value in values(answer) if value is not None and value.isdigit()]
        assert broker.look(lambda each: each.lost) is None
        seen = set(found)
        assert len(seen) == len(found)
        assert set(writer.committed) <= seen
        # What was aborted is among what was fetched, and named as such; what is in doubt may be either.
        if not answer.aborted_transactions:
            assert seen <= {*writer.committed, *writer.in_doubt}
