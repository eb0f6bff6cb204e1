"""Measure how fast a topic takes records: so many of one size, as fast as they are taken or at a given rate.

Shows on standard error how far it is, by a line every five seconds where that is no terminal, and at the end the rate
and the latencies from `send` to acknowledgement. The topic is created if it does not exist, where the broker does so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK, CommandFault
from ottla.cli.numbers import byte_count, count

if TYPE_CHECKING:
    from ottla.cli.progress import Progress
    from ottla.client.producing.batches import Delivery

_REPORT_SECONDS = 5.0
#: Latencies that are kept, spread evenly over the run, to compute its percentiles.
_SAMPLES_MAX = 200_000
#: The bar is moved by so many at once: it may not cost what is measured.
_STEP_RECORDS = 1024
#: At a given rate records leave in steps of this.
_STEP_SECONDS = 0.002


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    parser.add_argument("--num-records", type=count, metavar="N", default=1_000_000, help="default: 1000000")
    parser.add_argument("--record-size", type=byte_count, metavar="BYTES", default=100, help="default: 100")
    parser.add_argument(
        "--throughput", type=float, metavar="N", default=-1.0, help="records a second; -1, the default: no limit"
    )
    parser.add_argument(
        "--producer-props", metavar="NAME=VALUE", nargs="+", default=[], help="settings of the client, as Kafka has it"
    )
    parser.add_argument(
        "--producer-property", metavar="NAME=VALUE", action="append", default=[], help="one such setting"
    )
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_produce(options))


async def _produce(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import advised, explained, reach, settings_of
    from ottla.cli.counting import counted, were
    from ottla.cli.progress import Progress
    from ottla.cli.reachability import BrokerWatch
    from ottla.client.errors import BufferExhausted, KafkaError
    from ottla.client.producing.producer import Producer

    topic = shared.topic_of(options)
    more = assignments("--producer-props", [*options.producer_props, *options.producer_property])
    progress = Progress("producing", options.num_records, "records")
    run_ = _Run(options, progress)
    with explained(), progress:
        async with Producer(settings_of(options, more)) as producer:
            await reach(producer.cluster)
            watch = BrokerWatch(producer.cluster)
            watch.say = progress.note
            watch.begin()
            await producer.partitions_for(topic)
            run_.begin()
            # Not all the same, so that compression has the work that it would have.
            payload = os.urandom(options.record_size // 2).hex().encode().ljust(options.record_size, b"x")
            try:
                for number in range(options.num_records):
                    await run_.pace(number)
                    await producer.send(topic, payload, on_delivery=run_.delivery(run_.now()))
            except BufferExhausted as error:
                run_.fail(error)
            await producer.flush()
            run_.end()
    run_.show()
    first = run_.first_failure
    if first is not None:
        why = advised(first) if isinstance(first, KafkaError) else str(first)
        message = f"{counted(run_.failed, 'record')} {were(run_.failed)} not acknowledged: {why}"
        raise CommandFault(message, watch.code_of(first)) from first
    return OK


class _Run:
    def __init__(self, options: argparse.Namespace, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._every = max(1, options.num_records // _SAMPLES_MAX)
        self._latencies: list[float] = []
        self._done = 0
        self._longest = 0.0
        self._total = 0.0
        self.failed = 0
        self.first_failure: BaseException | None = None
        self._started = self._reported = 0.0
        self._reported_done = 0
        self._seconds = 0.0

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def begin(self) -> None:
        self._started = self._reported = self.now()

    def end(self) -> None:
        self._seconds = max(self.now() - self._started, 1e-9)

    async def pace(self, number: int) -> None:
        """Waits until the next record is due."""
        rate = self._options.throughput
        if rate > 0:
            ahead = self._started + number / rate - self.now()
            if ahead > _STEP_SECONDS:
                await asyncio.sleep(ahead)

    def delivery(self, sent: float) -> Any:
        loop = asyncio.get_running_loop()

        def delivered(done: Delivery) -> None:
            error = done.exception()
            if error is not None:
                self.fail(error)
                return
            now = loop.time()
            latency = now - sent
            self._total += latency
            self._longest = max(self._longest, latency)
            if self._done % self._every == 0:
                self._latencies.append(latency)
            self._done += 1
            if not self._done % _STEP_RECORDS:
                self._progress.add(_STEP_RECORDS)
            if now - self._reported >= _REPORT_SECONDS:
                self._report(now)

        return delivered

    def fail(self, error: BaseException) -> None:
        self.failed += 1
        self.first_failure = self.first_failure or error

    def _report(self, now: float) -> None:
        from ottla.cli.counting import counted

        rate = (self._done - self._reported_done) / (now - self._reported)
        if not self._progress.is_shown:
            self._progress.note(f"{counted(self._done, 'record')} sent, {rate:.0f} a second")
        self._reported, self._reported_done = now, self._done

    def show(self) -> None:
        from ottla.cli.output import show

        self._latencies.sort()
        data = {
            "records": self._done,
            "seconds": round(self._seconds, 3),
            "records_per_second": round(self._done / self._seconds, 1),
            "megabytes_per_second": round(self._done * self._options.record_size / self._seconds / 1e6, 2),
            "latency_ms_average": round(self._total / max(1, self._done) * 1000, 2),
            "latency_ms_max": round(self._longest * 1000, 2),
            **{f"latency_ms_p{name}": self._percentile(part) for name, part in _PERCENTILES.items()},
        }
        show(self._options.output, data, "".join(f"{name:<21} {value}\n" for name, value in data.items()))

    def _percentile(self, part: float) -> float | None:
        kept = self._latencies
        return round(kept[min(len(kept) - 1, int(len(kept) * part))] * 1000, 2) if kept else None


_PERCENTILES = {"50": 0.5, "95": 0.95, "99": 0.99, "99.9": 0.999}
