"""`ottla.spark.mirror`: the stream of what a flow has copied."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ottla.config.files import FILE_BYTES_MAX, PropertyFileError, parse_properties
from ottla.spark.mirroring.source import FORMAT, MirrorDataSource, chosen_flow
from ottla.spark.options import OptionError

TASKS_DEFAULT: Final = 4
#: Of one micro-batch; each has its own connections.
TASKS_MAX: Final = 10_000


def mirror(
    spark: Any,
    properties: Mapping[str, str] | str | os.PathLike[str],
    flow: str | None = None,
    /,
    *,
    tasks: int = TASKS_DEFAULT,
) -> Any:
    """A streaming frame that copies while it is read: `mirror(spark, "mm2.properties").writeStream...start()`.

    `flow` is one such as "A->B", where the properties have several. A micro-batch is so many tasks.
    """
    given = dict(properties) if isinstance(properties, Mapping) else _of_file(Path(properties))
    if not 1 <= tasks <= TASKS_MAX:
        raise OptionError(f"tasks must be from 1 to {TASKS_MAX}, not {tasks}")
    settings = chosen_flow(given, flow)
    spark.dataSource.register(MirrorDataSource)
    options = {"properties": json.dumps(given), "flow": settings.name, "tasks": str(tasks)}
    return spark.readStream.format(FORMAT).options(**options).load()


def _of_file(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            return parse_properties(file.read(FILE_BYTES_MAX + 1))
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror or error}") from error
    except PropertyFileError as error:
        raise OptionError(f"{path}, {error}") from error
