"""Run a pipeline: keep its tables and topics up to date with the topics that it reads.

--mode stream runs until Ctrl-C. --mode catch-up reads what is there and ends. --mode backfill computes again what the
tables have between two times, and puts it in the place of what they had; records are read again from the topics, and
nothing is sent to sinks.

--engine sdp gives the file's functions to Spark Declarative Pipelines, which read what is there and have neither
expectations nor dead letters, keys nor backfills.

ottla pipeline run orders.py
ottla pipeline run orders.py --mode catch-up
ottla pipeline run orders.py --mode backfill --from 2026-11-01T00:00Z --to 2026-11-02T00:00Z
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import metrics_page
from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault
from ottla.cli.pipeline import explained, file_and_folder, kafka_options, loaded, places_of, stopped_by_signals

if TYPE_CHECKING:
    from ottla.pipeline.backfill import Range
    from ottla.pipeline.loading import PipelineFile
    from ottla.pipeline.running import PipelineRun
    from ottla.pipeline.status import FlowStatus

MODES: Final = ("stream", "catch-up", "backfill")
ENGINES: Final = ("streams", "sdp")
_CONFIG: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
#: Between two lines of progress, where standard error is no terminal.
_LINE_SECONDS: Final = 10.0


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    file_and_folder(parser)
    parser.add_argument("--mode", choices=MODES, default="stream", help="(default: stream)")
    parser.add_argument("--engine", choices=ENGINES, default="streams", help="(default: streams)")
    parser.add_argument("--from", dest="first", metavar="TIME", help="of a backfill: ISO 8601, or ms since 1970")
    parser.add_argument("--to", metavar="TIME", help="of a backfill: up to this time, and without it")
    parser.add_argument(
        "--interval", metavar="TIME", default="0s", help="of streams: so long from micro-batch to micro-batch (1s, 5m)"
    )
    parser.add_argument("--master", metavar="URL", help="Spark's (default: local[*])")
    parser.add_argument(
        "--conf", metavar="NAME=VALUE", action="append", default=[], help="a property of Spark's; may be given again"
    )
    metrics_page.arguments(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import explained as explained_client
    from ottla.cli.connecting import run as run_on_loop
    from ottla.cli.connecting import settings_of

    span = _range(options)
    interval_s = _interval_s(options.interval)
    config = _config(options.conf)
    file = loaded(options)
    if options.engine == "sdp":
        return _declared(options, file, config)
    run_on_loop(_reached(options))
    works: list[PipelineRun] = []
    with explained(), explained_client(), _metrics_served(options, file.name, works):
        from ottla.pipeline.backfill import backfill
        from ottla.pipeline.running import PipelineRun

        kafka = kafka_options(settings_of(options))
        spark, is_ours = _session(file.name, options.master, config)
        shown = Progress()
        work = PipelineRun(spark, file, places_of(options), kafka, shown)
        works.append(work)
        try:
            with stopped_by_signals():
                if span is not None:
                    backfill(work, span, _say)
                elif options.mode == "catch-up":
                    work.catch_up()
                else:
                    work.stream(interval_s)
        except KeyboardInterrupt:
            if options.mode != "stream":
                raise
        finally:
            shown.end()
            _closing_table(options, [flow.status for flow in work.flows])
            if is_ours:
                spark.stop()
    return OK


@contextmanager
def _metrics_served(options: argparse.Namespace, name: str, works: list[PipelineRun]) -> Iterator[None]:
    """By a thread of its own, since this one waits for Spark; a port that cannot be had is said before Java starts."""
    if options.metrics_port is None:
        yield
        return
    from ottla.client.sync.loop_thread import LoopThread
    from ottla.metrics import Registry
    from ottla.pipeline.metrics import register

    registry = Registry()
    register(registry, name, lambda: [flow.status for work in works for flow in work.flows])
    thread = LoopThread("metrics")
    try:
        endpoint = thread.run(lambda: metrics_page.served(options, registry))
        _say(f"metrics are served on {endpoint.address}")
        try:
            yield
        finally:
            thread.run(endpoint.close)
    finally:
        thread.end()


def _declared(options: argparse.Namespace, file: PipelineFile, config: dict[str, str]) -> int:
    from ottla.cli.connecting import explained as explained_client
    from ottla.cli.connecting import run as run_on_loop
    from ottla.cli.connecting import settings_of
    from ottla.pipeline.declared import check_declared, run_declared

    if options.metrics_port is not None:
        raise UsageFault("--metrics-port is not for --engine sdp, of which there is no status")
    if options.mode != "catch-up":
        raise UsageFault(f"--engine sdp reads what is there and ends: say --mode catch-up, not {options.mode}")
    with explained(), explained_client():
        check_declared(file)
        run_on_loop(_reached(options))
        kafka = kafka_options(settings_of(options))
        given = {**_CONFIG, **config}
        run_declared(file, places_of(options), kafka, master=options.master, config=given, say=_say)
    return OK


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


async def _reached(options: argparse.Namespace) -> None:
    """That nobody is there is said before Java takes its seconds to start."""
    from ottla.cli.connecting import admin

    async with admin(options):
        pass


def _session(name: str, master: str | None, config: dict[str, str]) -> tuple[Any, bool]:
    """Spark's, and whether this made it: in a notebook there may be one."""
    from pyspark import SparkContext

    from ottla.cli.faults import CommandFault
    from ottla.spark import JavaMissing, session

    is_ours = SparkContext._active_spark_context is None  # noqa: SLF001 - PySpark has no other way to ask
    try:
        spark = session(name, master=master, config={**_CONFIG, **config})
    except JavaMissing as error:
        raise CommandFault(str(error)) from error
    if is_ours:
        spark.sparkContext.setLogLevel("ERROR")
    return spark, is_ours


