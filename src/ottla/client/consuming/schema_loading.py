"""Schemas that values need and that nobody has fetched yet: a thread does, one at a time, and no loop waits for it."""

from __future__ import annotations

import asyncio

from ottla.client.schemas import SchemaNotLoaded


class SchemaLoading:
    def __init__(self) -> None:
        self._fetching: asyncio.Future[None] | None = None

    def begin(self, missing: SchemaNotLoaded) -> asyncio.Future[None]:
        """Goes on with the one that is being fetched, if there is one."""
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().run_in_executor(None, missing.load)
            self._fetching.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody asks
        return self._fetching

    async def ended(self, missing: SchemaNotLoaded, deadline: float | None) -> bool:
        """False when the time is up first: the thread goes on, and the next poll looks. Raises why it failed."""
        fetching = self.begin(missing)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(fetching)
        except TimeoutError:
            return False
        finally:
            if fetching.done():
                self._fetching = None
        return True

    def raise_failure(self) -> None:
        """Why one that nobody has waited for cannot be had."""
        fetching = self._fetching
        if fetching is not None and fetching.done():
            self._fetching = None
            fetching.result()
