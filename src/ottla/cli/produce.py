"""Send records to a topic: each line of standard input is one, until it ends.

With -K a line is a key and a value: `echo 'alice:hello' | ottla produce orders -K :`. With -J a line is a JSON envelope
as `consume -J` prints it: its key, value, headers and time are sent. What was sent is acknowledged when the command
ends with exit code 0.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK, CommandFault, UsageFault
from ottla.cli.numbers import milliseconds, partition_number

if TYPE_CHECKING:
    from ottla.cli.lines import Parse
    from ottla.client.producing.batches import Delivery
    from ottla.client.producing.producer import Producer


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    lines = parser.add_argument_group("what a line is")
    lines.add_argument("-K", "--key-separator", metavar="TEXT", help="what stands between key and value of a line")
    lines.add_argument("-J", "--json", action="store_true", help="a JSON envelope")
    lines.add_argument("-D", "--delimiter", metavar="TEXT", default="\\n", help="what ends a line (default: \\n)")
    lines.add_argument("--null", metavar="TEXT", help="a key or value that is this text is null")
    lines.add_argument(
        "--property",
        "--reader-property",
        dest="properties",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="of Kafka's line reader: parse.key=true, key.separator, parse.headers, null.marker, ...",
    )
    every = parser.add_argument_group("what every record has")
    every.add_argument("-p", "--partition", type=partition_number, metavar="N", help="send all to this partition")
    every.add_argument("-k", "--key", metavar="TEXT", help="the key of all")
    every.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="a header; may be given again"
    )
    how = parser.add_argument_group("how to send")
    how.add_argument("--acks", "--request-required-acks", choices=("all", "-1", "1", "0"), help="default: all")
    how.add_argument(
        "-z", "--compression-codec", choices=("none", "gzip", "snappy", "lz4", "zstd"), help="default: none"
    )
    how.add_argument("--linger-ms", type=milliseconds, metavar="MS", help="how long to wait for more to send at once")
    how.add_argument(
        "--producer-property", metavar="NAME=VALUE", action="append", default=[], help="a setting of the client"
    )


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_produce(options))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import settings_of

    more: dict[str, Any] = dict(assignments("--producer-property", options.producer_property))
    if options.acks is not None:
        more["acks"] = options.acks
    if options.compression_codec is not None:
        more["compression.type"] = options.compression_codec
    if options.linger_ms is not None:
        more["linger.ms"] = options.linger_ms
    return settings_of(options, more)


def _parse(options: argparse.Namespace) -> Parse:
    from ottla.cli.assignments import assignments
    from ottla.cli.lines import envelopes, kafka_lines
    from ottla.cli.record_format import escaped

    properties = assignments("--property", options.properties)
    if options.json:
        if properties or options.key_separator is not None or options.null is not None:
            raise UsageFault("--json says what a line is: leave out --key-separator, --null and --property")
        return envelopes()
    if options.key_separator is not None:
        properties = {**properties, "parse.key": "true", "key.separator": options.key_separator}
    if options.null is not None:
        properties["null.marker"] = options.null
    return kafka_lines({name: escaped(value) for name, value in properties.items()})


async def _produce(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import explained, reach
    from ottla.client.producing.producer import Producer

    topic, parse = shared.topic_of(options), _parse(options)
    with explained(options):
        async with Producer(_settings(options)) as producer:
            await reach(producer.cluster)
            sending = _SendProgress(producer, topic, options)
            await sending.send_all(parse)
    sending.check()
    return OK


class _SendProgress:
    def __init__(self, producer: Producer, topic: str, options: argparse.Namespace) -> None:
        from ottla.cli.assignments import assignments
        from ottla.cli.record_format import escaped

        self._producer = producer
        self._topic = topic
        self._partition: int | None = options.partition
        self._key: bytes | None = None if options.key is None else options.key.encode()
        self._headers = [(name, value.encode()) for name, value in assignments("--header", options.header).items()]
        self._delimiter = escaped(options.delimiter)
        if not self._delimiter:
            raise UsageFault("--delimiter is empty")
        self._failed = 0
        self._first_failure: BaseException | None = None

    async def send_all(self, parse: Parse) -> None:
        """Until the input ends, or a record has failed: what stands behind it is not sent."""
        from ottla.cli.lines import LineFault
        from ottla.cli.progress import Progress
        from ottla.cli.standard_input import pieces, size_if_known

        number = 0
        with Progress("producing", size_if_known(), "B", wanted=not sys.stdin.isatty()) as progress:
            async for lines in pieces(self._delimiter):
                for line in lines:
                    number += 1
                    try:
                        await self._send(*parse(line))
                    except LineFault as fault:
                        await self._producer.flush()
                        raise CommandFault(f"line {number}: {fault}; {number - 1} before it were sent") from fault
                    progress.add(len(line) + len(self._delimiter))
                if self._failed:
                    break
        await self._producer.flush()

    async def _send(
        self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int | None
    ) -> None:
        await self._producer.send(
            self._topic,
            value,
            self._key if key is None else key,
            partition=self._partition,
            timestamp=timestamp,
            headers=(*headers, *self._headers),
            on_delivery=self._delivered,
        )

    def _delivered(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self._failed += 1
            self._first_failure = self._first_failure or error

    def check(self) -> None:
        """Raises if anything that was sent is not known to have arrived."""
        from ottla.cli.connecting import advised, exit_code
        from ottla.client.errors import KafkaError

        first = self._first_failure
        if first is None:
            return
        told = advised(first) if isinstance(first, KafkaError) else str(first)
        code = exit_code(first) if isinstance(first, KafkaError) else FAILED
        raise CommandFault(f"{self._failed} records were not acknowledged: {told}", code) from first
