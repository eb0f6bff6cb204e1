"""`--where`: which records are wanted, in a small language that has Python's grammar and none of its powers.

    key == 'alice' and value.amount > 10
    headers.source in ['web', 'app'] or timestamp >= time('2026-11-21T10:00')
    value.lines[0].price * value.lines[0].count > 100 and not startswith(value.sku, 'test-')

Names are key, value, headers, timestamp (ms), partition, offset, topic. Key and value are text; a dot or a bracket
behind them looks inside of their JSON. What is not there (a field, a header, JSON at all) is null, and null is neither
more nor less than anything. What cannot be compared, such as text with a number, never is. No record makes an
expression fail.
"""

from __future__ import annotations

from ottla.cli.where.parsing import Where, parse_where

__all__ = ["Where", "parse_where"]
