"""A commit that is sent again and again with other offsets: what is kept of it with its connection.

Most clients commit now and then, and each has a connection. Of the first commit of its kind only the frame is kept;
when one like it follows, that becomes a memo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.protocol.fields import INT32

if TYPE_CHECKING:
    from ottla.groups.offsets.repeated import RepeatedCommit
    from ottla.protocol.hot.commit import CommitShape

#: A longer request is not remembered. One of this size names a group, a member and twenty partitions; its memo takes
#: nine kilobytes; that of a request with a single partition takes less than two.
REMEMBERED_BYTES_MAX: Final = 512
#: What its records take at the most, in each of which the group and the topic are named.
RECORDS_BYTES_MAX: Final = 2 * 1024
#: Requests of the same size, one after another, that may be unlike each other: a client takes turns between some kinds.
UNLIKE_MAX: Final = 2
#: Requests of the same size that are not looked at after more than that, or after one of which no memo can be made.
LEFT_ALONE: Final = 64

_pack_correlation: Final = INT32.pack


class CommitSeed:
    """The last commit of a connection, of which there is no memo."""

    __slots__ = ("frame", "left_alone", "size", "unlike", "version")

    def __init__(self, frame: bytes, version: int, *, unlike: int = 0, left_alone: int = 0) -> None:
        self.version = version
        self.size = len(frame)
        #: How many of the same size came before it, none of which was like the next.
        self.unlike = unlike
        #: So many of the same size are not looked at, and the frame is not kept.
        self.left_alone = left_alone
        self.frame = b"" if left_alone else frame


class CommitMemo:
    """What was understood of a request, and the answer where it is committed."""

    __slots__ = (
        "_before",
        "_behind",
        "client_id",
        "commit",
        "offsets",
        "policy",
        "seen_generation",
        "shape",
        "size",
        "version",
    )

    def __init__(
        self,
        version: int,
        shape: CommitShape,
        commit: RepeatedCommit,
        answer: tuple[bytes, bytes],
        client_id: str | None,
        policy: int,
        generation: int,
    ) -> None:
        self.version = version
        self.size = shape.size
        self.shape = shape
        self.offsets = shape.offsets
        self.commit = commit
        #: For quotas, which are asked where the policy changes while a commit is written.
        self.client_id = client_id
        #: The number of the policy that allowed it.
        self.policy = policy
        #: The last of the metadata under which the topics and partitions were there, and the group in this shard.
        self.seen_generation = generation
        self._before, self._behind = answer

    def answer(self, correlation: int) -> bytes:
        """All of it is committed."""
        return self._before + _pack_correlation(correlation) + self._behind
