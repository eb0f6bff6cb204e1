"""Dead letters: records whose rows a table has dropped, as they came, in `<topic>-dlq`, with headers that say why.

Kafka allows a topic's name letters, digits, '.', '_' and '-' alone; of these only '-' makes no trouble in metrics.

A dead letter is larger than its record, whose topic may take more than others do. So the topic of dead letters takes
what the largest of a micro-batch needs, and so does the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.client.admin.having import have_topic_sync
from ottla.client.admin.results import ConfigChange, ConfigResource, NewTopic
from ottla.client.sync import Admin
from ottla.pipeline.expectations import DECODES, Action, Rule
from ottla.pipeline.reading import ERROR, RECORD
from ottla.spark.options import client_settings

ENDING: Final = "-dlq"
#: All headers that dead letters have more than their records.
PREFIX: Final = "ottla.dlq."
#: A header of a record that was sent again: which dead letter it was.
REPLAYED: Final = "ottla.replayed"
#: They wait for a person, who may be on holiday.
_CONFIGS: Final = {"retention.ms": "-1", "cleanup.policy": "delete"}
LIMIT: Final = "max.message.bytes"
#: What topics take by default; a topic that takes less has been set so.
_LIMIT_OF_BROKERS: Final = 1_048_588
#: What a topic of dead letters is made with at the least.
_LIMIT_MIN: Final = 2 * 1024 * 1024
_REQUEST: Final = "kafka.max.request.size"
#: What a batch of one record has beside the bytes of the record's fields: 61 of its header, and a few lengths.
_BATCH_ROOM: Final = 200
#: Of a header's two lengths.
_HEADER_ROOM: Final = 10


def dead_letter_topic(topic: str) -> str:
    return topic + ENDING


def send(frame: Any, rules: tuple[Rule, ...], pipeline: str, table: str, kafka: dict[str, str]) -> int:
    """The records of all rows of a marked frame that are dropped; how many there were."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

    bad = letters(frame, rules, pipeline, table)
    if bad is None:
        return 0
    bad = bad.persist()
    try:
        rows = bad.groupBy("topic").agg(F.count(F.lit(1)).alias("letters"), F.max(_bytes()).alias("bytes")).collect()
        if not rows:
            return 0
        largest = {row["topic"]: row["bytes"] for row in rows}
        have_topics(largest, kafka)
        request = max(int(kafka.get(_REQUEST, 0)), _limit(max(largest.values())))
        bad.write.format("ottla").options(**{**kafka, _REQUEST: str(request)}).mode("append").save()
        return sum(row["letters"] for row in rows)
    finally:
        bad.unpersist()


def letters(frame: Any, rules: tuple[Rule, ...], pipeline: str, table: str) -> Any:
    """Rows as the sink takes them; None where no rule drops."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

    dropping = [rule for rule in rules if rule.action is Action.DROP]
    if not dropping:
        return None
    broken = F.array_intersect(F.col("_failed"), F.array(*(F.lit(rule.name) for rule in dropping)))
    why: Any = F.lit(None).cast("string")
    for rule in reversed(dropping):
        text: Any = F.lit(_reason(rule))
        if rule.name == DECODES and ERROR in frame.columns:
            text = F.col(ERROR)
        why = F.when(F.array_contains("_failed", rule.name), text).otherwise(why)
    record = {name: F.col(f"{RECORD}.{name}") for name in ("topic", "partition", "offset", "timestamp")}
    added = [
        _header("reason", why),
        _header("rule", F.array_join(broken, ",")),
        _header("topic", record["topic"]),
        _header("partition", record["partition"].cast("string")),
        _header("offset", record["offset"].cast("string")),
        _header("time", F.unix_millis(record["timestamp"]).cast("string")),
        _header("pipeline", F.lit(pipeline)),
        _header("table", F.lit(table)),
    ]
    none = F.array().cast("array<struct<key:string,value:binary>>")
    return frame.where((F.size(broken) > 0) & F.col(RECORD).isNotNull()).select(
        F.concat(record["topic"], F.lit(ENDING)).alias("topic"),
        F.col(f"{RECORD}.key").alias("key"),
        F.col(f"{RECORD}.value").alias("value"),
        F.concat(F.coalesce(F.col(f"{RECORD}.headers"), none), F.array(*added)).alias("headers"),
    )


def have_topics(largest: Mapping[str, int], kafka: dict[str, str]) -> None:
    """Topics that take a batch of so many bytes: creates those that are not there."""
    with Admin(client_settings(kafka)) as admin:
        there = set(admin.list_topics())
        for topic in sorted(set(largest) - there):
            new = NewTopic(topic, 1, -1, {**_CONFIGS, LIMIT: str(_limit(largest[topic]))})
            if not have_topic_sync(admin, new):
                there.add(topic)
        large = [topic for topic, needed in sorted(largest.items()) if topic in there and needed > _LIMIT_OF_BROKERS]
        if not large:
            return
        found = admin.describe_configs([ConfigResource.topic(topic) for topic in large], names=[LIMIT])
        changes = {
            one: [ConfigChange(LIMIT, str(_limit(largest[one.name])))]
            for one, configs in found.items()
            if int(configs[LIMIT].value or 0) < largest[one.name]
        }
        if changes:
            admin.incremental_alter_configs(changes)


def _bytes() -> Any:
    """Of a batch with the letter alone."""
    from pyspark.sql import functions as F  # noqa: N812

    def length(of: Any) -> Any:
        return F.coalesce(F.octet_length(of), F.lit(0))

    headers = F.aggregate(
        "headers",
        F.lit(0),
        lambda total, header: total + length(header["key"]) + length(header["value"]) + F.lit(_HEADER_ROOM),
    )
    return F.lit(_BATCH_ROOM) + length(F.col("key")) + length(F.col("value")) + headers


def _limit(letter_bytes: int) -> int:
    """Doubled until it is enough, so that it seldom changes."""
    return max(_LIMIT_MIN, 1 << (letter_bytes - 1).bit_length())


def _reason(rule: Rule) -> str:
    if rule.late_ms is not None:
        return f"{rule.name}: {rule.condition} is later than allowed"
    return f"{rule.name}: {rule.condition} is not true"


def _header(name: str, value: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(F.lit(PREFIX + name).alias("key"), F.coalesce(value, F.lit("")).cast("binary").alias("value"))
