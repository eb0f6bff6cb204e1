"""Many members of one classic group: ``python -m bench.group_members PORT GROUP MEMBERS TIMES``, a process of its own.

All of them join, the leader gives each of them a partition, and all of them learn theirs; then all of them join again.
Prints ``ready`` when they are connected, waits for a line, and prints a line with the seconds of each rebalance.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time

from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message

HOST = "127.0.0.1"
#: The last version in which a member is let in without being given its id first.
JOIN_VERSION = 3
SYNC_VERSION = 2
#: What a subscription to one topic and the assignment of one partition take.
SUBSCRIPTION = bytes(40)
ASSIGNMENT = bytes(40)
SESSION_MS = REBALANCE_MS = 60_000


class Member:
    def __init__(self, group: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.group = group
        self.id = ""
        self.reader = reader
        self.writer = writer

    async def ask(self, message: Message, version: int, answer: type[Message]) -> Message:
        header = RequestHeader(api_key=message.API_KEY, api_version=version, correlation_id=1, client_id="member")
        self.writer.write(encode_request(header, message))
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        data = await self.reader.readexactly(size)
        _, _, start = decode_response_header(data, message.API_KEY, version)
        return answer.decode(data, version, start)[0]

    async def rebalance(self) -> None:
        joined = await self.ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
            ),
            JOIN_VERSION,
            JoinGroupResponse,
        )
        assert isinstance(joined, JoinGroupResponse)
        if joined.error_code == 25 and self.id:  # forgotten: it comes as a new one, as real members do
            self.id = ""
            await self.rebalance()
            return
        if joined.error_code:
            raise SystemExit(f"JoinGroup: error {joined.error_code}")
        self.id = joined.member_id
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=ASSIGNMENT) for member in joined.members
        ]
        synced = await self.ask(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=self.id,
                assignments=assignments,
            ),
            SYNC_VERSION,
            SyncGroupResponse,
        )
        assert isinstance(synced, SyncGroupResponse)
        # 27: others have come meanwhile; then all of them join again, as real members do.
        if synced.error_code == 27:
            await self.rebalance()
        elif synced.error_code or synced.assignment != ASSIGNMENT:
            raise SystemExit(f"SyncGroup: error {synced.error_code}, {len(synced.assignment)} bytes")


async def main(port: int, group: str, count: int, times: int) -> None:
    members = [Member(group, *await asyncio.open_connection(HOST, port)) for _ in range(count)]
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    for _ in range(times):
        began = time.monotonic()
        await asyncio.gather(*(member.rebalance() for member in members))
        print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
