"""`python -m ottla`."""

from __future__ import annotations

import sys

from ottla.cli.main import main

sys.exit(main())
