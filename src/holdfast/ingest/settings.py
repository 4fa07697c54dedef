"""The settings of a feed, checked where they are given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.errors import BadDefinition

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
MOST_WORKERS = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a feed is read and consolidated."""

    workers: int = 30  # partitions at most, and pages at once
    page_size: int = 30
    least: int = 1000  # records of a partition
    batch: int = 2000
    upsert: int = 100
    parallel: int = 5
    max_rejects: int = 0
    max_delete_ratio: float = 0.5
    overlap: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        for name, least in (
            ("workers", 1), ("page_size", 1), ("least", 1), ("batch", 1), ("upsert", 1), ("parallel", 1),
            ("max_rejects", 0),
        ):  # fmt: skip
            _check_number(name, getattr(self, name), least)
        if self.workers > MOST_WORKERS:
            raise BadDefinition(
                f"workers must be at most {MOST_WORKERS}, got {self.workers}", where="workers", next="use 30"
            )
        if not 0 <= self.max_delete_ratio <= 1:
            raise BadDefinition(
                f"max_delete_ratio must be from 0 to 1, got {self.max_delete_ratio!r}",
                where="max_delete_ratio",
                next="use 0.5",
            )
        if self.overlap < timedelta(0):
            raise BadDefinition(f"overlap must not be negative, got {self.overlap}", where="overlap", next='use "15m"')

    def document(self) -> dict[str, Any]:
        """Return what the database and people read of it."""
        return {
            "workers": self.workers,
            "page_size": self.page_size,
            "batch": self.batch,
            "upsert": self.upsert,
            "parallel": self.parallel,
            "max_rejects": self.max_rejects,
            "max_delete_ratio": self.max_delete_ratio,
            "overlap": self.overlap.total_seconds(),
        }


def check_page_size(given: Any) -> None:
    """Raise BadDefinition for a page without records."""
    _check_number("page_size", given, 1)


def check_timezone(given: Any) -> None:
    """Raise BadDefinition for a time zone that does not exist; None was not given."""
    try:
        if given is not None:
            ZoneInfo(given)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise BadDefinition(
            f"there is no time zone {given!r:.60}", where="timezone", next="use a name such as Europe/Berlin"
        ) from None


def _check_number(name: str, given: Any, least: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise BadDefinition(
            f"{name} must be a whole number from {least}, got {given!r}", where=name, next="leave it out"
        )


def check_feed_name(given: Any) -> None:
    """Raise BadDefinition for a name that cannot be part of the name of a table."""
    if not isinstance(given, str) or not NAME.fullmatch(given):
        raise BadDefinition(
            f"the name of a feed must match {NAME.pattern}, got {given!r}",
            where="name",
            next="use lower-case letters, digits and underscores",
        )
