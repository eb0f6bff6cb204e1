"""A Fetch whose time has come: answered at once where all of it is in memory, else when workers have brought it there.

settle ─┬─ the logs lack where their records lie ──workers read that──▶ it is looked at again
        ├─ some records are cold ──a worker reads them through──▶ answered
        └─ else ──▶ answered
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer
from ottla.handlers.fetch.reading import PartitionRead, let_go
from ottla.handlers.fetch.waiting import FetchWait
from ottla.storage.log.cold_reads import MissingRead, Warming


class FetchSettling:
    def __init__(
        self,
        services: Services,
        answer: Callable[[FetchWait, list[PartitionRead]], None],
        end: Callable[[Peer, Exception], None],
    ) -> None:
        """`end` is called with a fault of ours that comes outside of the round, and with whose request it ends."""
        self._services = services
        self._answer = answer
        self._end = end

    def settle(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        """Answers, and lets the connection go on; what is not in memory is brought there by a worker first."""
        missing = [read.missing for read in reads if read.missing is not None]
        if missing:
            self._read_cold(wait, missing)
            return
        cold = [read.slice for read in reads if read.slice is not None and read.is_cold]
        if not cold:
            self._answer(wait, reads)
            return
        peer = wait.peer
        self._wait_for_workers(wait)
        warming = Warming(cold)
        try:
            # What is warm waits as well, and its log may be deleted or move meanwhile.
            for read in reads:
                read.keep()
            future = self._services.workers.thread(warming.run)
        except BaseException:
            warming.release()
            let_go(reads)
            raise

        def done(_: object) -> None:
            try:
                if not peer.closed:
                    self._answer_warm(wait, reads)
            finally:
                # Not before: of a log that was deleted or has moved meanwhile nobody else keeps the files open.
                warming.release()
                let_go(reads)

        future.add_done_callback(done)

    def _wait_for_workers(self, wait: FetchWait) -> None:
        self._services.metrics.cold_reads.value += 1
        if wait.began_ms is None:
            wait.began_ms = self._services.round.began_ms
        wait.peer.answer_later(wait.cancel)

    def _read_cold(self, wait: FetchWait, missing: Sequence[MissingRead]) -> None:
        """Has workers read where the logs' records lie; then it is looked at again."""
        self._wait_for_workers(wait)

        def read() -> None:
            if wait.peer.closed:
                return
            try:
                wait.go_on_warm(missing)
            except Exception as fault:
                self._end(wait.peer, fault)

        self._services.replicas.cold_reads.read(missing, read)

    def _answer_warm(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        try:
            self._answer(wait, reads)
        except Exception as fault:
            self._end(wait.peer, fault)
