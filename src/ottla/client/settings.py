"""The settings of a client, under Kafka's property names: `linger.ms` in a mapping, `linger_ms` as a keyword.

    Producer({"bootstrap.servers": "localhost:9092"}, linger_ms=20)

A name that does not exist is refused with the nearest one; a name of Kafka's that is not served yet is refused by
name, since a client that ignores `ssl.truststore.location` would talk in the clear without a word. None stands for a
setting's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, TypeVar

from ottla.client.arguments import a_kind_of, shown
from ottla.client.errors import SettingsError

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
#: What can be in flight at once while a broker remembers enough batches to recognise a repeated one.
IDEMPOTENT_IN_FLIGHT_MAX: Final = 5
#: Of an answer that nobody asked to be larger: five times Kafka's `fetch.max.bytes`, and a batch of any usual size.
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
#: What an answer to Fetch has beside the records.
_AROUND_RECORDS_BYTES: Final = 16 * 1024 * 1024
#: Characters of a wrong value that a message repeats.
_SHOWN_MAX: Final = 80
_PORT_DIGITS_MAX: Final = 5
_LISTENER: Final = re.compile(r"^[0-9A-Za-z._%-]*://")

_NAMES: Final = frozenset(
    ("group_id", "group_instance_id", "transactional_id", "schema_registry_url", "basic_auth_user_info")
)
_NAMES_OR_CALLABLES: Final = frozenset(("partitioner", "key_subject_name_strategy", "value_subject_name_strategy"))

#: A string's length on the wire is an int16.
_WORD_CHARACTERS_MAX: Final = 2**15 - 1

Settings = TypeVar("Settings", bound="ClientSettings")


def setting(
    default: Any,
    *,
    least: int | None = None,
    most: int = INT64_MAX,
    one_of: tuple[str, ...] | None = None,
) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "one_of": one_of})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What every client has."""

    #: `host:port`, several separated by commas, or a list of them: any part of the cluster.
    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "ottla"
    security_protocol: str = setting("PLAINTEXT", one_of=("PLAINTEXT",))
    #: How long to wait for one answer.
    request_timeout_ms: int = setting(30_000, least=1, most=INT32_MAX)
    #: How long a call that asks several times may take altogether.
    default_api_timeout_ms: int = setting(60_000, least=0, most=INT32_MAX)
    socket_connection_setup_timeout_ms: int = setting(10_000, least=1)
    connections_max_idle_ms: int = setting(540_000, least=-1)
    metadata_max_age_ms: int = setting(300_000, least=0)
    reconnect_backoff_ms: int = setting(50, least=0)
    reconnect_backoff_max_ms: int = setting(1_000, least=0)
    retry_backoff_ms: int = setting(100, least=0)
    retry_backoff_max_ms: int = setting(1_000, least=0)

    @property
    def answer_bytes_max(self) -> int:
        """An answer larger than this is taken for garbage."""
        return ANSWER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings(ClientSettings):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(ClientSettings):
    #: all (-1), 1 or 0. Kafka writes them as words: both are taken.
    acks: int = setting(-1, least=-1, most=1)
    enable_idempotence: bool | None = None
    max_in_flight_requests_per_connection: int = setting(5, least=1, most=100)
    retries: int = setting(INT32_MAX, least=0, most=INT32_MAX)
    #: Who this producer is over its restarts: with it records are sent in transactions, and only in these.
    transactional_id: str | None = None
    #: After so long the coordinator aborts a transaction by itself.
    transaction_timeout_ms: int = setting(60_000, least=1, most=INT32_MAX)
    #: From `send` to the acknowledgement, everything included.
    delivery_timeout_ms: int = setting(120_000, least=0, most=INT32_MAX)
    linger_ms: int = setting(5, least=0)
    batch_size: int = setting(16_384, least=0, most=INT32_MAX)
    #: Records that wait, with what keeping them costs; `send` waits while it is full.
    buffer_memory: int = setting(32 * 1024 * 1024, least=0)
    #: How long `send` may wait for room or for a topic's metadata.
    max_block_ms: int = setting(60_000, least=0)
    max_request_size: int = setting(1_048_576, least=0, most=INT32_MAX)
    compression_type: str = setting("none", one_of=("none", "gzip", "snappy", "lz4", "zstd"))
    compression_gzip_level: int | None = None
    compression_lz4_level: int | None = None
    compression_zstd_level: int | None = None
    metadata_max_idle_ms: int = setting(300_000, least=5_000)
    #: A name of `ottla.client.producing.partitioners` or a callable `(topic, key, partition count) -> partition`.
    partitioner: Any = "murmur2"
    partitioner_ignore_keys: bool = False
    #: A name of `ottla.client.serializers` or a callable.
    key_serializer: Any = None
    value_serializer: Any = None
    #: Where the schemas of `avro` and `protobuf` are: URLs with commas between them, or a folder.
    schema_registry_url: str | None = None
    basic_auth_user_info: str | None = field(default=None, repr=False)
    http_connect_timeout_ms: int = setting(10_000, least=1, most=INT32_MAX)
    http_read_timeout_ms: int = setting(10_000, least=1, most=INT32_MAX)
    auto_register_schemas: bool = True
    #: A name of `ottla.formats.subjects` or a callable.
    key_subject_name_strategy: Any = "TopicNameStrategy"
    value_subject_name_strategy: Any = "TopicNameStrategy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(ClientSettings):
    #: Without one there are no committed offsets and nothing to subscribe with.
    group_id: str | None = None
    #: A name that a member keeps over its restarts: within `session.timeout.ms` it finds its partitions again.
    group_instance_id: str | None = None
    group_protocol: str = setting("classic", one_of=("classic",))
    #: Names (`range`, `roundrobin`, `sticky`, `cooperative-sticky`), classes or instances of assignors, the best first.
    partition_assignment_strategy: Any = ("range", "cooperative-sticky")
    #: A member that is silent for so long has crashed.
    session_timeout_ms: int = setting(45_000, least=1, most=INT32_MAX)
    heartbeat_interval_ms: int = setting(3_000, least=1, most=INT32_MAX)
    #: A member that does not poll for so long hangs: it leaves, and the others get its partitions.
    max_poll_interval_ms: int = setting(300_000, least=1, most=INT32_MAX)
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = setting(5_000, least=0, most=INT32_MAX)
    #: Whether a pattern passes over `__consumer_offsets` and its like.
    exclude_internal_topics: bool = True
    client_rack: str = ""
    auto_offset_reset: str = "latest"
    isolation_level: str = setting("read_uncommitted", one_of=("read_uncommitted", "read_committed"))
    fetch_min_bytes: int = setting(1, least=0, most=INT32_MAX)
    fetch_max_bytes: int = setting(50 * 1024 * 1024, least=0, most=INT32_MAX)
    fetch_max_wait_ms: int = setting(500, least=0, most=INT32_MAX)
    max_partition_fetch_bytes: int = setting(1_048_576, least=0, most=INT32_MAX)
    max_poll_records: int = setting(500, least=1, most=INT32_MAX)
    check_crcs: bool = True
    allow_auto_create_topics: bool = True
    #: A name of `ottla.client.serializers` or a callable.
    key_deserializer: Any = None
    value_deserializer: Any = None
    #: Where the schemas of `avro` and `protobuf` are: URLs with commas between them, or a folder.
    schema_registry_url: str | None = None
    basic_auth_user_info: str | None = field(default=None, repr=False)
    http_connect_timeout_ms: int = setting(10_000, least=1, most=INT32_MAX)
    http_read_timeout_ms: int = setting(10_000, least=1, most=INT32_MAX)

    @property
    def answer_bytes_max(self) -> int:
        records = max(self.fetch_max_bytes, self.max_partition_fetch_bytes)
        return max(ANSWER_BYTES_MAX, min(records + _AROUND_RECORDS_BYTES, INT32_MAX))


