"""What may name something, and the other bounds of a start: checked where they are given, as the database has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from holdfast.errors import BadInput

LONGEST_NAME = 200  # characters of a queue, worker, tenant or handler
LONGEST_KEY = 400
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def problem(what: str, given: Any, longest: int = LONGEST_NAME) -> str | None:
    """Tell why a value cannot name something; None when it can."""
    if not isinstance(given, str):
        return f"{what} must be text, got {given!r}"
    if not 1 <= len(given) <= longest or _CONTROL.search(given):
        shown = repr(given if len(given) <= 50 else given[:50] + "…")
        return f"{what} must have 1 to {longest} characters and no control characters, got {len(given)}: {shown}"
    return None


def check_names(names: Iterable[tuple[str, Any]], longest: int = LONGEST_NAME) -> None:
    """Refuse what cannot name anything; None is left to the database's default."""
    for what, given in names:
        reason = None if given is None else problem(what, given, longest)
        if reason is not None:
            raise BadInput(reason)


def check_tenant(given: Any) -> None:
    """Refuse what is not the name of one tenant."""
    check_names([("tenant", "" if given is None else given)])
    if given == "*":
        raise BadInput("tenant must be one tenant, got *, which stands for all")


def check_priority(given: Any) -> None:
    """Refuse what is not a priority."""
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= 9:
        raise BadInput(f"priority must be a whole number from 0 to 9, got {given!r}; use 9 for the most urgent")


def check_due(given: Any) -> None:
    """Refuse what is not a point in time."""
    if given is not None and not isinstance(given, datetime):
        raise BadInput(f"due_at must be a datetime, got {given!r}")
