"""A registry over HTTP, by Confluent's interface, which Karapace, Apicurio (`/apis/ccompat/v7`) and Redpanda serve too.

    GET  /schemas/ids/{id}                       POST /subjects/{subject}            is it there? (find)
    GET  /subjects/{subject}/versions/{version}  POST /subjects/{subject}/versions   register
                                                 POST /compatibility/subjects/{subject}/versions/latest

A question is asked `TRIES` times where the registry is away or says that it has a fault of its own, at each of its URLs
in turn. It waits: a caller with an event loop asks in a thread.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from ottla.formats.errors import (
    BadSpec,
    RegistryError,
    RegistryUnreachable,
    SchemaNotFound,
    SchemaRefused,
)
from ottla.formats.registry.interface import (
    AVRO,
    INT32_MAX,
    KINDS,
    SCHEMA_BYTES_MAX,
    Reference,
    RegisteredSchema,
    SchemaRegistry,
    WrittenSchema,
)

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
#: How often each question is asked, and how long is waited before the second time; twice as long before the third.
TRIES: Final = 3
PAUSE_S: Final = 0.2
#: A schema in JSON's text takes twice its size at most (each quote gets a backslash); the rest is beside it.
ANSWER_BYTES_MAX: Final = 2 * SCHEMA_BYTES_MAX + 65_536
#: An answer is read in pieces, and the clock is looked at between them: drops do not keep a reader for ever.
_PIECE_BYTES: Final = 65_536
#: Of what an answer that is no JSON says.
_SHOWN_MAX: Final = 200
_RETRIED: Final = (429, 500, 502, 503, 504)
#: What servers of Confluent's kind say of a path that they do not serve.
_NO_SUCH_PATH: Final = "HTTP 404 Not Found"
#: Of the references that an answer may name; `cache` has the bound of all.
_REFERENCES_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    urls: tuple[str, ...]
    user_info: str | None = None
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000


class HttpRegistry(SchemaRegistry):
    def __init__(self, settings: HttpSettings, pause: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._urls = [_parsed(url) for url in settings.urls]
        if not self._urls:
            raise BadSpec("schema.registry.url names no URL")
        self._pause = pause
        self.place = ",".join(_shown(url) for url in self._urls)

    def by_id(self, schema_id: int) -> WrittenSchema:
        return _schema(self._asked("GET", f"/schemas/ids/{schema_id}"), self.place)

    def latest(self, subject: str) -> RegisteredSchema:
        return self._version(subject, "latest")

    def version(self, subject: str, version: int) -> RegisteredSchema:
        # A version that was deleted softly can be referred to still: Confluent's clients ask for it like this too.
        return self._version(subject, f"{version}?deleted=true")

    def _version(self, subject: str, version: str) -> RegisteredSchema:
        answer = self._asked("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return RegisteredSchema(
            subject=subject,
            version=_number(answer, "version", self.place),
            schema_id=_number(answer, "id", self.place),
            schema=_schema(answer, self.place),
        )

    def register(self, subject: str, schema: WrittenSchema) -> int:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return _number(self._asked("POST", path, _body(schema)), "id", self.place)

    def find(self, subject: str, schema: WrittenSchema) -> int:
        path = f"/subjects/{quote(subject, safe='')}"
        return _number(self._asked("POST", path, _body(schema)), "id", self.place)

    def compatible(self, subject: str, schema: WrittenSchema) -> bool:
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest"
        try:
            return bool(self._asked("POST", path, _body(schema)).get("is_compatible"))
        except SchemaNotFound:
            return True  # the first version of a subject is compatible with all that are before it

    def _asked(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """What the registry answers; raises what is wrong with it."""
        fault: RegistryUnreachable | None = None
        for number in range(TRIES):
            if number:
                self._pause(PAUSE_S * 2 ** (number - 1))
            for url in self._urls:
                try:
                    return self._answer(url, method, path, body)
                except RegistryUnreachable as error:
                    fault = error
        assert fault is not None
        raise fault

    def _answer(self, url: SplitResult, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        what = f"{_shown(url)}: {method} {path}"
        try:
            status, location, raw = self._exchanged(url, method, path, body)
        except (OSError, HTTPException, ValueError) as error:
            raise RegistryUnreachable(f"the schema registry is not reached: {what}: {_cause(error)}") from error
        if status == 200:
            return _object(raw, what)
        said = _said(raw)
        if status in _RETRIED:
            raise RegistryUnreachable(f"the schema registry has a fault: {what}: {status} {said}")
        if status == 404 and _is_of_a_registry(raw):
            raise SchemaNotFound(f"the schema registry does not have it: {what}: {said}")
        if status == 404:  # of a proxy whose registry is away, or of a path that is none: no record has a fault
            raise RegistryUnreachable(f"no schema registry answers under schema.registry.url: {what}: 404 {said}")
        if status in (409, 422):
            raise SchemaRefused(f"the schema registry refuses the schema: {what}: {said}")
        if status in (401, 403):
            raise RegistryError(
                f"the schema registry does not let us in: {what}: {status} {said}; set basic.auth.user.info"
            )
        if location is not None:
            said = f"it sends us to {location[:_SHOWN_MAX]}; name that in schema.registry.url"
        raise RegistryError(f"the schema registry answered {status}: {what}: {said}")

    def _exchanged(self, url: SplitResult, method: str, path: str, body: bytes | None) -> tuple[int, str | None, bytes]:
        """Status, where to go instead, and the answer's bytes, all within the time-outs."""
        settings = self._settings
        assert url.hostname is not None
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        connection = kind(url.hostname, url.port, timeout=settings.connect_timeout_ms / 1000)
        try:
            connection.connect()
            connection.sock.settimeout(settings.read_timeout_ms / 1000)
            end = time.monotonic() + settings.read_timeout_ms / 1000
            connection.request(method, url.path.rstrip("/") + path, body, self._headers(url, body))
            answer = connection.getresponse()
            pieces, size = [], 0
            while piece := answer.read1(_PIECE_BYTES):
                size += len(piece)
                if size > ANSWER_BYTES_MAX:
                    raise ValueError(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
                if time.monotonic() > end:
                    raise TimeoutError("timed out")
                pieces.append(piece)
            if answer.length:
                raise ValueError(f"the answer is cut off: {answer.length} bytes more were announced")
            return answer.status, answer.headers.get("Location"), b"".join(pieces)
        finally:
            connection.close()

    def _headers(self, url: SplitResult, body: bytes | None) -> dict[str, str]:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = CONTENT_TYPE
        user_info = self._settings.user_info
        if user_info is None and url.username is not None:
            user_info = f"{unquote(url.username)}:{unquote(url.password or '')}"
        if user_info is not None:
            headers["Authorization"] = f"Basic {b64encode(user_info.encode()).decode()}"
        return headers


def _parsed(url: str) -> SplitResult:
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError as error:
        raise BadSpec(f"schema.registry.url: {url!r} is no URL: {error}") from None
    if found.scheme not in ("http", "https") or not found.hostname or port == 0:
        raise BadSpec(f"schema.registry.url: {url!r} must be http://host:port or https://host:port")
    return found


def _shown(url: SplitResult) -> str:
    """Without a password."""
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}"


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__