def parse_settings(kind: type[Settings], given: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> Settings:
    """Checked settings from a mapping (dotted names or not) and keywords, which win."""
    values = checked_values(kind, given, keywords)
    if "bootstrap_servers" not in values:
        raise SettingsError("bootstrap.servers is missing: give at least one host:port")
    made = kind(**values)
    if isinstance(made, ConsumerSettings) and made.heartbeat_interval_ms >= made.session_timeout_ms:
        raise SettingsError(
            f"heartbeat.interval.ms must be less than session.timeout.ms, which is {made.session_timeout_ms}, "
            f"not {made.heartbeat_interval_ms}"
        )
    return made


def checked_values(kind: type[Any], given: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a class of settings, by the names of its fields."""
    known = {one.name: one for one in fields(kind)}
    values: dict[str, Any] = {}
    if given is not None and not isinstance(given, Mapping):
        raise SettingsError(
            f"settings must be a mapping of names to values, not {a_kind_of(given)}; addresses alone are "
            "bootstrap_servers=..."
        )
    for source in (given or {}), keywords:
        for name, value in source.items():
            if not isinstance(name, str):
                raise SettingsError(f"the name of a setting must be a str, not {a_kind_of(name)}")
            plain = name.replace(".", "_")
            if plain not in known:
                raise _unknown(name, list(known))
            values[plain] = _checked(known[plain], value)
    return values


def _unknown(name: str, known: list[str]) -> SettingsError:
    from difflib import get_close_matches

    from ottla.client.other_names import of_another_client

    dotted = name.replace("_", ".")
    said = of_another_client(dotted.lower())
    if said is not None:
        return SettingsError(f"{dotted} {said}")

    near = get_close_matches(name.replace(".", "_"), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0].replace('_', '.')}?" if near else ""
    return SettingsError(f"there is no setting {dotted}{hint}")


def _checked(setting: Field[Any], value: Any) -> Any:
    name = setting.name.replace("_", ".")
    if setting.name == "bootstrap_servers":
        return parse_addresses(value)
    if value is None and setting.default is not MISSING:
        return setting.default  # a program passes on what it may not have
    if setting.name == "acks":
        value = {"all": -1}.get(value, value) if isinstance(value, str) else value
    if setting.name in _NAMES and value is not None:
        return _name(name, value)
    if setting.name == "security_protocol" and isinstance(value, str) and value.upper() != "PLAINTEXT":
        raise SettingsError(f"security.protocol {value[:_SHOWN_MAX]} is not there yet: only PLAINTEXT is")
    default = setting.default
    if default is MISSING:
        return value
    if setting.name == "enable_idempotence" or isinstance(default, bool):
        return _boolean(name, value)
    if isinstance(default, int) or (setting.name.endswith("_level") and setting.name.startswith("compression")):
        return _integer(name, value, setting.metadata.get("least"), setting.metadata.get("most", INT64_MAX))
    if setting.name == "group_protocol" and isinstance(value, str) and value.lower() == "consumer":
        raise SettingsError(
            "group.protocol=consumer (KIP-848) is not there yet in this client: only classic is, "
            "whose members may share a group with clients of the newer protocol"
        )
    if isinstance(default, str) and setting.name not in _NAMES_OR_CALLABLES:
        return _word(name, value, setting.metadata.get("one_of"))
    return value


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise SettingsError(f"{name} must be true or false, not {shown(value)}")


def _integer(name: str, value: Any, least: int | None, most: int) -> int:
    try:
        number = int(str(value))  # by its text: 1.5 and True are no whole numbers
    except ValueError:
        raise SettingsError(f"{name} must be a whole number, not {shown(value)}") from None
    if (least is not None and number < least) or number > most:
        raise SettingsError(f"{name} must be from {least} to {most}, not {shown(number)}")
    return number


def _word(name: str, value: Any, one_of: tuple[str, ...] | None) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{name} must be a word, not {a_kind_of(value)}")  # it may be secret
    if len(value) > _WORD_CHARACTERS_MAX:
        raise SettingsError(f"{name} is a word of {len(value)} characters: {_WORD_CHARACTERS_MAX} at most can be sent")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise SettingsError(f"{name} {value[:_SHOWN_MAX]!a} is no text that UTF-8 can write") from None
    if size > _WORD_CHARACTERS_MAX:
        raise SettingsError(f"{name} is a word of {size} bytes: {_WORD_CHARACTERS_MAX} at most can be sent")
    if one_of is not None:
        by_case = {word.lower(): word for word in one_of}
        if value.lower() not in by_case:
            raise SettingsError(f"{name} must be one of {', '.join(one_of)}, not {shown(value)}")
        return by_case[value.lower()]
    return value


def _name(name: str, value: Any) -> str:
    word = _word(name, value, None)
    if not word.strip():
        raise SettingsError(f"{name} must not be empty")
    return word


def parse_addresses(value: Any) -> tuple[tuple[str, int], ...]:
    """`a:9092,[::1]:9092`, or a list of such, as pairs. As in Kafka a missing port is an error, and a listener's name
    in front (`PLAINTEXT://a:9092`, as a broker's own settings have it) means nothing."""
    if not isinstance(value, str) and not isinstance(value, Iterable):
        raise SettingsError(f"bootstrap.servers must be host:port, or a list of such, not {a_kind_of(value)}")
    pieces = value.split(",") if isinstance(value, str) else list(value)
    found: list[tuple[str, int]] = []
    for piece in pieces:
        text = str(piece).strip()
        if not text:
            continue
        host, colon, port = _LISTENER.sub("", text).rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        is_port = port.isdecimal() and len(port) <= _PORT_DIGITS_MAX and 0 < int(port) < 65_536
        if not colon or not _is_host(host) or not is_port:
            raise SettingsError(f"bootstrap.servers: {text[:_SHOWN_MAX]!r} is no host:port")
        if (host, int(port)) not in found:
            found.append((host, int(port)))
    if not found:
        raise SettingsError("bootstrap.servers names no address")
    return tuple(found)


def _is_host(text: str) -> bool:
    """Whether it can be looked up: the resolver takes names as IDNA writes them, in which a label has 63 characters."""
    try:
        return "/" not in text and bool(text.encode("idna"))
    except UnicodeError:
        return False
