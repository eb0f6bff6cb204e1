"""The transactional ids of a query: `<name>/driver`, and `<name>/<run>/<task>/<attempt>`.

A run's number is drawn: a query that is started again has other ids than the one before, and cannot abort by its mere
beginning what that one has prepared. Within a run the next micro-batch uses the ids again.
"""

from __future__ import annotations

import re
import uuid


def drawn_run() -> str:
    return uuid.uuid4().hex


def driver_id(name: str) -> str:
    return f"{name}/driver"


def task_id(name: str, run: str, task: int, attempt: int) -> str:
    return f"{name}/{run}/{task}/{attempt}"


def task_ids_pattern(name: str) -> str:
    """What matches the ids of a name's tasks, in RE2 and here."""
    return re.escape(name) + "/[0-9a-f]{32}/[0-9]+/[0-9]+"


def is_task_id(name: str, transactional_id: str) -> bool:
    return re.fullmatch(task_ids_pattern(name), transactional_id) is not None
