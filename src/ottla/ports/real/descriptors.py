"""How many files this process may have open, and what of that is for connections.

Everybody who connects takes a descriptor, and a log that cannot open its next segment takes no records. So the limit is
raised as far as this process may by itself, and a share of it is kept back for storage. The system gives out the lowest
free number: one that lies in the share shows that so many are in use, for whatever, and nobody has to count.
"""

from __future__ import annotations

from typing import Final

from ottla import logs

log_event = logs.logger("server")

#: As far as the limit is raised where the hard one is infinite, or nearly so: more than a broker can serve.
LIMIT_MAX: Final = 1 << 20
#: Kept back for storage at least, where that leaves half of the limit: twice what one log directory keeps open.
KEPT_BACK_MIN: Final = 1024


def raise_limit() -> None:
    """Raises the soft limit on open files to the hard one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # macOS has a bound of its own, which no limit shows
        log_event.warning("the limit on open files stays as it is", files=soft, wanted=wanted, reason=error)
        return
    log_event.info("the limit on open files is raised", files=wanted, before=soft)


def end_of_connections() -> int:
    """The first descriptor that is too high for a connection: from there on they are storage's."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = LIMIT_MAX
    return limit - max(limit // 4, min(limit // 2, KEPT_BACK_MIN))
