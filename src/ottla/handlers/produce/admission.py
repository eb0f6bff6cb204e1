"""Whether a client may produce to a topic, and how long it is to hold back afterwards."""

from __future__ import annotations

from functools import partial

from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.produce.waiting import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from ottla.model import INTERNAL_TOPICS, ErrorCode
from ottla.protocol.header import decode_request_header
from ottla.protocol.primitives import Buffer
from ottla.security.authorizer import Operation, Resource
from ottla.security.quotas import Use


class Admission:
    def __init__(self, services: Services) -> None:
        self._metadata = services.metadata
        self._authorizer = services.authorizer
        self._quotas = services.quotas
        self._policy = services.policy

    def topic(self, topic: str | bytes, peer: Peer) -> tuple[str, ErrorCode | None]:
        """A topic's name, and why this client may write nothing to it."""
        if isinstance(topic, bytes):
            known = self._metadata.topic_name(topic)
            if known is None:
                return "", ErrorCode.UNKNOWN_TOPIC_ID
            name = known
        else:
            name = topic
        if not self._allowed(peer, Resource.TOPIC, name):
            return name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return name, None

    @staticmethod
    def rule_against(topic: str, acks: int) -> ErrorCode | None:
        """Why nobody may write to a topic like this; said behind what its partition and its transaction say."""
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            return ErrorCode.INVALID_REQUIRED_ACKS
        return ErrorCode.INVALID_TOPIC_EXCEPTION if topic in INTERNAL_TOPICS else None

    def may_use(self, peer: Peer, transactional_id: str | None) -> bool:
        return transactional_id is not None and self._allowed(peer, Resource.TRANSACTIONAL_ID, transactional_id)

    def _allowed(self, peer: Peer, resource: Resource, name: str) -> bool:
        authorizer = self._authorizer
        return authorizer.allows_all or authorizer.allowed(peer.principal, peer.host, Operation.WRITE, resource, name)

    def is_free(self, peer: Peer, buffer: RequestBuffer, start: int, end: int) -> bool:
        """Whether requests like this one need not be counted, for now."""
        if self._quotas.unlimited:
            return True
        header, _ = decode_request_header(bytes(buffer.view[start:end]))
        return self._policy.is_free(peer.principal, header.client_id)

    def throttle_ms(self, peer: Peer, buffer: RequestBuffer, start: int, end: int, acks: int, now_ms: int) -> int:
        """How long the client is to hold back after this request."""
        if self._quotas.unlimited:
            return 0
        return self.throttle_of_frame_ms(peer, bytes(buffer.view[start:end]), acks, now_ms)

    def throttle_of_frame_ms(self, peer: Peer, frame: Buffer, acks: int, now_ms: int) -> int:
        if self._quotas.unlimited:
            return 0
        header, _ = decode_request_header(frame, 0)
        throttle = partial(self._quotas.throttle_ms, peer.principal, header.client_id)
        # Without an answer there is no place to say it, so that Kafka does not count such a request's time.
        for_time_ms = 0 if acks == ACKS_NONE else throttle(Use.REQUEST_TIME, 0.0, now_ms)
        return max(throttle(Use.PRODUCED_BYTES, len(frame), now_ms), for_time_ms)
