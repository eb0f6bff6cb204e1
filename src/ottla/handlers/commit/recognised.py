"""OffsetCommit (8) that is like the last one of its connection, served without being decoded.

What the request says is known then, and what the answer is. All that may have changed meanwhile is asked as ever: the
policy and the metadata by their numbers, the shard and the group by themselves, the journal as it is written to.
"""

from __future__ import annotations

import traceback
from functools import partial
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.commit.memo import LEFT_ALONE, REMEMBERED_BYTES_MAX, UNLIKE_MAX, CommitMemo, CommitSeed
from ottla.handlers.routes import OFFSET_COMMIT
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.hot.commit import CommitShape, shape_of

log_event = logs.logger("handlers")

_NAME: Final = api(OFFSET_COMMIT).name


class RecognisedCommits:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._round = services.round
        self._clock = services.clock
        self._metrics = services.metrics
        #: Memos are void once its number is another.
        self._policy = services.policy
        #: With another generation of it memos are compared with what it says.
        self._metadata = services.metadata

    def serve(self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int) -> bool:
        """Inside a round. False where the request is to be served as any other; then nothing of it has happened."""
        memo = peer.commit_memo
        if (
            type(memo) is CommitMemo
            and memo.size == end - start
            and memo.version == version
            and memo.policy == self._policy.number
            and not memo.commit.state.is_over
            and (offsets := memo.offsets(buffer.data, start)) is not None
            and (memo.seen_generation == self._metadata.generation or self._holds(memo))
        ):
            now = Now(self._round.wall_ms, self._round.began_ms)
            # It is never called before `write` has returned.
            written = partial(self._written, peer, memo, correlation, now.monotonic_ms)
            if memo.commit.write(offsets, now, written):
                peer.answer_later(None)
                return True
        elif end - start <= REMEMBERED_BYTES_MAX and self._policy.remembers:
            self._note(peer, bytes(buffer.view[start:end]), version)
        else:
            peer.commit_memo = None
        return False

    def _written(self, peer: Peer, memo: CommitMemo, correlation: int, began_ms: int, error: ErrorCode) -> None:
        if peer.closed:
            return
        try:
            if error or memo.policy != self._policy.number:
                answer = self._general_answer(peer, memo, correlation, error)
            else:
                answer = memo.answer(correlation)
            now_ms = self._clock.monotonic_ms()
            if began_ms == self._round.began_ms:
                peer.finish_with(answer, now_ms)
            else:
                # A crowd may have waited for the same replica: its answers have the time of a round's end.
                peer.answer(answer)
                peer.finish()
            self._metrics.request(OFFSET_COMMIT, _NAME, now_ms - began_ms)
        except Exception as fault:
            # Its client asks again.
            log_event.error("a request failed", api=OFFSET_COMMIT, error="".join(traceback.format_exception(fault)))
            peer.abort()

    def _note(self, peer: Peer, frame: bytes, version: int) -> None:
        """What is kept of a request that was not recognised."""
        last = peer.commit_memo
        if last is None or last.size != len(frame) or last.version != version:
            peer.commit_memo = CommitSeed(frame, version)
            return
        shape: CommitShape | None
        if isinstance(last, CommitMemo):
            shape, unlike = last.shape, 1
        elif last.left_alone:
            last.left_alone -= 1
            return
        else:
            shape, unlike = shape_of(last.frame, version), last.unlike + 1
        if shape is not None and shape.offsets(frame, 0) is not None:
            peer.commit_memo = self._grown(peer, frame, version, shape)
        elif unlike > UNLIKE_MAX:
            peer.commit_memo = CommitSeed(frame, version, left_alone=LEFT_ALONE)
        else:
            peer.commit_memo = CommitSeed(frame, version, unlike=unlike)

    def _general_answer(self, peer: Peer, memo: CommitMemo, correlation: int, error: ErrorCode) -> bytes:
        from ottla.handlers.commit.growing import answer_of

        return answer_of(self._services, peer, memo, correlation, error)

    def _holds(self, memo: CommitMemo) -> bool:
        """What is remembered of the metadata is compared with them, where they have changed."""
        from ottla.handlers.commit.growing import holds

        return holds(self._services, memo)

    def _grown(self, peer: Peer, frame: bytes, version: int, shape: CommitShape) -> CommitMemo | CommitSeed:
        # What it needs of groups takes forty milliseconds to import, which a broker without groups starts without.
        from ottla.handlers.commit.growing import grown

        memo = grown(self._services, peer, frame, version, shape)
        return memo or CommitSeed(frame, version, left_alone=LEFT_ALONE)
