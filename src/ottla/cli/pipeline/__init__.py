"""`ottla pipeline`: what its verbs share."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.faults import FAILED, NOT_FOUND, USAGE, CommandFault, StopSignal

if TYPE_CHECKING:
    from ottla.pipeline.loading import PipelineFile
    from ottla.pipeline.places import Places

_ENDING: Final = "-data"


def file_and_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the pipeline, a Python file")
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where its tables and checkpoints are (default: beside the file, as orders-data for orders.py)",
    )


def places_of(options: argparse.Namespace) -> Places:
    from ottla.pipeline.places import Places

    return Places(options.folder or os.path.splitext(options.file)[0] + _ENDING)


def loaded(options: argparse.Namespace) -> PipelineFile:
    """The file, run for what it defines; what is wrong with it ends the verb."""
    needs_spark()
    from ottla.pipeline.loading import load

    with explained():
        return load(options.file)


def needs_spark() -> None:
    try:
        import ottla.spark  # noqa: F401 - it says itself what is missing
    except ImportError as error:
        raise CommandFault(str(error)) from error


@contextmanager
def explained() -> Iterator[None]:
    """A pipeline's errors become one line and an exit code."""
    from ottla.pipeline.errors import BadDefinition, NotFound, PipelineError

    try:
        yield
    except NotFound as error:
        raise CommandFault(str(error), NOT_FOUND) from error
    except BadDefinition as error:
        raise CommandFault(str(error), USAGE) from error
    except PipelineError as error:
        raise CommandFault(str(error), FAILED) from error


def kafka_options(settings: dict[str, Any]) -> dict[str, str]:
    """The client's settings as options of Spark's."""
    return {f"kafka.{name}": str(value) for name, value in settings.items() if name != "client.id"}


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP (a terminal that is closed) end what runs here as Ctrl-C does: with Spark stopped."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as `nohup` sets it
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: object) -> None:
    raise StopSignal(number)
