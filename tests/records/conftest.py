"""Property tests here are about bytes, never about how long a busy machine takes over them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("without deadlines", settings(), deadline=None)
settings.load_profile("without deadlines")
