"""`/metrics` over a socket: what a scraper gets, and what everybody else gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from ottla.metrics import CONTENT_TYPE, Registry
from ottla.server import metrics_http
from ottla.server.metrics_http import CONNECTIONS_MAX, REQUEST_BYTES_MAX, MetricsEndpoint


def registry() -> Registry:
    made = Registry()
    made.counter("seen_total", "What was seen.").value = 3
    return made


@asynccontextmanager
async def served() -> AsyncIterator[MetricsEndpoint]:
    endpoint = MetricsEndpoint(registry(), "127.0.0.1", 0)
    await endpoint.start()
    try:
        yield endpoint
    finally:
        await endpoint.close()


def with_endpoint(scenario: Callable[[MetricsEndpoint], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served() as endpoint:
            await asyncio.wait_for(scenario(endpoint), 30)

    asyncio.run(run())


async def asked(endpoint: MetricsEndpoint, request: bytes, *, half_close: bool = False) -> tuple[bytes, bytes]:
    """Head and body of the answer; both empty where the connection was closed without one."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        writer.write(request)
        if half_close:
            writer.write_eof()
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nobody tells when a connection has come or gone
        await asyncio.sleep(0.001)


def status(head: bytes) -> int:
    return int(head.split()[1])


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /metrics HTTP/1.0\r\n\r\n",
        b"GET /metrics?name[]=seen_total HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\n\n",
    ],
)
def test_a_scrape(request_: bytes) -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        head, body = await asked(endpoint, request_)
        assert head.startswith(b"HTTP/1.0 200 OK\r\n")
        assert f"Content-Type: {CONTENT_TYPE}".encode() in head
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"\nseen_total 3\n" in body

    with_endpoint(scenario)


def test_a_scrape_in_pieces_and_from_one_who_half_closes() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        for piece in (b"GET /met", b"rics HTTP/1.1\r", b"\n\r", b"\n"):
            writer.write(piece)
            await writer.drain()
        assert b"seen_total 3" in await reader.read()
        writer.close()
        head, _ = await asked(endpoint, b"GET /metrics HTTP/1.1\r\n\r\n", half_close=True)
        assert status(head) == 200

    with_endpoint(scenario)


def test_head_has_no_body() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        head, body = await asked(endpoint, b"HEAD /metrics HTTP/1.1\r\n\r\n")
        assert status(head) == 200
        assert body == b""
        assert b"Content-Length: 0" not in head

    with_endpoint(scenario)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\xff\xfe\x00\r\n\r\n", 400),
        (b"GET /metrics SPDY\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"x" * REQUEST_BYTES_MAX, 431),
    ],
)
def test_what_is_no_scrape(request_: bytes, expected: int) -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        head, body = await asked(endpoint, request_)
        assert status(head) == expected
        assert body.count(b"\n") == 1

    with_endpoint(scenario)


def test_one_who_leaves_before_asking_gets_nothing() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        assert await asked(endpoint, b"GET /metr", half_close=True) == (b"", b"")
        assert status((await asked(endpoint, b"GET /metrics HTTP/1.1\r\n\r\n"))[0]) == 200

    with_endpoint(scenario)


def test_a_silent_connection_is_closed_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_http, "SECONDS_MAX", 0.05)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        assert await asked(endpoint, b"GET /metrics") == (b"", b"")

    with_endpoint(scenario)


def test_beyond_the_limit_connections_are_closed_and_later_ones_served() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        silent = [await asyncio.open_connection(endpoint.host, endpoint.port) for _ in range(CONNECTIONS_MAX)]
        await until(lambda: len(endpoint.connections) == CONNECTIONS_MAX)
        assert await asked(endpoint, b"GET /metrics HTTP/1.1\r\n\r\n") == (b"", b"")
        for _, writer in silent:
            writer.close()
        await until(lambda: not endpoint.connections)
        assert status((await asked(endpoint, b"GET /metrics HTTP/1.1\r\n\r\n"))[0]) == 200

    with_endpoint(scenario)


def test_close_ends_open_connections() -> None:
    async def scenario() -> None:
        async with served() as endpoint:
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            await until(lambda: bool(endpoint.connections))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_port_that_is_taken() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        with pytest.raises(OSError, match="in use"):
            await MetricsEndpoint(registry(), endpoint.host, endpoint.port).start()

    with_endpoint(scenario)
