"""Parses the Retry-After header, in both of its forms."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=36500)  # longer delays are cut to this
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


def retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Parse seconds or an HTTP date; return None for anything else, or for a date before `now`."""
    written = (text or "").strip()
    if _SECONDS.fullmatch(written):
        return timedelta(seconds=min(float(written), LONGEST.total_seconds()))
    moment = http_date(written)
    if moment is None or moment < now:
        return None
    return min(moment - now, LONGEST)


def http_date(text: str | None) -> datetime | None:
    """Parse a date in any of HTTP's three forms; a date without a zone is GMT, as all of them are."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
