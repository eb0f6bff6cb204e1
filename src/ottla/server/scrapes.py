"""The texts that scrapers get, one made after the other however many ask.

    asked -> waits for the next text -> the text is made, in turns with everything else -> sent, a chunk a turn

Everybody that asks while a text is made gets the next one, which all of them share: what they read was read after they
had asked, and a thousand scrapers cost as much as one. Between two texts the loop is left alone for three times as
long as the last one took, so that scraping never takes more than a quarter of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.metrics import Registry
from ottla.steps import in_turns

log_event = logs.logger("metrics")

#: How much longer than the last text took nobody makes the next one; a second at the most.
REST_TIMES: Final = 3
REST_S_MAX: Final = 1.0
#: Texts that somebody still reads. Beyond it those who read the oldest are cut off: they have had their time.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024


class ScrapedText:
    """The answer to everybody that has asked before it was begun."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks
        self.bytes = sum(map(len, chunks))
        #: Call-backs that cut off those who still read it, by reader.
        self.readers: dict[object, Callable[[], None]] = {}


class Scrapes:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        #: What those who have asked wait for; a text that is being made is not theirs.
        self._next: asyncio.Future[ScrapedText] | None = None
        self._making: asyncio.Task[None] | None = None
        #: Texts that are read, oldest first.
        self._held: list[ScrapedText] = []

    async def text(self) -> ScrapedText:
        """A text that was begun after this was called. Raises what a fault of ours raised."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._making is None:
            self._making = asyncio.ensure_future(self._make_all())
        return await asyncio.shield(self._next)

    async def _make_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (wanted := self._next) is not None:
                self._next = None
                begun = loop.time()
                try:
                    chunks = await in_turns(self._registry.rendering(), lambda: int(loop.time() * 1000))
                except Exception as fault:
                    log_event.error("a scrape failed", reason=repr(fault))
                    wanted.set_exception(fault)
                    wanted.exception()  # those who asked may have gone
                else:
                    wanted.set_result(self._kept(ScrapedText(chunks)))
                await asyncio.sleep(min(REST_TIMES * (loop.time() - begun), REST_S_MAX))
        finally:
            self._making = None

    def _kept(self, text: ScrapedText) -> ScrapedText:
        self._held = [each for each in self._held if each.readers]
        while self._held and sum(each.bytes for each in self._held) + text.bytes > HELD_BYTES_MAX:
            for cut_off in list(self._held.pop(0).readers.values()):
                cut_off()
        self._held.append(text)
        return text

    def close(self) -> None:
        if self._making is not None:
            self._making.cancel()
        if self._next is not None:
            self._next.cancel()
