"""`/metrics` over a socket: what a scraper gets, and what everybody else gets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest

from ottla.metrics import CONTENT_TYPE, Registry
from ottla.metrics.registry import CHUNK_CHARACTERS
from ottla.server import metrics_http, scrapes
from ottla.server.metrics_http import (
    ACCEPTS_A_TURN,
    BEHIND_BYTES_MAX,
    CONNECTIONS_MAX,
    READY,
    REQUEST_BYTES_MAX,
    Condition,
    MetricsEndpoint,
)

SCRAPE = b"GET /metrics HTTP/1.1\r\n\r\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that a test holds are not closed for the time that a busy machine takes."""
    monkeypatch.setattr(metrics_http, "SECONDS_MAX", 60.0)


def registry() -> Registry:
    made = Registry()
    made.counter("seen_total", "What was seen.").value = 3
    return made


@asynccontextmanager
async def served(
    numbers: Registry | None = None, condition: Callable[[], Condition] = lambda: READY
) -> AsyncIterator[MetricsEndpoint]:
    endpoint = MetricsEndpoint(registry() if numbers is None else numbers, "127.0.0.1", 0, condition)
    await endpoint.start()
    try:
        yield endpoint
    finally:
        await endpoint.close()


def with_endpoint(
    scenario: Callable[[MetricsEndpoint], Awaitable[None]],
    numbers: Registry | None = None,
    condition: Callable[[], Condition] = lambda: READY,
) -> None:
    async def run() -> None:
        async with served(numbers, condition) as endpoint:
            await asyncio.wait_for(scenario(endpoint), 60)

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


def test_idle_connections_keep_no_scraper_out() -> None:
    """As many as anybody likes: the one that was idle longest goes, and those that wait for an answer stay."""

    async def scenario(endpoint: MetricsEndpoint) -> None:
        with ExitStack() as idle:
            for _ in range(4 * CONNECTIONS_MAX):
                idle.enter_context(socket.create_connection((endpoint.host, endpoint.port)))
                await asyncio.sleep(0)
            await until(lambda: len(endpoint.connections) == CONNECTIONS_MAX)
            for _ in range(3):
                assert status((await asked(endpoint, SCRAPE))[0]) == 200
            assert len(endpoint.connections) <= CONNECTIONS_MAX

    with_endpoint(scenario)


def test_who_takes_something_of_its_answer_goes_last() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        with ExitStack() as crowd:
            for _ in range(CONNECTIONS_MAX):
                crowd.enter_context(socket.create_connection((endpoint.host, endpoint.port)))
                await asyncio.sleep(0)
            await until(lambda: len(endpoint.connections) == CONNECTIONS_MAX)
            first, second, *_ = endpoint.connections
            first.moved_s += 1  # though it came first
            crowd.enter_context(socket.create_connection((endpoint.host, endpoint.port)))
            await until(lambda: second not in endpoint.connections)
            assert first in endpoint.connections

    with_endpoint(scenario)


def test_no_more_scrapers_than_the_limit_are_served_at_once() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        waiting = asyncio.Event()

        async def never() -> scrapes.ScrapedText:
            await waiting.wait()
            return await scrapes.Scrapes.text(endpoint.scrapes)

        endpoint.scrapes.text = never  # type: ignore[method-assign]
        all_asked = [asyncio.ensure_future(asked(endpoint, SCRAPE)) for _ in range(CONNECTIONS_MAX)]
        await until(lambda: sum(not each.is_idle for each in endpoint.connections) == CONNECTIONS_MAX)
        assert await asked(endpoint, SCRAPE) == (b"", b"")
        waiting.set()
        assert {status(head) for head, _ in await asyncio.gather(*all_asked)} == {200}

    with_endpoint(scenario)


def test_a_crowd_is_accepted_a_few_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    connection_made = metrics_http._Scrape.connection_made

    def counting(self: metrics_http._Scrape, transport: asyncio.BaseTransport) -> None:
        nonlocal made
        made += 1
        connection_made(self, transport)

    monkeypatch.setattr(metrics_http._Scrape, "connection_made", counting)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        with ExitStack() as crowd:
            for _ in range(100):
                crowd.enter_context(socket.create_connection((endpoint.host, endpoint.port)))
            before = made
            while made < 100:
                await asyncio.sleep(0)
                # One more than it says is taken by asyncio of Python 3.13.
                assert made - before <= ACCEPTS_A_TURN + 1
                before = made

    with_endpoint(scenario)


