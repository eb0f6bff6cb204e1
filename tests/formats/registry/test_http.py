"""A registry over HTTP: what is asked, what is said of its faults, and how often it is asked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable

import pytest
from tests.formats.registry_server import RegistryServer

from ottla.formats.errors import (
    BadSpec,
    RegistryError,
    RegistryUnreachable,
    SchemaNotFound,
    SchemaRefused,
)
from ottla.formats.registry.cache import REFERENCE_DEPTH_MAX, UNKNOWN_S, CachedRegistry
from ottla.formats.registry.http import ANSWER_BYTES_MAX, PAUSE_S, TRIES, HttpRegistry, HttpSettings
from ottla.formats.registry.interface import AVRO, PROTOBUF, Reference, WrittenSchema

LONG = WrittenSchema(kind=AVRO, text='"long"')


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def asking(registry: RegistryServer, *, pause: Callable[[float], None] | None = None, **more: object) -> HttpRegistry:
    settings = HttpSettings(urls=(registry.url,), **more)  # type: ignore[arg-type]  # of several types
    return HttpRegistry(settings, Pauses() if pause is None else pause)


def test_register_find_and_read_back(registry: RegistryServer) -> None:
    ours = asking(registry)
    subject = "a/b c-value"
    reference = Reference(name="other", subject="other-value", version=1)
    proto = WrittenSchema(kind=PROTOBUF, text='syntax = "proto3";', references=(reference,))
    with pytest.raises(SchemaNotFound, match="Schema not found"):
        ours.find(subject, LONG)
    assert ours.register(subject, LONG) == 1
    assert ours.register(subject, proto) == 2
    assert ours.find(subject, LONG) == 1
    assert ours.by_id(2) == proto
    assert (ours.latest(subject).version, ours.latest(subject).schema) == (2, proto)
    assert ours.version(subject, 1).schema == LONG
    assert registry.asked[0] == "POST /subjects/a%2Fb%20c-value"


def test_whether_a_subject_would_take_it(registry: RegistryServer) -> None:
    ours = asking(registry)
    assert ours.compatible("new", LONG)
    ours.register("new", LONG)
    registry.incompatible = True
    assert not ours.compatible("new", LONG)
    with pytest.raises(SchemaRefused, match="incompatible with an earlier schema"):
        ours.register("new", WrittenSchema(kind=AVRO, text='"int"'))


def test_an_error_names_place_and_id(registry: RegistryServer) -> None:
    with pytest.raises(SchemaNotFound) as caught:
        asking(registry).by_id(77)
    assert f"{registry.url}: GET /schemas/ids/77: Schema not found (40403)" in str(caught.value)


def test_a_registry_with_a_fault_is_asked_again(registry: RegistryServer) -> None:
    registry.add("s", '"long"')
    pauses = Pauses()
    registry.faults = [(503, b"<html>"), (429, b"{}")]
    assert asking(registry, pause=pauses).by_id(1) == LONG
    assert pauses == [PAUSE_S, 2 * PAUSE_S]
    registry.faults = [(500, b'{"error_code": 50001, "message": "no store"}')] * TRIES
    with pytest.raises(RegistryUnreachable, match=r"GET /schemas/ids/1: 500 no store \(50001\)"):
        asking(registry).by_id(1)


@pytest.mark.parametrize(
    "body", [b"<html>no such page</html>", b"", b'{"status": 404}', pytest.param(b"[" * 100_000, id="deep")]
)
def test_what_a_proxy_does_not_find_is_not_said_of_a_schema(registry: RegistryServer, body: bytes) -> None:
    """All records would be taken for bad ones, while the registry behind it starts."""
    registry.add("s", '"long"')
    registry.faults = [(404, body)]
    assert asking(registry).by_id(1) == LONG
    registry.faults = [(404, body)] * TRIES
    with pytest.raises(RegistryUnreachable, match=r"no schema registry answers under schema\.registry\.url: .*ids/1"):
        asking(registry).by_id(1)


def test_a_path_that_is_none_is_not_said_of_a_schema(registry: RegistryServer) -> None:
    registry.add("s", '"long"')
    ours = HttpRegistry(HttpSettings(urls=(f"{registry.url}/wrong",)), Pauses())
    with pytest.raises(RegistryUnreachable, match=r"/wrong: GET /schemas/ids/1: 404 HTTP 404 Not Found"):
        ours.by_id(1)


def test_a_registry_that_is_away(registry: RegistryServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{taken.getsockname()[1]}/registry/"
        pauses = Pauses()
        with pytest.raises(RegistryUnreachable, match=r"not reached: http://127.*/registry: GET /schemas/ids/1"):
            HttpRegistry(HttpSettings(urls=(away,)), pauses).by_id(1)
        assert len(pauses) == TRIES - 1
        # Another one of its URLs answers.
        registry.add("s", '"long"')
        both = HttpRegistry(HttpSettings(urls=(away, registry.url)), pauses)
        assert both.by_id(1) == LONG
        assert len(pauses) == TRIES - 1


def test_a_registry_that_is_silent(registry: RegistryServer) -> None:
    registry.faults = [None] * TRIES
    with pytest.raises(RegistryUnreachable, match="timed out"):
        asking(registry, read_timeout_ms=50).by_id(1)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ((200, b"<html>hello</html>"), "no schema registry"),
        ((200, b"[1]"), "no schema registry"),
        ((200, b"[" * 100_000), "no schema registry"),
        ((200, b"{}"), "no schema"),
        ((200, b'{"schema": 5}'), "no schema"),
        ((200, b'{"schema": "", "schemaType": "XML"}'), "unknown type: 'XML'"),
        ((200, b'{"schema": "", "references": [5]}'), "a reference"),
        ((200, b'{"schema": "", "references": [{"name": "a", "subject": "b", "version": -1}]}'), "version is -1"),
        ((302, b""), "answered 302"),
        ((418, b'{"message": "teapot"}'), "answered 418: .*teapot"),
        ((403, b"{}"), "set basic.auth.user.info"),
    ],
)
def test_answers_that_are_none(registry: RegistryServer, fault: tuple[int, bytes], said: str) -> None:
    registry.faults = [fault]
    with pytest.raises(RegistryError, match=said):
        asking(registry).by_id(1)
    assert len(registry.asked) == 1


def test_an_answer_without_end(registry: RegistryServer) -> None:
    registry.faults = [(200, b" " * (ANSWER_BYTES_MAX + 1))] * TRIES
    with pytest.raises(RegistryUnreachable, match=f"more than {ANSWER_BYTES_MAX} bytes"):
        asking(registry).by_id(1)


def test_an_answer_that_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def serve() -> None:
            for _ in range(TRIES):
                peer, _ = listening.accept()
                with peer:
                    peer.recv(4096)
                    peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"schema": ')

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(RegistryUnreachable, match="the answer is cut off"):
            HttpRegistry(HttpSettings(urls=(url,)), Pauses()).by_id(1)
        thread.join()


def test_credentials(registry: RegistryServer) -> None:
    registry.add("s", '"long"')
    registry.wanted_authorization = "Basic YWRhOmIlYw=="
    with pytest.raises(RegistryError, match=r"basic\.auth\.user\.info"):
        asking(registry).by_id(1)
    assert asking(registry, user_info="ada:b%c").by_id(1) == LONG
    in_url = HttpRegistry(HttpSettings(urls=(registry.url.replace("//", "//ada:b%25c@"),)))
    assert in_url.by_id(1) == LONG
    assert "ada" not in in_url.place


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:99999", "http://x:0", "http://[::1"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(BadSpec, match=r"schema\.registry\.url"):
        HttpRegistry(HttpSettings(urls=(url,)))


# The cache


def test_each_id_is_asked_for_once(registry: RegistryServer) -> None:
    registry.add("s", '"long"')
    now = [0.0]
    cached = CachedRegistry(asking(registry), lambda: now[0])
    for _ in range(3):
        assert cached.by_id(1) == LONG
        with pytest.raises(SchemaNotFound, match="/schemas/ids/2"):
            cached.by_id(2)
    assert registry.asked == ["GET /schemas/ids/1", "GET /schemas/ids/2"]
    assert cached.refuses(2)
    # It may have come meanwhile.
    registry.add("s", '"int"')
    now[0] = UNKNOWN_S
    assert not cached.refuses(2)
    assert cached.by_id(2).text == '"int"'


def test_a_registry_that_was_away_is_asked_again(registry: RegistryServer) -> None:
    registry.add("s", '"long"')
    cached = CachedRegistry(asking(registry))
    registry.faults = [(500, b"")] * TRIES
    with pytest.raises(RegistryUnreachable):
        cached.by_id(1)
    assert cached.by_id(1) == LONG


def test_references_stand_behind_what_they_need(registry: RegistryServer) -> None:
    registry.add("c", '"C"')
    registry.add("b", '"B"', references=[{"name": "c", "subject": "c", "version": 1}])
    refers = [{"name": name, "subject": name, "version": 1} for name in ("b", "c")]
    schema_id = registry.add("a", '"A"', references=refers)
    cached = CachedRegistry(asking(registry))
    assert [name for name, _ in cached.behind(cached.by_id(schema_id))] == ["c", "b"]


def test_a_reference_to_a_version_that_was_deleted_softly(registry: RegistryServer) -> None:
    registry.add("b", '"B"')
    schema_id = registry.add("a", '"A"', references=[{"name": "b", "subject": "b", "version": 1}])
    registry.deleted.add("/subjects/b/versions/1")
    cached = CachedRegistry(asking(registry))
    assert [name for name, _ in cached.behind(cached.by_id(schema_id))] == ["b"]


def test_references_in_a_circle(registry: RegistryServer) -> None:
    refers = [{"name": "n", "subject": "s", "version": 1}]
    for number in range(REFERENCE_DEPTH_MAX + 2):
        refers = [{"name": str(number), "subject": f"s{number + 1}", "version": 1}]
        registry.add(f"s{number}", json.dumps(str(number)), references=refers)
    cached = CachedRegistry(asking(registry))
    with pytest.raises(RegistryError, match="refers to more than"):
        cached.behind(cached.latest("s0").schema)
