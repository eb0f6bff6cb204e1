"""A schema registry by its documented interface, in memory, with faults to order: there is none other here."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from ottla.formats.registry import _opened


class RegistryServer:
    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        #: Ids by version, from the first on.
        self.subjects: dict[str, list[int]] = {}
        #: Paths of versions that were deleted softly: they are there for those who ask for them as such.
        self.deleted: set[str] = set()
        self.asked: list[str] = []
        #: What the next questions are answered with, in place of an answer: a status and a body, or None: silence.
        self.faults: list[tuple[int, bytes] | None] = []
        self.wanted_authorization: str | None = None
        self.incompatible = False
        self.authorizations: list[str | None] = []
        #: Set when a question that gets silence may go on.
        self.go_on = threading.Event()
        self._lock = threading.Lock()
        self.url = ""

    def add(self, subject: str, schema: str, kind: str = "AVRO", references: list[Any] | None = None) -> int:
        with self._lock:
            said = {"schema": schema, "schemaType": kind, "references": references or []}
            schema_id = next((one for one, known in self.schemas.items() if known == said), len(self.schemas) + 1)
            self.schemas[schema_id] = said
            versions = self.subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            return schema_id

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            schema = self.schemas.get(int(found[1]))
            return (404, _error(40403, "Schema not found")) if schema is None else (200, _plain(schema))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(latest|\d+)", path):
            return self._version(unquote(found[1]), found[2])
        if found := re.fullmatch(r"/(?:compatibility/)?subjects/([^/]+)(/versions(?:/latest)?)?", path):
            return self._posted(method, unquote(found[1]), path, body)
        return 404, _error(404, "HTTP 404 Not Found")

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, _error(40401, f"Subject '{subject}' not found.")
        number = len(versions) if version == "latest" else int(version)
        if not 0 < number <= len(versions):
            return 404, _error(40402, "Version not found.")
        schema_id = versions[number - 1]
        beside = {"subject": subject, "version": number, "id": schema_id}
        return 200, {**beside, **_plain(self.schemas[schema_id])}

    def _posted(self, method: str, subject: str, path: str, body: Any) -> tuple[int, Any]:
        if method != "POST":
            return 405, _error(405, "Method not allowed")
        if path.startswith("/compatibility/"):
            found = subject in self.subjects
            return (200, {"is_compatible": not self.incompatible}) if found else (404, _error(40401, "none"))
        if self.incompatible:
            return 409, _error(409, "Schema being registered is incompatible with an earlier schema")
        kind = body.get("schemaType", "AVRO")
        if path.endswith("/versions"):
            return 200, {"id": self.add(subject, body["schema"], kind, body.get("references"))}
        said = {"schema": body["schema"], "schemaType": kind, "references": body.get("references") or []}
        for number, schema_id in enumerate(self.subjects.get(subject, []), 1):
            if self.schemas[schema_id] == said:
                return 200, {"subject": subject, "version": number, "id": schema_id, **_plain(said)}
        return 404, _error(40403, "Schema not found")


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """As Confluent's answers: Avro is not named, and no references are not either."""
    found = {"schema": schema["schema"]}
    if schema["schemaType"] != "AVRO":
        found["schemaType"] = schema["schemaType"]
    if schema["references"]:
        found["references"] = schema["references"]
    return found


def _serialized(schema: str) -> str:
    """A Protobuf schema as a descriptor in base64, as Confluent's Python client wants it."""
    if not schema.startswith("syntax") and "message" not in schema:
        return schema
    from base64 import b64encode

    from ottla.formats.protobuf.source_text import parse_proto

    return b64encode(parse_proto(schema, "default").SerializeToString()).decode()


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def _serve(self, method: str) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            split = urlsplit(self.path)
            path = split.path
            registry.asked.append(f"{method} {path}")
            registry.authorizations.append(self.headers.get("Authorization"))
            fault = registry.faults.pop(0) if registry.faults else (0, b"")
            if fault is None:
                registry.go_on.wait(30)
                fault = (0, b"")
            if registry.wanted_authorization not in (None, self.headers.get("Authorization")):
                fault = (401, json.dumps(_error(401, "Unauthorized")).encode())
            status, body = fault
            if not status:
                if path in registry.deleted and "deleted=true" not in split.query:
                    path += "/deleted"
                status, said = registry.answer(method, path, json.loads(raw) if raw else None)
                if "format=serialized" in split.query and said.get("schemaType") == "PROTOBUF":
                    said["schema"] = _serialized(said["schema"])
                body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class has that name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    # The kernel gives a port again that an earlier one had, and what is under an id is taken never to change.
    _opened.cache_clear()
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        registry.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
