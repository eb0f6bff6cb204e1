"""The answer to OffsetFetch from version 8 on, encoded group by group.

A request may name some hundred thousand groups. Kept as objects until the last of them is known their answers would
take three hundred bytes each, and all of them would be let go in one piece of some ten milliseconds; their bytes take
thirty, and nothing.

    frame   length | correlation id | tagged fields | throttle time | count | group ... | tagged fields
"""

from __future__ import annotations

from array import array
from typing import Final

from ottla.groups.offsets.fetching import fetch_refused
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import ANSWER_BYTES_MAX, Refusals
from ottla.model import ErrorCode
from ottla.protocol.fields import INT32, LENGTH_BYTES
from ottla.protocol.generated.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from ottla.protocol.header import put_response_header
from ottla.protocol.primitives import put_compact_count, read_compact_string
from ottla.steps import PIECE, Steps

#: A response of one group: its throttle time and a count of one byte stand before it, and no tagged fields behind it.
_BEFORE_BYTES: Final = 5
_BEHIND: Final = b"\0"
#: Bytes that are copied in a step.
_COPIED_BYTES: Final = 64 * 1024


class GroupsAnswer:
    __slots__ = ("_call", "_count", "_ends", "_out", "_throttle_at", "last_error")

    def __init__(self, call: Call, count: int) -> None:
        self._call = call
        self._count = count
        self._out, self._throttle_at = self._begun()
        #: Of each group's bytes.
        self._ends = array("q", (len(self._out),))
        #: What the last group was answered.
        self.last_error = 0

    def _begun(self) -> tuple[bytearray, int]:
        """All that stands before the groups, and where the throttle time belongs."""
        out = bytearray(LENGTH_BYTES)
        put_response_header(out, OffsetFetchResponse.API_KEY, self._call.version, self._call.correlation_id)
        throttle_at = len(out)
        out += INT32.pack(0)
        put_compact_count(out, self._count)
        return out, throttle_at

    def add(self, group: OffsetFetchResponseGroup) -> Steps[None]:
        """The next group; one with which the answer would become too long is refused."""
        out = self._out
        start = len(out)
        yield from self._put(out, group)
        self.last_error = group.error_code
        if len(out) > ANSWER_BYTES_MAX and group.topics:
            del out[start:]
            self.last_error = ErrorCode.INVALID_REQUEST
            yield from self._put(out, fetch_refused(group.group_id, ErrorCode.INVALID_REQUEST))
        self._ends.append(len(out))

    def _put(self, out: bytearray, group: OffsetFetchResponseGroup) -> Steps[None]:
        start = len(out)
        yield from OffsetFetchResponse(groups=[group]).encode_steps(out, self._call.version)
        del out[start : start + _BEFORE_BYTES]
        del out[-len(_BEHIND) :]

    def finished(self, refusals: Refusals) -> Steps[bytearray]:
        assert len(self._ends) == self._count + 1
        out = (yield from self._without(refusals)) if refusals else self._out
        out += _BEHIND
        INT32.pack_into(out, self._throttle_at, self._call.throttle_ms())
        INT32.pack_into(out, 0, len(out) - LENGTH_BYTES)
        return out

    def _without(self, refusals: Refusals) -> Steps[bytearray]:
        """The same, with the errors of groups whose offsets are in doubt."""
        before, ends = self._out, self._ends
        out, _ = self._begun()
        copied = ends[0]
        for number in range(self._count):
            error = refusals.of(number)
            if error or ends[number] - copied > _COPIED_BYTES:
                out += before[copied : ends[number]]
                copied = ends[number]
                yield
            if error:
                group_id, _ = read_compact_string(before, ends[number], ends[number + 1])
                yield from self._put(out, fetch_refused(group_id, error))
                copied = ends[number + 1]
            if number % PIECE == 0:
                yield
        out += before[copied:]
        return out
