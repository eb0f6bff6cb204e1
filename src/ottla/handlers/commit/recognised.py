"""OffsetCommit (8) that is like the last one of its connection, served without being decoded.

The shard and the group are asked by themselves whether they still are what they were, the journal as it is written to.
"""

from __future__ import annotations

from functools import partial

from ottla.coordinators.caller import Now
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.calls.recognised import Recognised
from ottla.handlers.commit.memo import LEFT_ALONE, REMEMBERED_BYTES_MAX, UNLIKE_MAX, CommitMemo, CommitSeed
from ottla.handlers.routes import OFFSET_COMMIT
from ottla.model import ErrorCode
from ottla.protocol.hot.commit import CommitShape, shape_of


class RecognisedCommits(Recognised[CommitMemo]):
    def __init__(self, services: Services) -> None:
        super().__init__(services, OFFSET_COMMIT)

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
            written = partial(self._answer, peer, memo, OFFSET_COMMIT, correlation, now.monotonic_ms)
            if memo.commit.write(offsets, now, written):
                peer.answer_later(None)
                return True
        elif end - start <= REMEMBERED_BYTES_MAX and self._policy.remembers:
            self._note(peer, bytes(buffer.view[start:end]), version)
        else:
            peer.commit_memo = None
        return False

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

    def _general_answer(self, peer: Peer, memo: CommitMemo, key: int, correlation: int, error: ErrorCode) -> bytes:
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
