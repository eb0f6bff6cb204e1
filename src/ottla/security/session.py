"""What a connection has shown of itself: whether it may ask, and for whom it speaks.

    OPEN              a listener without authentication: everybody is User:ANONYMOUS
    AUTHENTICATING -> AUTHENTICATED -> EXPIRED -> AUTHENTICATED ...       a listener with it

A session never changes. Its connection enters another (`Connection.enter`), and what was remembered under the one
before ends there: the fast ways ask for one attribute of the connection, `is_open`, and lanes, which ask nothing, are
left. All connections of a listener without authentication share one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ottla.security.principal import ANONYMOUS, Principal


class SessionState(Enum):
    OPEN = "open"
    AUTHENTICATING = "authenticating"
    AUTHENTICATED = "authenticated"
    EXPIRED = "expired"


#: Those whose connections are served; all others may say who they are, and nothing else.
_SERVED: Final = frozenset({SessionState.OPEN, SessionState.AUTHENTICATED})


class Session(NamedTuple):
    #: The listener's name, by which quotas and access lists may differ.
    listener: str
    state: SessionState = SessionState.OPEN
    principal: Principal = ANONYMOUS

    @property
    def is_open(self) -> bool:
        return self.state in _SERVED
