"""The transactional ids of a query: `<name>/driver`, and of tasks `<name>/<run>/<number>`.

A run is what Spark calls one, from a query's start to its end: a query that is started again has other ids than before,
and cannot abort by its mere beginning what was prepared then. All tasks of a run are told its id, whichever process has
planned their micro-batch.

The number tells all attempts at the tasks of a micro-batch apart: an id that came twice would have the second task
abort what the first has written, and maybe what PREPARED lists. Partition and `attemptNumber` do not, since Spark
begins at 0 again when it attempts a whole stage again (an executor died, and what a shuffle had left there is gone)
while tasks of the stage before still run. `taskAttemptId` does, but grows for ever, and a coordinator keeps an id for a
week. So a micro-batch counts from the last attempt of the one before it: the next one uses much the same ids again.
`docs/decisions/spark-task-ids.md` has what was seen, and what other ways cost.
"""

from __future__ import annotations

import re

from ottla.spark.sink.entries import TaskAttempt


def driver_id(name: str) -> str:
    return f"{name}/driver"


def task_id(name: str, run: str, number: int) -> str:
    return f"{name}/{run}/{number}"


def number_of(attempt: TaskAttempt, last: TaskAttempt | None) -> int:
    """`last` is what the ledger said when the micro-batch was planned: it is the same one for all of its tasks."""
    behind = last.attempt_id if last is not None and last.run == attempt.run else -1
    assert attempt.attempt_id > behind, "what is planned later begins later"
    return attempt.attempt_id - behind


def task_ids_pattern(name: str) -> str:
    """What matches the ids of a name's tasks, in RE2 and here; once they were `<name>/<run>/<task>/<attempt>`."""
    return re.escape(name) + "/[0-9a-f]{32}/[0-9]+(/[0-9]+)?"


def is_task_id(name: str, transactional_id: str) -> bool:
    return re.fullmatch(task_ids_pattern(name), transactional_id) is not None
