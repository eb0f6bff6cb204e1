"""Schema registries: what keeps schemas by ids and subjects. Over HTTP (`http`), or a folder of files (`folder`).

What is under an id never changes, so `cache` asks for each once.
"""

from __future__ import annotations

from functools import lru_cache

from ottla.formats.errors import BadSpec
from ottla.formats.registry.cache import CachedRegistry
from ottla.formats.registry.interface import SchemaRegistry
from ottla.formats.settings import FormatSettings

__all__ = ["CachedRegistry", "SchemaRegistry", "registry_for"]

#: Registries that a process has used last, with their caches: Spark's tasks make their decoders anew.
_REGISTRIES_MAX = 16


def registry_for(settings: FormatSettings) -> CachedRegistry | None:
    """The registry that the settings name; None where they name none."""
    url = settings.schema_registry_url
    if url is None:
        return None
    if not url.strip():
        raise BadSpec("schema.registry.url is empty")
    return _opened(
        url.strip(), settings.basic_auth_user_info, settings.http_connect_timeout_ms, settings.http_read_timeout_ms
    )


@lru_cache(maxsize=_REGISTRIES_MAX)
def _opened(url: str, user_info: str | None, connect_timeout_ms: int, read_timeout_ms: int) -> CachedRegistry:
    if "://" not in url or url.startswith("file://"):
        from ottla.formats.registry.folder import FolderRegistry

        return CachedRegistry(FolderRegistry(url.removeprefix("file://")))
    from ottla.formats.registry.http import HttpRegistry, HttpSettings

    return CachedRegistry(
        HttpRegistry(
            HttpSettings(
                urls=tuple(one.strip() for one in url.split(",") if one.strip()),
                user_info=user_info,
                connect_timeout_ms=connect_timeout_ms,
                read_timeout_ms=read_timeout_ms,
            )
        )
    )
