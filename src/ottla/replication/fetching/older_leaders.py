"""Fetch, 7 to 11: leaders that know fetch sessions, and neither topics' ids nor where logs part.

Brokers of Kafka 1.1 to 2.6. Before their partitions are fetched they are asked where the last leader epoch ended
(`lookups.py`). Nobody follows such a leader but in the middle of an upgrade, so that the generated codec will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.hot.follower_fetch import AnswerRow, AskedRow, TopicKey

#: The first version with fetch sessions.
OLDEST: Final = 7
_LEADER_EPOCHS: Final = 9
_EMPTY: Final = memoryview(b"")


class OlderFetchRequests:
    """As `FetchRequests`."""

    __slots__ = ("_client_id", "_replica_id", "replica_epoch", "version")

    by_id: Final = False

    def __init__(self, version: int, client_id: str, replica_id: int, replica_epoch: int) -> None:
        self.version = version
        self._client_id = client_id
        self._replica_id = replica_id
        #: Such leaders do not ask for it.
        self.replica_epoch = replica_epoch

    def nothing_new(self, wait_ms: int, min_bytes: int, max_bytes: int, session_id: int, epoch: int) -> bytearray:
        return self.with_changes(wait_ms, min_bytes, max_bytes, session_id, epoch, {}, {})

    def with_changes(
        self,
        wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        session_id: int,
        epoch: int,
        rows: Mapping[TopicKey, Iterable[AskedRow]],
        forgotten: Mapping[TopicKey, list[int]],
    ) -> bytearray:
        request = FetchRequest(
            replica_id=self._replica_id,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(topic=str(topic), partitions=[self._partition(row) for row in partitions])
                for topic, partitions in rows.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=str(topic), partitions=numbers) for topic, numbers in forgotten.items()
            ],
        )
        header = RequestHeader(
            api_key=ApiKey.FETCH, api_version=self.version, correlation_id=0, client_id=self._client_id
        )
        return bytearray(encode_request(header, request))

    def _partition(self, row: AskedRow) -> FetchPartition:
        partition, epoch, offset, _, log_start, bytes_max = row
        return FetchPartition(
            partition=partition,
            current_leader_epoch=epoch if self.version >= _LEADER_EPOCHS else -1,
            fetch_offset=offset,
            log_start_offset=log_start,
            partition_max_bytes=bytes_max,
        )

    def read(self, frame: memoryview) -> tuple[int, int, Iterator[AnswerRow]]:
        _, _, at = decode_response_header(frame, ApiKey.FETCH, self.version)
        answer, _ = FetchResponse.decode(frame, self.version, at)
        return answer.error_code, answer.session_id, _rows(answer)


def _rows(answer: FetchResponse) -> Iterator[AnswerRow]:
    for topic in answer.responses:
        for one in topic.partitions:
            records = _EMPTY if one.records is None else memoryview(one.records)
            found = (one.partition_index, one.error_code, one.high_watermark, one.log_start_offset)
            if one.error_code != ErrorCode.NONE:
                records = _EMPTY
            yield AnswerRow(topic.topic, *found, records, None, None)
