"""Send records to a topic: each line of standard input is one, until it ends.

With -K a line is a key and a value: `echo 'alice:hello' | ottla produce orders -K :`. With -J a line is a JSON envelope
as `consume -J` prints it: its key, payload, headers, time, topic and partition are used; without TOPIC each goes to its
own.

With -f the input is what a FORMAT says: %k key, %v value, %K{4} a length of four digits, %v{base64}, %p partition,
%t topic, %d time in ms, %h{%k=%v;} a header; a text ends where the next literal begins.
ottla produce orders -f '%k %v\\n'

With --transactional-id the whole input is one transaction: readers of committed records see all of it once the command
has ended with exit code 0, and nothing otherwise.

What was sent is acknowledged when the command ends with exit code 0; on a terminal each record's place is printed. An
OUTPUT is a format as `consume -f` has it:  -o '%p %o\\n'
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK, CommandFault, UsageFault
from ottla.cli.numbers import milliseconds, partition_number
from ottla.cli.streams import is_input_closed

if TYPE_CHECKING:
    from ottla.cli.lines import Parse, ParsedRecord
    from ottla.cli.reachability import BrokerWatch
    from ottla.cli.record_format import Format
    from ottla.cli.record_source import Records
    from ottla.client.producing.batches import Delivery
    from ottla.client.producing.producer import Producer

#: For what is on its way when Ctrl-C comes.
_INTERRUPTED_MS_MAX = 5000
#: As rpk has it.
OUTPUT_DEFAULT = "Produced to partition %p at offset %o with timestamp %d.\\n"


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    lines = parser.add_argument_group("what the input is")
    lines.add_argument("-K", "--key-separator", metavar="TEXT", help="what stands between key and value of a line")
    lines.add_argument("-J", "--json", action="store_true", help="a JSON envelope a line")
    lines.add_argument("-f", "--format", metavar="FORMAT", help="records as a format says, in place of lines")
    lines.add_argument("-D", "--delimiter", metavar="TEXT", default="\\n", help="what ends a line (default: \\n)")
    lines.add_argument("--null", metavar="TEXT", help="a key or value that is this text is null")
    lines.add_argument("-Z", "--tombstone", action="store_true", help="empty values are null: they delete their keys")
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
    every.add_argument(
        "--ignore-place", action="store_true", help="send to TOPIC whatever topic and partition the input names"
    )
    every.add_argument("-k", "--key", metavar="TEXT", help="the key of all that come without one")
    every.add_argument("--timestamp", metavar="TIME", help="the time of all: ISO 8601, or ms since 1970")
    every.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="a header; may be given again"
    )
    how = parser.add_argument_group("how to send")
    how.add_argument("-o", "--output-format", metavar="OUTPUT", help="what to print for each that is acknowledged")
    how.add_argument("--acks", "--request-required-acks", choices=("all", "-1", "1", "0"), help="default: all")
    how.add_argument(
        "-z",
        "--compression-codec",
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        help="default: none",
    )
    how.add_argument("--linger-ms", type=milliseconds, metavar="MS", help="how long to wait for more to send at once")
    how.add_argument(
        "--transactional-id", metavar="ID", help="send all in one transaction, as the only producer with this id"
    )
    how.add_argument(
        "--transaction-timeout-ms", type=milliseconds, metavar="MS", help="how long that may be open (default: 60000)"
    )
    how.add_argument(
        "--producer-property", metavar="NAME=VALUE", action="append", default=[], help="a setting of the client"
    )


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    # Mistakes are said before anybody is asked.
    options.header, options.timestamp = _headers(options.header), _timestamp(options.timestamp)
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
    if options.transactional_id is not None:
        more["transactional.id"] = options.transactional_id
    if options.transaction_timeout_ms is not None:
        more["transaction.timeout.ms"] = options.transaction_timeout_ms
    return settings_of(options, more)


def _records(options: argparse.Namespace) -> Records:
    from ottla.cli.format_tokens import escaped
    from ottla.cli.input_format import InputFormat
    from ottla.cli.record_source import of_format, of_lines

    delimiter = escaped(options.delimiter)
    if not delimiter:
        raise UsageFault("--delimiter is empty")
    if options.format is None:
        return of_lines(_parse(options), delimiter)
    if options.json or options.properties or options.key_separator is not None or options.null is not None:
        raise UsageFault("--format says what the input is: leave out --json, --key-separator, --null and --property")
    if options.delimiter != "\\n":
        raise UsageFault("--format says what ends a record: leave out --delimiter")
    return of_format(InputFormat(options.format))


def _parse(options: argparse.Namespace) -> Parse:
    from ottla.cli.assignments import assignments
    from ottla.cli.format_tokens import escaped
    from ottla.cli.lines import envelopes, kafka_lines

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


def _output(options: argparse.Namespace) -> Format | None:
    from ottla.cli.record_format import parse_format

    wanted = options.output_format
    if wanted is None:
        wanted = OUTPUT_DEFAULT if sys.stdout.isatty() else ""
    return parse_format(wanted, b"null") if wanted else None


def _topic(options: argparse.Namespace) -> str | None:
    """None where each record comes with its own."""
    names_it = options.json or (options.format is not None and "%t" in options.format)
    if names_it and options.topic is None and options.topic_option is None:
        if options.ignore_place:
            raise UsageFault("--ignore-place sends all to one topic: give TOPIC or --topic TOPIC")
        return None
    return shared.topic_of(options)


async def _produce(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import explained, reach
    from ottla.cli.reachability import BrokerWatch
    from ottla.client.producing.producer import Producer

    topic, records, output = _topic(options), _records(options), _output(options)
    with explained():
        async with Producer(_settings(options)) as producer:
            watch = BrokerWatch(producer.cluster)
            await reach(producer.cluster)
            watch.begin()
            sending = _Sending(producer, topic, options, output, watch)
            try:
                if producer.settings.transactional_id is None:
                    await sending.send_all(records)
                else:
                    async with producer.transaction():
                        await sending.send_all(records)
                        sending.check()
            except asyncio.CancelledError:
                await sending.give_up()
                raise
    sending.check()
    return OK


class _Sending:
    def __init__(
        self,
        producer: Producer,
        topic: str | None,
        options: argparse.Namespace,
        output: Format | None,
        watch: BrokerWatch,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition: int | None = options.partition
        self._ignores_place: bool = options.ignore_place
        self._key: bytes | None = None if options.key is None else options.key.encode("utf-8", "surrogateescape")
        self._headers: list[tuple[str, bytes]] = options.header
        self._timestamp: int | None = options.timestamp
        self._tombstones: bool = options.tombstone
        self._output = output
        self._watch = watch
        self._unit = "line" if options.format is None else "record"
        self._sent = 0
        self._acknowledged = 0
        self._failed = 0
        self._first_failure: BaseException | None = None
        self._output_fault: OSError | None = None

    async def send_all(self, source: Records) -> None:
        """Until the input ends, or a record has failed: what stands behind it is not sent."""
        from ottla.cli.connecting import advised, exit_code
        from ottla.cli.lines import LineFault
        from ottla.cli.progress import Progress
        from ottla.cli.standard_input import size_if_known
        from ottla.client.errors import BadArgument, BufferExhausted, RecordTooLarge, UnknownTopicOrPartition

        watched = not is_input_closed() and not sys.stdin.isatty() and (self._output is None or not sys.stdout.isatty())
        with Progress("producing", size_if_known(), "B", wanted=watched) as progress:
            self._watch.say = progress.note
            try:
                async for records, size in source:
                    for record in records:
                        await self._send(record)
                        self._sent += 1
                    progress.add(size)
                    if self._failed or self._output_fault:
                        break
            except LineFault as fault:
                raise await self._ended_by(f"{self._where()}: {fault}", FAILED) from fault
            except CommandFault as fault:  # no more can be read
                if not self._sent:
                    raise
                raise await self._ended_by(str(fault), fault.code) from fault
            except (BadArgument, RecordTooLarge, UnknownTopicOrPartition) as error:  # this record cannot be sent
                raise await self._ended_by(f"{self._where()}: {advised(error)}", exit_code(error)) from error
            except BufferExhausted as error:  # those before it are still on their way, perhaps to nobody
                self._fail(error)
            await self._producer.flush()

    def _where(self) -> str:
        return f"{self._unit} {self._sent + 1}"

    async def _ended_by(self, why: str, code: int) -> CommandFault:
        """What to raise for it. Where a record before it has failed, raises that instead."""
        await self._producer.flush()
        self.check()
        return CommandFault(f"{why}; {self._before()}", code)

    def _before(self) -> str:
        from ottla.cli.counting import counted, were

        if self._producer.settings.transactional_id is not None:
            aborted = "the transaction is aborted"
            return f"{aborted}, with {counted(self._sent, 'record')} before it" if self._sent else aborted
        return f"{counted(self._sent, 'record')} before it {were(self._sent)} sent"

    async def _send(self, record: ParsedRecord) -> None:
        key, value, headers, timestamp, _, _ = record
        topic, partition = self._place(record)
        key = self._key if key is None else key
        value = None if self._tombstones and not value else value
        all_headers = (*headers, *self._headers)
        await self._producer.send(
            topic,
            value,
            key,
            partition=partition,
            timestamp=self._timestamp if timestamp is None else timestamp,
            headers=all_headers,
            on_delivery=self._delivered if self._output is None else self._printed(key, value, all_headers),
        )

    def _place(self, record: ParsedRecord) -> tuple[str, int | None]:
        """Raises LineFault where it says otherwise than the command line."""
        from ottla.cli.lines import LineFault
        from ottla.model import topic_name_fault

        topic, partition = record.topic, record.partition
        if self._ignores_place or topic is None:
            topic = self._topic
            if topic is None:
                raise LineFault("it names no topic, and neither does the command line")
        elif self._topic is None:
            fault = topic_name_fault(topic)
            if fault:
                raise LineFault(f"no topic can have this name: {fault}")
        elif topic != self._topic:
            raise LineFault(
                f"its topic is {topic}, not {self._topic}: leave TOPIC out to send each to its own, or give "
                f"--ignore-place to send all to {self._topic}"
            )
        if self._partition is not None or self._ignores_place:
            partition = self._partition
        return topic, partition

    def _delivered(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is None:
            self._acknowledged += 1
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failed += 1
        self._first_failure = self._first_failure or error

    def _printed(self, key: bytes | None, value: bytes | None, headers: Any) -> Any:
        from ottla.client.records import ConsumerRecord

        def delivered(delivery: Delivery) -> None:
            self._delivered(delivery)
            if delivery.exception() is not None or self._output is None or self._output_fault is not None:
                return
            topic, partition, offset, timestamp = delivery.result()
            record = ConsumerRecord(topic, partition, offset, timestamp, 0, key, value, headers, -1)
            try:
                sys.stdout.buffer.write(self._output(record))
                sys.stdout.buffer.flush()
            except OSError as error:  # what was sent is sent; what is behind it is not
                self._output_fault = error

        return delivered

    async def give_up(self) -> None:
        """After Ctrl-C: a broker that is away is not waited for as long as deliveries may take."""
        from ottla.cli.counting import counted, were

        await self._producer.close(_INTERRUPTED_MS_MAX)
        if self._acknowledged < self._sent and self._producer.settings.transactional_id is None:
            known = f"{self._acknowledged} of {counted(self._sent, 'record')} {were(self._acknowledged)} acknowledged"
            print(f"ottla: interrupted: {known}; of the others nothing is known", file=sys.stderr)

    def check(self) -> None:
        """Raises if anything that was sent is not known to have arrived, or what was to be printed was not."""
        from ottla.cli.connecting import advised
        from ottla.cli.counting import counted, were
        from ottla.client.errors import KafkaError

        first = self._first_failure
        if first is not None:
            why = advised(first) if isinstance(first, KafkaError) else str(first)
            message = f"{counted(self._failed, 'record')} {were(self._failed)} not acknowledged: {why}"
            raise CommandFault(message, self._watch.code_of(first)) from first
        if self._output_fault is not None:
            raise self._output_fault


def _headers(texts: list[str]) -> list[tuple[str, bytes]]:
    """In their order; a name may stand several times. `NAME:VALUE`, as rpk has it, works as well."""
    from ottla.cli.parser import is_text

    found = []
    for text in texts:
        name, between, value = text.partition("=")
        if not between:
            name, between, value = text.partition(":")
        if not between or not name.strip():
            raise UsageFault(f"--header: '{text}' is not NAME=VALUE")
        if not is_text(name):
            raise UsageFault(f"--header: the name '{name}' is no UTF-8 text")
        found.append((name.strip(), value.encode("utf-8", "surrogateescape")))
    return found


def _timestamp(text: str | None) -> int | None:
    from ottla.cli.offsets import parse_time

    if text is None:
        return None
    found = parse_time(text)
    if found is None:
        raise UsageFault(
            f"--timestamp: '{text[:60]}' is not a time: give ISO 8601 (2026-11-21T10:00), or ms since 1970"
        )
    return found
