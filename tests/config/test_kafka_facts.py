"""Apache Kafka itself is asked: our table says the same, and takes and refuses the same values.

Where we differ on purpose, the difference stands here with its reason.
"""

from __future__ import annotations

import base64
import subprocess
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.java import java_command
from tools.kafka_jars import classpath

from ottla.config.definitions import broker_definitions, topic_definitions
from ottla.config.definitions.ottla import TABLE as OWN
from ottla.config.definitions.zookeeper import TABLE as ZOOKEEPER
from ottla.config.errors import ConfigError
from ottla.config.files import PropertyFileError, parse_properties
from ottla.config.topic import SYNONYMS
from ottla.config.values import Definition, parse, value_text

pytestmark = pytest.mark.java
PROGRAM = Path(__file__).parent / "java" / "ConfigFacts.java"

#: Ours, Kafka's.
OTHER_DEFAULTS = {
    "log.dir": (None, "/tmp/kafka-logs"),  # a folder under the user's state directory, found at start
    "node.id": ("-1", "<required>"),  # as broker.id: a single broker needs no number
    "controller.listener.names": (None, "<required>"),  # there is no controller quorum
    "process.roles": ("", "<required>"),
}
#: Listeners are bound at start and stay.
OTHER_MODES = {
    "listeners": ("read-only", "per-broker"),
    "listener.security.protocol.map": ("read-only", "per-broker"),
}
#: Kafka checks these too, but later than its own definitions do; and quorum addresses are not read here at all.
OTHER_RULES = {
    "log.retention.ms": "retention",
    "log.retention.minutes": "retention",
    "log.retention.hours": "retention",
    "log.roll.ms": "roll-ms",
    "log.roll.jitter.ms": "roll-jitter-ms",
    "offsets.topic.compression.codec": "codec-number",
    "share.coordinator.state.topic.compression.codec": "codec-number",
    "controller.quorum.voters": None,
    "controller.quorum.bootstrap.servers": None,
    "log.segment.bytes": "14..",  # as Kafka 3.9: whoever wants to watch segments roll sets it small
    "segment.bytes": "14..",
    "process.roles": "{broker,controller}",
    "node.id": "-1..",
}
#: Properties that Kafka 4.3 reads outside of its table: of replication's throttles and of its authorizer.
OUTSIDE_THE_TABLE = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "super.users",
    "allow.everyone.if.no.acl.found",
}

#: A topic's properties that Kafka 4.3 does not know.
OF_OLDER_KAFKA = {"replica.lag.max.messages"}

TEXTS = ["", " ", "0", "1", "-1", "-2", "+5", " 7 ", "007", "abc", "1e3", "0.5", "1.5", "-0.5", "1.", ".5", "1e-1d"]
TEXTS += ["true", "TRUE", "yes", "delete", "delete,compact", "delete,delete", "delete,,compact", " compact , delete "]
TEXTS += ["DELETE", "*", "*,0:1", "0:1", "0:1,2:3", "a:b", "gzip", "GZIP", "producer", "none", "CreateTime", "SSL"]
TEXTS += ["99999999999", "2147483647", "2147483648", "-2147483648", "32767", "32768", "9223372036854775807"]
TEXTS += ["9223372036854775808", "1048576", "600000", "17", "22", "100", "5000", "bidirectional", "RS256", "a b", "--1"]


class Fact(NamedTuple):
    kind: str
    name: str
    type: str
    default: str
    rule: str
    importance: str
    internal: str
    mode: str


class Kafka(NamedTuple):
    """Everything that Kafka was asked, in one process: starting Java takes seconds."""

    tables: dict[str, dict[str, Fact]]
    synonyms: dict[str, str]
    #: By kind, name and text: the value as Kafka prints it, or None where it is refused.
    values: dict[tuple[str, str, str], str | None]
    #: One for each of FILES: the entries, or None where Kafka does not read the file.
    files: list[dict[str, str] | None]


