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

from ottla.config.definitions import broker_definitions, topic_definitions
from ottla.config.definitions.ottla import TABLE as OWN
from ottla.config.definitions.zookeeper import TABLE as ZOOKEEPER
from ottla.config.describe import value_text
from ottla.config.errors import ConfigError
from ottla.config.files import PropertyFileError, parse_properties
from ottla.config.topic import SYNONYMS
from ottla.config.values import Definition, parse

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
    "log.roll.ms": "1..",
    "log.roll.jitter.ms": "0..",
    "offsets.topic.compression.codec": "codec-number",
    "share.coordinator.state.topic.compression.codec": "codec-number",
    "controller.quorum.voters": None,
    "controller.quorum.bootstrap.servers": None,
    "controller.listener.names": None,
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


def ask(jars: Path, command: str, lines: str = "") -> list[list[str]]:
    done = subprocess.run(
        ["java", "-cp", f"{jars}/*", str(PROGRAM), command], input=lines, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def facts(kafka_jars: Path) -> list[list[str]]:
    return ask(kafka_jars, "facts")


def kafka_table(facts: list[list[str]], kind: str) -> dict[str, Fact]:
    return {fact[1]: Fact(*fact) for fact in facts if fact[0] == kind}


def names_in(table: str) -> set[str]:
    return {line.split("  ")[0] for line in table.splitlines()[::2]}


def test_broker_names_are_kafkas_and_those_of_its_zookeeper_mode(facts: list[list[str]]) -> None:
    kafka = kafka_table(facts, "broker").keys()
    ours = broker_definitions().keys()
    assert kafka - ours == set()
    assert ours - kafka == names_in(ZOOKEEPER) | names_in(OWN) | OUTSIDE_THE_TABLE


def test_topic_names_are_kafkas(facts: list[list[str]]) -> None:
    assert topic_definitions().keys() == kafka_table(facts, "topic").keys()


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_types_defaults_and_modes_are_kafkas(facts: list[list[str]], kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    differences = []
    for name, fact in kafka_table(facts, kind).items():
        definition = ours[name]
        default = None if fact.default == "<null>" else fact.default
        pairs = [
            (definition.type, fact.type),
            (definition.importance, fact.importance),
            (str(definition.is_internal).lower(), fact.internal),
        ]
        if (definition.default, default) != OTHER_DEFAULTS.get(name):
            pairs.append((definition.default, default))
        if kind == "broker" and (definition.update_mode, fact.mode) != OTHER_MODES.get(name):
            pairs.append((definition.update_mode, fact.mode))
        differences += [(name, mine, theirs) for mine, theirs in pairs if mine != theirs]
    assert differences == []


def test_topic_synonyms_are_kafkas(facts: list[list[str]]) -> None:
    assert {name: ",".join(names) for name, names in SYNONYMS.items()} == {
        fact[1]: fact[2] for fact in facts if fact[0] == "synonyms"
    }


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_ranges_are_kafkas(facts: list[list[str]], kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    for name, fact in kafka_table(facts, kind).items():
        checker, _, text = fact.rule.partition(":")
        if name in OTHER_RULES:
            assert ours[name].rule == OTHER_RULES[name]
        elif checker == "Range":
            low, _, high = text.strip("[]").replace(",...", "|", 1).partition("|")
            assert ours[name].rule == f"{low}..{high.strip(',')}", name
        elif checker in {"ValidString", "ValidList"} and text:
            assert ours[name].rule == "{" + text.strip("[]").replace(" ", "") + "}", name


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_values_are_taken_and_refused_as_by_kafka(kafka_jars: Path, facts: list[list[str]], kind: str) -> None:
    ours = broker_definitions() if kind == "broker" else topic_definitions()
    # A Java class is looked for by Kafka and by nobody here.
    names = [name for name, fact in kafka_table(facts, kind).items() if fact.type != "CLASS" and name not in OTHER_RULES]
    asked = list(product(names, TEXTS))
    lines = "".join(f"{kind}\t{name}\t{encoded(text)}\n" for name, text in asked)
    answers = ask(kafka_jars, "judge", lines)
    assert len(answers) == len(asked)
    differences = []
    for (name, text), (verdict, value) in zip(asked, answers, strict=True):
        theirs = decoded(value) if verdict == "yes" else None
        mine = verdict_of(ours[name], text)
        if mine != theirs:
            differences.append((name, text, mine, theirs))
    assert differences == []


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


def test_property_files_are_read_as_by_java(kafka_jars: Path) -> None:
    answers = ask(kafka_jars, "properties", "".join(base64.b64encode(data).decode() + "\n" for data in FILES))
    assert len(answers) == len(FILES)
    for data, (verdict, *pairs) in zip(FILES, answers, strict=True):
        if verdict == "fault":
            with pytest.raises(PropertyFileError):
                parse_properties(data)
            continue
        theirs = dict(pair.split(":") for pair in pairs)
        assert parse_properties(data) == {decoded(name): decoded(value) for name, value in theirs.items()}, data


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-16-be", "replace")
