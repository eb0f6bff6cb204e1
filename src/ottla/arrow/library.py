"""pyarrow, which is an optional dependency: where it is missing, what to install is said in one line."""

from __future__ import annotations

from typing import Any

from ottla.arrow.errors import ArrowMissing

try:
    import pyarrow
except ImportError as missing:
    raise ArrowMissing("this needs pyarrow: pip install 'ottla[arrow]'") from missing

#: It brings no types.
pa: Any = pyarrow