def _body(schema: WrittenSchema) -> bytes:
    said: dict[str, Any] = {"schema": schema.text}
    if schema.kind != AVRO:
        said["schemaType"] = schema.kind
    if schema.references:
        said["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    return json.dumps(said).encode()


def _object(raw: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"what answers there is no schema registry: {what}: {raw[:_SHOWN_MAX]!r}")
    return found


def _said(raw: bytes) -> str:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return repr(raw[:_SHOWN_MAX])
    if isinstance(found, dict) and "message" in found:
        return f"{found['message']} ({found.get('error_code')})"
    return repr(raw[:_SHOWN_MAX])


def _is_of_a_registry(raw: bytes) -> bool:
    """Whether it was a registry that has looked, and did not find what was asked for."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "error_code" in found and found.get("message") != _NO_SUCH_PATH


def _number(answer: dict[str, Any], name: str, place: str) -> int:
    number = answer.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= INT32_MAX:
        raise RegistryError(f"{place}: the answer's {name} is {number!r}, which is none")
    return number


def _schema(answer: dict[str, Any], place: str) -> WrittenSchema:
    text, kind, given = answer.get("schema"), answer.get("schemaType") or AVRO, answer.get("references") or []
    if not isinstance(text, str) or kind not in KINDS or not isinstance(given, list):
        raise RegistryError(f"{place}: the answer has no schema, or one of an unknown type: {kind!r}")
    if len(text) > SCHEMA_BYTES_MAX or len(given) > _REFERENCES_MAX:
        raise RegistryError(f"{place}: a schema of {len(text)} characters with {len(given)} references is too large")
    references = []
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not isinstance(one.get("subject"), str):
            raise RegistryError(f"{place}: a reference of the schema is {one!r}, which is none")
        references.append(Reference(name=one["name"], subject=one["subject"], version=_number(one, "version", place)))
    return WrittenSchema(kind=kind, text=text, references=tuple(references))
