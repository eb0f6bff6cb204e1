"""Dead letters: records whose rows a table has dropped, as they came, in `<topic>-dlq`, with headers that say why.

Kafka allows a topic's name letters, digits, '.', '_' and '-' alone; of these only '-' makes no trouble in metrics.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.client.admin.results import NewTopic
from ottla.client.errors import TopicAlreadyExists
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


def dead_letter_topic(topic: str) -> str:
    return topic + ENDING


def send(frame: Any, rules: tuple[Rule, ...], pipeline: str, table: str, kafka: dict[str, str]) -> int:
    """The records of all rows of a marked frame that are dropped; how many there were."""
    bad = letters(frame, rules, pipeline, table)
    if bad is None:
        return 0
    bad = bad.persist()
    try:
        counted = {row["topic"]: row["count"] for row in bad.groupBy("topic").count().collect()}
        if not counted:
            return 0
        have_topics(sorted(counted), kafka)
        bad.write.format("ottla").options(**kafka).mode("append").save()
        return sum(counted.values())
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


def have_topics(topics: list[str], kafka: dict[str, str]) -> None:
    """Creates those that are not there."""
    with Admin(client_settings(kafka)) as admin:
        there = set(admin.list_topics())
        for topic in topics:
            if topic not in there:
                try:
                    admin.create_topics([NewTopic(topic, 1, -1, _CONFIGS)])
                except TopicAlreadyExists:
                    continue


def _reason(rule: Rule) -> str:
    if rule.late_ms is not None:
        return f"{rule.name}: {rule.condition} is later than allowed"
    return f"{rule.name}: {rule.condition} is not true"


def _header(name: str, value: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(F.lit(PREFIX + name).alias("key"), F.coalesce(value, F.lit("")).cast("binary").alias("value"))
