"""AddPartitionsToTxn (24) and EndTxn (26) like the last one of their connection, served without being decoded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.coordinators.caller import Now
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.calls.recognised import Recognised
from ottla.handlers.routes import ADD_PARTITIONS_TO_TXN, END_TXN
from ottla.handlers.transactions.memo import REMEMBERED_BYTES_MAX, TransactionMemo, TransactionMemos
from ottla.model import ErrorCode

if TYPE_CHECKING:
    from ottla.transactions.asked import ProducerAnswer

#: The newest versions whose requests repeat: of one transaction, whose producer keeps its epoch.
NEWEST: Final = {ADD_PARTITIONS_TO_TXN: 3, END_TXN: 4}


class RecognisedTransactions(Recognised[TransactionMemo]):
    def __init__(self, services: Services) -> None:
        super().__init__(services, *NEWEST)

    # Inside a round. False where the request is to be served as any other; then nothing of it has happened.

    def serve_adds(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> bool:
        memos = peer.transaction_memos
        memo = None if memos is None else memos.adds
        if memo is None or not memo.is_like(buffer.data, start, end, version):
            if (noted := self._noted(buffer, start, end, ADD_PARTITIONS_TO_TXN, version)) is not None:
                _memos_of(peer).adds = noted
            return False
        asked = memo.adds if self._is_present(memo) else self._understood(peer, memo, ADD_PARTITIONS_TO_TXN).adds
        if asked is None:
            return False
        peer.answer_later(None)
        now = Now(self._round.wall_ms, self._round.began_ms)
        added = partial(self._answer, peer, memo, ADD_PARTITIONS_TO_TXN, correlation, now.monotonic_ms)
        self._services.transactions.add_partitions_when_at_rest(now, asked, added)
        return True

    def serve_ends(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> bool:
        memos = peer.transaction_memos
        memo = None if memos is None else memos.ends
        if memo is None or not memo.is_like(buffer.data, start, end, version):
            if (noted := self._noted(buffer, start, end, END_TXN, version)) is not None:
                _memos_of(peer).ends = noted
            return False
        asked = memo.ends if self._is_present(memo) else self._understood(peer, memo, END_TXN).ends
        if asked is None:
            return False
        peer.answer_later(None)
        now = Now(self._round.wall_ms, self._round.began_ms)
        ended = partial(self._ended, peer, memo, correlation, now.monotonic_ms)
        self._services.transactions.end(now, asked, ended)
        return True

    def _is_present(self, memo: TransactionMemo) -> bool:
        return memo.policy == self._policy.number and memo.seen_generation == self._metadata.generation

    def _noted(self, buffer: RequestBuffer, start: int, end: int, key: int, version: int) -> TransactionMemo | None:
        """What is kept of a request that was not recognised; None where it is not like any that comes again."""
        if end - start > REMEMBERED_BYTES_MAX or version > NEWEST[key] or not self._policy.remembers:
            return None
        return TransactionMemo(bytes(buffer.view[start:end]), version)

    def _understood(self, peer: Peer, memo: TransactionMemo, key: int) -> TransactionMemo:
        # What it needs is loaded with the first request of its kind.
        from ottla.handlers.transactions.growing import understand

        understand(self._services, peer, memo, key)
        return memo

    # -- answers

    def _ended(
        self, peer: Peer, memo: TransactionMemo, correlation: int, began_ms: int, answer: ProducerAnswer
    ) -> None:
        # Up to these versions nothing but the error is answered.
        self._answer(peer, memo, END_TXN, correlation, began_ms, answer.error)

    def _general_answer(
        self, peer: Peer, memo: TransactionMemo, key: int, correlation: int, error: ErrorCode
    ) -> bytes | bytearray:
        from ottla.handlers.transactions.growing import answer_of

        return answer_of(self._services, peer, memo, key, correlation, error)


def _memos_of(peer: Peer) -> TransactionMemos:
    memos = peer.transaction_memos
    if memos is None:
        memos = peer.transaction_memos = TransactionMemos()
    return memos
