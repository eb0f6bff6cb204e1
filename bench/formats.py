"""JSON, Avro and Protobuf side by side: how long an order is, and how many a core writes and reads, one by one as a
client's serializers do, and as a column."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from bench.arrow import best_rate
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import OTTLA
from ottla.client.serializers import deserializer_for, serializer_for
from ottla.formats import Decoder, decoder, encoder

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "long"},
        {"name": "customer", "type": "int"},
        {"name": "cents", "type": "int"},
        {"name": "currency", "type": "string"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "placed", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
PROTO = """
syntax = "proto3";
enum State { NEW = 0; PAID = 1; }
message Order {
  int64 order = 1; int32 customer = 2; int32 cents = 3; string currency = 4; State state = 5; int64 placed = 6;
  optional string note = 7;
}
"""
JSON = "json:order BIGINT, customer INT, cents INT, currency STRING, state STRING, placed BIGINT, note STRING"
NAMES = ("json", "avro", "protobuf")
_RATES = (("write", "written one by one"), ("read", "read one by one"), ("column", "read as a column"))


def orders(count: int) -> list[dict[str, Any]]:
    chance = Random(1)
    return [
        {
            "order": number,
            "customer": chance.randrange(10**6),
            "cents": chance.randrange(10**5),
            "currency": "EUR",
            "state": "PAID",
            "placed": 1_764_000_000_000 + number,
            "note": None,
        }
        for number in range(count)
    ]


@dataclass(frozen=True, kw_only=True)
class Formats:
    """JSON as the client's serializer has it, and by a schema as a column."""

    name: str = "formats"
    title: str = "an order of seven fields, as JSON, Avro and Protobuf"
    count: int = 20_000
    measures: Sequence[Measure] = (
        *(Measure(name=f"{name} size", label=f"{name}, size", unit="bytes") for name in NAMES),
        *(
            Measure(name=f"{name} {what}", label=f"{name}, {said}", unit="k records/s of CPU")
            for what, said in _RATES
            for name in NAMES
        ),
    )
    goals: Sequence[Goal] = ()

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        ours = [kind for kind in context.kinds if kind == OTTLA]
        if ours:
            context.measure_in_turns(results, ours, lambda _kind: self._figures(), lambda _: context.effort.rounds)
        return results

    def _figures(self) -> Figures:
        values = orders(self.count)
        found: dict[str, float] = {}
        for name, write, read, columns in _formats():
            raws = [write(value) for value in values]
            found[f"{name} size"] = sum(map(len, raws)) / len(raws)
            found[f"{name} write"] = 1000 * best_rate(self.count, lambda: _each(write, values))  # noqa: B023  # called at once
            found[f"{name} read"] = 1000 * best_rate(self.count, lambda: _each(read, raws))  # noqa: B023
            column = pa.array(raws, pa.binary())
            found[f"{name} column"] = 1000 * best_rate(self.count, lambda: len(columns.decode(column)[0]))  # noqa: B023
        return found


def _each(work: Callable[[Any], Any], given: Sequence[Any]) -> int:
    for one in given:
        work(one)
    return len(given)


def _formats() -> Iterator[tuple[str, Callable[[Any], Any], Callable[[Any], Any], Decoder]]:
    """Without a registry: its five bytes are the same for all."""
    writes: Any = serializer_for("json", "value.serializer")
    reads: Any = deserializer_for("json", "value.deserializer")
    yield "json", writes, reads, decoder(JSON)
    with schema_files() as (avro, proto):
        for name, spec in (("avro", avro), ("protobuf", proto)):
            reading = decoder(spec)
            yield name, encoder(spec).encode_one, reading.decode_one, reading


@contextmanager
def schema_files() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        avro, proto = Path(folder) / "order.avsc", Path(folder) / "order.proto"
        avro.write_text(json.dumps(AVRO))
        proto.write_text(PROTO)
        yield f"avro:{avro}", f"protobuf:{proto}#Order"
