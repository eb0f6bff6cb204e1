"""Property files and `KAFKA_*` variables. (That files are read as Java reads them: `test_kafka_facts.py`.)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config import PropertyFileError, parse_properties
from ottla.config.environment import default_data_directory, properties_from, property_name
from ottla.config.files import FILE_BYTES_MAX


def test_a_server_properties_file() -> None:
    data = b"""\
############################# Server Basics
broker.id=0
! another comment
listeners = PLAINTEXT://:9092,\\
            SSL://:9093
log.dirs: /tmp/a
num.partitions 3
sasl.jaas.config=a.B required user\\="x";
empty=
broker.id=1
"""
    assert parse_properties(data) == {
        "listeners": "PLAINTEXT://:9092,SSL://:9093",
        "log.dirs": "/tmp/a",
        "num.partitions": "3",
        "sasl.jaas.config": 'a.B required user="x";',
        "empty": "",
        "broker.id": "1",
    }


def test_utf8_is_read_and_latin1_as_well() -> None:
    assert parse_properties("rack=Zürich".encode()) == {"rack": "Zürich"}
    assert parse_properties("rack=Zürich".encode("latin-1")) == {"rack": "Zürich"}
    assert parse_properties(b"\xef\xbb\xbfrack=x") == {"rack": "x"}


def test_a_fault_says_its_line() -> None:
    with pytest.raises(PropertyFileError, match=r"^line 3: a \\u is followed by four hexadecimal digits$"):
        parse_properties(b"a=1\n\nb=\\uZZZZ\n")


def test_a_file_of_another_kind_is_not_read_whole() -> None:
    with pytest.raises(PropertyFileError, match="longer than"):
        parse_properties(bytes(FILE_BYTES_MAX + 1))


@given(st.binary(max_size=200) | st.text(alphabet="ab=: \\u0041\n\r\t#!\x0c", max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes | str) -> None:
    try:
        properties = parse_properties(data)
    except PropertyFileError:
        return
    for name, value in properties.items():
        (name + value).encode()  # nothing that cannot be written again


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=5))
def test_what_is_escaped_is_read_back(properties: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    text = "\n".join(f"{escaped(name)}={escaped(value)}" for name, value in properties.items() if name)
    assert parse_properties(text) == {name: value for name, value in properties.items() if name}


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_A____B", "a-.b"),
        ("KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH", "listener.name.sasl_ssl.ssl.client.auth"),
    ],
)
def test_variables_name_properties_as_in_kafkas_image(variable: str, name: str) -> None:
    assert property_name(variable) == name


def test_variables_for_the_jvm_are_no_properties() -> None:
    env = {
        "KAFKA_OPTS": "x",
        "KAFKA_HEAP_OPTS": "x",
        "KAFKA_JMX_PORT": "1",
        "KAFKA_": "x",
        "PATH": "/bin",
        "KAFKAX": "1",
    }
    assert properties_from(env) == {}
    assert properties_from({**env, "KAFKA_BROKER_ID": "3"}) == {"broker.id": "3"}


@pytest.mark.parametrize(
    ("env", "directory"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/ottla/data"),
        ({"HOME": "/h/"}, "/h/.local/state/ottla/data"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/ottla/data"),
        ({}, "/var/lib/ottla/data"),
    ],
)
def test_data_lie_in_the_users_state_folder(env: dict[str, str], directory: str) -> None:
    assert default_data_directory(env) == directory
