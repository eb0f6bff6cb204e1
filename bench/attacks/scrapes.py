"""The port for Prometheus, of a broker with ten thousand partitions: a scrape of it has eighty thousand lines."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack, suppress

from tools.server_process import free_port

from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.connections import crowd
from bench.wire import HOST, create_topic

PARTITIONS = 10_000
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"
#: Prometheus gives up after ten seconds.
HONEST_SECONDS_MAX = 10.0
AGAIN_SECONDS = 0.5
SCRAPERS, SECONDS = 64, 5.0
IDLE = 4_000
RECEIVE_BYTES = 1 << 18


class Scraped(Attack):
    """Against a broker with the port open. Kafka has none by itself, so that there is nothing to attack."""

    #: An answer has eight megabytes, and some are held at once.
    bound = Bound(memory_mb=128, honest_seconds=HONEST_SECONDS_MAX)

    def __init__(self) -> None:
        self.metrics_port = free_port()
        self.properties = {"ottla.metrics.port": str(self.metrics_port)}

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, "scraped", PARTITIONS)
        self.scrape()

    def scrape(self) -> tuple[int, float]:
        """Bytes and seconds of an honest one, which comes again where it is closed: others may have all the places."""
        began = time.monotonic()
        while True:
            try:
                return self._scraped(), time.monotonic() - began
            except ConnectionError:
                if time.monotonic() - began > HONEST_SECONDS_MAX:
                    raise
                time.sleep(AGAIN_SECONDS)

    def _scraped(self) -> int:
        size = 0
        with socket.create_connection((HOST, self.metrics_port), timeout=HONEST_SECONDS_MAX) as connection:
            connection.sendall(SCRAPE)
            while data := connection.recv(RECEIVE_BYTES):
                size += len(data)
        if not size:
            # Closed as it came: a request that arrives before that makes it a reset, one that arrives after it an end.
            raise ConnectionError("there was no place")
        return size


class Scrapers(Scraped):
    name = "scrapes"
    sends = f"{SCRAPERS} connections at a time that scrape {PARTITIONS:,} partitions, for {SECONDS:g} seconds"
    bound = Bound(memory_mb=128)

    def run(self, victim: Victim) -> Outcome:
        if victim.kind == "kafka":
            return Outcome(said="it has no such port")
        whole = got = 0
        ends = time.monotonic() + SECONDS
        reading: dict[int, socket.socket] = {}
        with ExitStack() as stack, select.epoll() as ready:
            while time.monotonic() < ends:
                while len(reading) < SCRAPERS:
                    connection = stack.enter_context(socket.create_connection((HOST, self.metrics_port)))
                    with suppress(ConnectionError):
                        connection.sendall(SCRAPE)
                    reading[connection.fileno()] = connection
                    ready.register(connection, select.EPOLLIN)
                for number, _ in ready.poll(0.05):
                    data = b""
                    with suppress(ConnectionError):
                        data = reading[number].recv(RECEIVE_BYTES)
                    got += len(data)
                    if not data or data.endswith(b"ottla_metrics_cut_families 0\n"):
                        whole += bool(data)
                        ready.unregister(number)
                        reading.pop(number).close()
        return Outcome(said=f"{whole} scrapes, {got / MB:,.0f} MB of answers read")


class SlowScrapers(Scraped):
    name = "unread-scrapes"
    sends = f"{SCRAPERS} connections that scrape {PARTITIONS:,} partitions and never read, beside an honest one"

    def run(self, victim: Victim) -> Outcome:
        if victim.kind == "kafka":
            return Outcome(said="it has no such port")
        outcome = Outcome(honest_seconds=0.0)
        ends = time.monotonic() + SECONDS
        with ExitStack() as stack:
            while time.monotonic() < ends:
                crowd(stack, self.metrics_port, SCRAPERS, SCRAPE)
                size, seconds = self.scrape()
                outcome.honest_seconds = max(outcome.honest_seconds or 0.0, seconds)
                if size < PARTITIONS:
                    outcome.faults.append("an honest scrape was not answered")
        return outcome


class IdleScrapers(Scraped):
    name = "idle-scrapes"
    sends = f"{IDLE:,} connections to the port for metrics that say nothing, beside an honest scrape"

    def run(self, victim: Victim) -> Outcome:
        if victim.kind == "kafka":
            return Outcome(said="it has no such port")
        with ExitStack() as stack:
            opened = crowd(stack, self.metrics_port, IDLE)
            size, seconds = self.scrape()
            outcome = Outcome(said=f"{len(opened):,} connections taken", honest_seconds=seconds)
            if size < PARTITIONS:
                outcome.faults.append("an honest scrape was not answered")
            return outcome


def attacks() -> list[Attack]:
    return [Scrapers(), SlowScrapers(), IdleScrapers()]