@pytest.mark.parametrize(
    ("condition", "health", "ready"),
    [
        (Condition(None, "starting"), (200, b"ok\n"), (503, b"starting\n")),
        (READY, (200, b"ok\n"), (200, b"ready\n")),
        (Condition(None, "stopping"), (200, b"ok\n"), (503, b"stopping\n")),
        (
            Condition("the disk is gone", "ready"),
            (503, b"the broker gives up: the disk is gone\n"),
            (503, b"the broker gives up: the disk is gone\n"),
        ),
    ],
)
def test_health_and_readiness(condition: Condition, health: tuple[int, bytes], ready: tuple[int, bytes]) -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        for path, expected in ((b"/health", health), (b"/ready", ready)):
            head, body = await asked(endpoint, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (status(head), body) == expected
            assert b"text/plain; charset=utf-8" in head
            head, body = await asked(endpoint, b"HEAD " + path + b" HTTP/1.1\r\n\r\n")
            assert (status(head), body) == (expected[0], b"")
            assert status((await asked(endpoint, b"POST " + path + b" HTTP/1.1\r\n\r\n"))[0]) == 405
        assert status((await asked(endpoint, SCRAPE))[0]) == 200

    with_endpoint(scenario, condition=lambda: condition)


def test_all_who_ask_meanwhile_share_one_text() -> None:
    numbers = large_registry(10_000)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        answers = await asyncio.gather(*(asked(endpoint, SCRAPE) for _ in range(CONNECTIONS_MAX)))
        assert {status(head) for head, _ in answers} == {200}
        assert len({body for _, body in answers}) <= numbers.scrapes
        # The first that was heard had one to itself; accepting the others takes some turns.
        assert numbers.scrapes <= 3

    with_endpoint(scenario, numbers)


def test_what_is_read_was_read_after_it_was_asked_for() -> None:
    """A scraper that asks while a text is made gets a later one."""
    numbers = large_registry(2_000)
    begun, number = asyncio.Event(), 1.0

    def read() -> float:
        begun.set()
        return number

    numbers.gauge("a_first", "F.", read)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        nonlocal number
        first = asyncio.ensure_future(asked(endpoint, SCRAPE))
        await begun.wait()
        number = 2.0
        second = await endpoint.scrapes.text()
        assert b"\na_first 2\n" in second.chunks[0]
        assert b"\na_first 1\n" in (await first)[1]

    with_endpoint(scenario, numbers)


def test_a_scraper_that_leaves_takes_nobody_along() -> None:
    numbers = large_registry(5_000)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        leaving = asyncio.ensure_future(asked(endpoint, SCRAPE))
        staying = asyncio.ensure_future(asked(endpoint, SCRAPE))
        await until(lambda: numbers.scrapes > 0)
        leaving.cancel()
        assert status((await staying)[0]) == 200

    with_endpoint(scenario, numbers)


def test_a_fault_of_a_scrape_ends_that_scrape_alone(log_lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = registry()

    async def scenario(endpoint: MetricsEndpoint) -> None:
        with monkeypatch.context() as planted:
            planted.setattr(numbers, "rendering", lambda: 1 // 0)
            assert await asked(endpoint, SCRAPE) == (b"", b"")
        assert status((await asked(endpoint, SCRAPE))[0]) == 200

    with_endpoint(scenario, numbers)
    assert sum("a scrape failed" in line for line in log_lines) == 1


def large_registry(partitions: int, topic: str = "a" * 200) -> Registry:
    def sizes() -> Iterator[tuple[tuple[str, str], float]]:
        for number in range(partitions):
            yield (topic, str(number)), number

    made = registry()
    for letter in "bcd":
        made.gauges(f"kafka_{letter}", "S.", ("topic", "partition"), sizes)
    return made


def test_those_who_do_not_read_hold_one_text_between_them() -> None:
    numbers = large_registry(20_000)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        with ExitStack() as slow:
            for _ in range(CONNECTIONS_MAX):
                reader = slow.enter_context(socket.socket())
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.connect((endpoint.host, endpoint.port))
                reader.sendall(SCRAPE)
                await asyncio.sleep(0)
            await until(lambda: sum(each._is_full for each in endpoint.connections) == CONNECTIONS_MAX)
            texts = {each._text for each in endpoint.connections}
            assert None not in texts
            assert len(texts) <= numbers.scrapes
            assert min(text.bytes for text in texts if text is not None) > 10_000_000
            for each in endpoint.connections:
                assert each._transport is not None
                assert each._transport.get_write_buffer_size() <= CHUNK_CHARACTERS + 20_000  # type: ignore[attr-defined]
            # And they keep nobody else out.
            head, body = await asked(endpoint, SCRAPE)
            assert status(head) == 200
            assert f"Content-Length: {len(body)}".encode() in head

    with_endpoint(scenario, numbers)


def test_texts_that_somebody_still_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who read the oldest are cut off."""
    numbers = large_registry(20_000)
    monkeypatch.setattr(scrapes, "HELD_BYTES_MAX", 40_000_000)
    monkeypatch.setattr(scrapes, "REST_TIMES", 0)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        with ExitStack() as slow:
            for number in range(5):
                reader = slow.enter_context(socket.create_connection((endpoint.host, endpoint.port)))
                reader.sendall(SCRAPE)
                await until(lambda number=number: numbers.scrapes == number + 1)  # type: ignore[misc]
                await until(lambda: all(each._is_full for each in endpoint.connections))
            held = {each._text for each in endpoint.connections if each._text is not None}
            assert 1 <= len(held) < 5
            assert sum(text.bytes for text in held) <= 40_000_000

    with_endpoint(scenario, numbers)


def test_what_comes_behind_a_request_is_bounded() -> None:
    """A second request is passed over, and whoever goes on sending is cut off."""
    numbers = large_registry(20_000)

    async def scenario(endpoint: MetricsEndpoint) -> None:
        head, body = await asked(endpoint, SCRAPE + SCRAPE)
        assert status(head) == 200
        assert f"Content-Length: {len(body)}".encode() in head
        _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(SCRAPE)
        await until(lambda: any(each._answered for each in endpoint.connections))
        sent = 0
        while endpoint.connections:
            writer.write(b"x" * 1000)
            sent += 1000
            await asyncio.sleep(0.001)
        # And not because its time was over, which is as long as all of this may take.
        assert sent > REQUEST_BYTES_MAX + BEHIND_BYTES_MAX - 1000
        writer.close()

    with_endpoint(scenario, numbers)


def test_close_ends_open_connections() -> None:
    async def scenario() -> None:
        async with served() as endpoint:
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            await until(lambda: bool(endpoint.connections))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_port_that_is_taken() -> None:
    async def scenario(endpoint: MetricsEndpoint) -> None:
        with pytest.raises(OSError, match="in use"):
            await MetricsEndpoint(registry(), endpoint.host, endpoint.port, lambda: READY).start()

    with_endpoint(scenario)