@pytest.fixture(scope="module")
def kafka(kafka_jars: Path) -> Kafka:
    asked = [("broker", name, text) for name, text in product(sorted(kafka_names()), TEXTS)]
    topic_names = sorted(topic_definitions().keys() - OF_OLDER_KAFKA)
    asked += [("topic", name, text) for name, text in product(topic_names, TEXTS)]
    lines = [f"value\t{kind}\t{name}\t{encoded(text)}\n" for kind, name, text in asked]
    lines += [f"file\t{base64.b64encode(data).decode()}\n" for data in FILES]
    done = subprocess.run(
        java_command(classpath(kafka_jars), str(PROGRAM)),
        input="".join(lines),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    facts = [line.split("\t") for line in done.stdout.splitlines()]
    verdicts, files = facts[-len(lines) : -len(FILES)], facts[-len(FILES) :]
    return Kafka(
        tables={kind: {fact[1]: Fact(*fact) for fact in facts if fact[0] == kind} for kind in ("broker", "topic")},
        synonyms={fact[1]: fact[2] for fact in facts if fact[0] == "synonyms"},
        values={
            question: decoded(value) if verdict == "yes" else None
            for question, (verdict, value) in zip(asked, verdicts, strict=True)
        },
        files=[
            None if verdict == "fault" else {decoded(pair.split(":")[0]): decoded(pair.split(":")[1]) for pair in pairs}
            for verdict, *pairs in files
        ],
    )


def kafka_names() -> set[str]:
    return broker_definitions().keys() - names_in(ZOOKEEPER) - names_in(OWN) - OUTSIDE_THE_TABLE


def names_in(table: str) -> set[str]:
    return {line.split("  ")[0] for line in table.splitlines()[::2]}


def test_broker_names_are_kafkas_and_those_of_its_zookeeper_mode(kafka: Kafka) -> None:
    assert kafka.tables["broker"].keys() == kafka_names()


def test_topic_names_are_kafkas(kafka: Kafka) -> None:
    assert topic_definitions().keys() - OF_OLDER_KAFKA == kafka.tables["topic"].keys()


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_types_defaults_and_modes_are_kafkas(kafka: Kafka, kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    differences = []
    for name, fact in kafka.tables[kind].items():
        definition = ours[name]
        default = None if fact.default == "<null>" else fact.default
        pairs: list[tuple[str | None, str | None]] = [
            (definition.type, fact.type),
            (definition.importance, fact.importance),
            (str(definition.is_internal).lower(), fact.internal),
        ]
        if (definition.default, default) != OTHER_DEFAULTS.get(name):
            pairs.append((definition.default, default))
        if kind == "broker" and (definition.update_mode, fact.mode) != OTHER_MODES.get(name):
            pairs.append((definition.update_mode, fact.mode))
        differences += [(name, mine, theirs) for mine, theirs in pairs if mine != theirs]
    assert not differences


def test_topic_synonyms_are_kafkas(kafka: Kafka) -> None:
    assert {name: ",".join(names) for name, names in SYNONYMS.items() if name not in OF_OLDER_KAFKA} == kafka.synonyms


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_ranges_are_kafkas(kafka: Kafka, kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    for name, fact in kafka.tables[kind].items():
        checker, _, text = fact.rule.partition(":")
        if name in OTHER_RULES:
            assert ours[name].rule == OTHER_RULES[name], name
        elif checker == "Range":
            low, _, high = text.strip("[]").replace(",...", "|", 1).partition("|")
            assert ours[name].rule == f"{low}..{high.strip(',')}", name
        elif checker in {"ValidString", "ValidList"} and text:
            choices = "{" + text.strip("[]").replace(" ", "") + "}"
            assert (ours[name].rule or "").removeprefix("some") == choices, name


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_values_are_taken_and_refused_as_by_kafka(kafka: Kafka, kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    differences = []
    for (kind_asked, name, text), theirs in kafka.values.items():
        # A Java class is looked for by Kafka and by nobody here.
        if kind_asked == kind and name not in OTHER_RULES and ours[name].type != "CLASS":
            mine = verdict_of(ours[name], text)
            if mine != theirs:
                differences.append((name, text, mine, theirs))
    assert not differences


def verdict_of(definition: Definition, text: str) -> str | None:
    try:
        return value_text(definition, parse(definition, text))
    except ConfigError:
        return None


FILES = [
    b"",
    b"a=b\nc : d\n  e   f\n!x\n#y\n \\\n",
    b"listeners=PLAINTEXT://:9092,\\\n    SSL://:9093\n",
    b"a=1\\\\\nb=2\\\\\\\n  3\n",
    b"# a comment does not go on \\\nb=2\n",
    b"key\\ with\\:signs\\==v\\=w\\:x\n",
    b"tab=\\ta\\n\\r\\f\\q\\\\\n",
    b"u=\\u0041\\u00e9\\uD83D\\uDE00\n",
    b"a=1\r\nb=2\rc=3\n\n\r\n",
    b"a=1\na=2\n",
    b"alone\nalone2=\n=nameless\n:n\n",
    b"bad=\\u12\n",
    b"bad=\\u12G4\n",
    b"end\\",
    b"end=\\\n",
    b"a=\\\n   \\\n  b\n",
    b"a=\\\n#b\n",
    b"\\#a=b\n",
    b"a\x0cb\x0c=\x0cc\n",
    b"a =  = b\n",
    b"a  \t:\t\tb\n",
    b"lone=\\uD800x\n",
]


def test_property_files_are_read_as_by_java(kafka: Kafka) -> None:
    for data, theirs in zip(FILES, kafka.files, strict=True):
        if theirs is None:
            with pytest.raises(PropertyFileError):
                parse_properties(data)
        else:
            assert parse_properties(data) == theirs, data


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-16-be", "replace")
