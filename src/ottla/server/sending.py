"""The end of a round for those it has something for: answers leave, and sockets that take more of long ones get it.

To send takes microseconds, but milliseconds where the system hands the bytes straight to a process of the same machine
that has no room for them. So a round sends for so long and no longer; what is left then leaves when the network says
again that its socket takes it. Long answers, out of files or out of memory, come behind all short ones, each socket a
turn's worth at a time, or a crowd that fetches slowly would hold up everybody. Short ones that were put off come first:
they have waited, and must not stand behind long ones that were put off with them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ottla.ports import Clock
from ottla.server.answer_memory import AnswerMemory
from ottla.server.connection import Connection

#: What sending may take at the end of a round.
SENDING_MS: Final = 10


class Sending:
    def __init__(self, clock: Clock) -> None:
        #: What clients have not taken of large answers.
        self.memory: AnswerMemory | None = None
        self._clock = clock
        self._ends_ms = 0
        #: Connections whose sockets take what is left of a short answer, in the order in which they said so.
        self.short: OrderedDict[Connection, None] = OrderedDict()
        #: The same of long ones.
        self.long: OrderedDict[Connection, None] = OrderedDict()

    def begin(self) -> None:
        self._ends_ms = self._clock.monotonic_ms() + SENDING_MS

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic_ms() >= self._ends_ms

    def takes_more(self, connection: Connection) -> None:
        (self.short if connection.owes_little else self.long)[connection] = None

    def next_short(self) -> Connection | None:
        """Whose turn it is to send what is left of a short answer."""
        return _first(self.short)

    def next_long(self) -> Connection | None:
        """Whose turn it is to go on with a long answer."""
        return _first(self.long)

    def go_on(self, connection: Connection) -> None:
        """OSError: the peer has gone."""
        connection.send_unsent()
        self.note(connection)

    def send(self, connection: Connection) -> None:
        """What was answered in this round; long answers wait for `next`. OSError: the peer has gone."""
        if connection.send_answers():
            self.long[connection] = None

    def put_off(self, connection: Connection) -> None:
        """There is no time left: the answers leave when the network says that they may."""
        connection.put_off_answers()
        self.note(connection)

    def note(self, connection: Connection) -> None:
        if self.memory is not None:
            self.memory.note(connection, connection.outgoing_bytes())

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        self.short.pop(connection, None)
        self.long.pop(connection, None)
        self.note(connection)


def _first(line: OrderedDict[Connection, None]) -> Connection | None:
    while line:
        connection, _ = line.popitem(last=False)
        if connection.unsent and not connection.closed:
            return connection
    return None