def _range(options: argparse.Namespace) -> Range | None:
    if options.mode != "backfill":
        if options.first is not None or options.to is not None:
            raise UsageFault("--from and --to are for --mode backfill")
        return None
    if options.first is None or options.to is None:
        raise UsageFault("--mode backfill needs --from and --to")
    from ottla.pipeline.backfill import Range

    span = Range(_time_ms("--from", options.first), _time_ms("--to", options.to))
    if span.from_ms >= span.to_ms:
        raise UsageFault(f"--from {options.first} is not before --to {options.to}")
    return span


def _time_ms(option: str, text: str) -> int:
    from ottla.cli.offsets import parse_time

    found = parse_time(text)
    if found is None:
        raise UsageFault(f"{option} is no time: give 2026-11-01T00:00Z, or ms since 1970, not {text!r}")
    return found


def _interval_s(text: str) -> float:
    from ottla.durations import duration_ms

    try:
        return duration_ms(text) / 1000
    except ValueError as error:
        raise UsageFault(f"--interval: {error}") from None


def _config(given: list[str]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise UsageFault(f"--conf {one}: give NAME=VALUE")
        found[name.strip()] = value
    return found


class Progress:
    """One line on standard error: rows a second, lag and micro-batch of each flow."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._width = 0

    def __call__(self, flows: list[FlowStatus]) -> None:
        import time

        now = time.monotonic()
        if not self._terminal:
            if now < self._next:
                return
            self._next = now + _LINE_SECONDS
        line = "; ".join(_said(flow) for flow in flows)
        if self._terminal:
            sys.stderr.write(f"\r{line:<{self._width}}")
            self._width = len(line)
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._terminal and self._width:
            sys.stderr.write("\n")


def _said(flow: FlowStatus) -> str:
    from ottla.cli.pipeline.status import lag_of

    lag = "" if flow.lag is None else f", lag {lag_of(flow)}"
    rate = "" if flow.rows_a_second is None else f", {flow.rows_a_second:,.0f} rows/s"
    batch = "-" if flow.batch is None else str(flow.batch)
    return f"{flow.flow}: micro-batch {batch}{rate}{lag}"


def _closing_table(options: argparse.Namespace, flows: list[FlowStatus]) -> None:
    from ottla.cli.pipeline.status import show_flows

    if flows:
        show_flows(options.output, flows)
