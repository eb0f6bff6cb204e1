"""``python -m bench``: see ``command.py``."""

import os
import sys
from pathlib import Path


def start() -> int:
    """Also from a checkout whose package is not installed."""
    sources = str(Path(__file__).resolve().parent.parent / "src")
    sys.path.insert(0, sources)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sources, os.environ.get("PYTHONPATH")]))
    from bench.command import main

    return main()


if __name__ == "__main__":
    raise SystemExit(start())
