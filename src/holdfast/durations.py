"""Durations as people give them: seconds, a `timedelta`, or text such as "1h30m". This is the only parser."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from itertools import pairwise
from typing import Any

from holdfast.errors import BadInput, HoldfastError

Duration = timedelta | float | str  # a bare number is seconds, as a number or as text
ZERO = timedelta(0)
LONGEST = timedelta(days=36500)
FORMS = 'seconds, a timedelta or text such as "200ms", "10s", "5m", "1h30m" or "2d"'
_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})\s*(ms|min|[wdhms])\s*")
_TEXT = re.compile(rf"(?:{_PART.pattern})+")
PATTERN = rf"^\s*(?:{_NUMBER}|(?:{_NUMBER}\s*(?:ms|min|[wdhms])\s*)+)\s*$"  # of the text, for JSON Schema


def duration(given: Any, field: str, *, error: type[HoldfastError] = BadInput) -> timedelta:
    """Read a duration; `field` is the argument that it was given for, and `error` the type that is raised."""
    try:
        return parse(given)
    except ValueError as reason:
        raise error(f"{field} {reason}", where=field, next=f"use {FORMS}") from None


def wait(given: Any, field: str) -> timedelta:
    """Read how long to wait for something. A moment that has passed is now, and no wait is longer than LONGEST."""
    if isinstance(given, timedelta):
        return min(max(ZERO, given), LONGEST)
    if _is_number(given) and given < 0:
        return ZERO
    return duration(given, field)


def parse(given: Any) -> timedelta:
    """Read a duration; raises ValueError, whose text begins with "must be"."""
    read = _read(given)
    if read is None:
        raise ValueError(f"must be a duration such as 30s or 1h30m, got {given!r:.80}")
    if read < ZERO:
        raise ValueError(f"must not be negative, got {given!r:.80}")
    if read > LONGEST:
        raise ValueError(f"must be at most {LONGEST.days} days, got {given!r:.80}")
    return read


def _read(given: Any) -> timedelta | None:
    if isinstance(given, timedelta):
        return given
    if _is_number(given):
        return _seconds(given)
    return _read_text(given.strip()) if isinstance(given, str) else None


def _read_text(text: str) -> timedelta | None:
    if re.fullmatch(_NUMBER, text):
        return _seconds(float(text))
    if not _TEXT.fullmatch(text):
        return None
    parts = _PART.findall(text)
    sizes = [_UNITS[unit] for _, unit in parts]
    if any(size <= after for size, after in pairwise(sizes)):
        return None  # 5m1h: it is more likely a slip than meant
    return _seconds(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _seconds(number: Any) -> timedelta | None:
    if isinstance(number, float) and math.isnan(number):
        return None
    most = LONGEST.total_seconds() + 1  # one more is refused as too long
    return timedelta(seconds=max(-1.0, min(number, most)))


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)
