"""The SQL functions of limits as Python values, like those of `calls`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from holdfast.kernel.call import Call


def define_limit(
    name: str,
    *,
    concurrency: int | None = None,
    rate: float | Decimal | None = None,
    per: timedelta | None = None,
    burst: float | Decimal | None = None,
    breaker_after: int | None = None,
    breaker_for: timedelta | None = None,
    breaker_counts: Sequence[str] | None = None,
    tenant: str | None = None,
    actor: str | None = None,
    of_app: bool = False,
) -> Call[None]:
    """Create or replace the rule of a limit or family; `actor` is the person the login acts for, here and below.

    A rule `of_app` comes from a worker's app and does not replace what a person has set since.
    """
    bucket = {"rate": numeric(rate), "per": per, "burst": numeric(burst)}
    counts = None if breaker_counts is None else list(breaker_counts)
    breaker = {"breaker_after": breaker_after, "breaker_for": breaker_for, "breaker_counts": counts}
    about = {"name": name, "concurrency": concurrency, "tenant": tenant, "actor": actor, "of_app": of_app}
    return Call("define_limit", type(None), {**about, **bucket, **breaker})


def reset_limit(name: str, *, tenant: str | None = None, actor: str | None = None) -> Call[None]:
    """Put back the rule that an app defined last, after a person changed it."""
    return Call("reset_limit", type(None), {"name": name, "tenant": tenant, "actor": actor})


def pause_limit(
    name: str,
    *,
    until: datetime | None = None,
    reason: str | None = None,
    tenant: str | None = None,
    actor: str | None = None,
) -> Call[None]:
    """Close a limit or family until a time, or until it is resumed."""
    arguments = {"name": name, "until": until, "reason": reason, "tenant": tenant, "actor": actor}
    return Call("pause_limit", type(None), arguments)


def resume_limit(
    name: str, *, reason: str | None = None, tenant: str | None = None, actor: str | None = None
) -> Call[None]:
    """End the pause of a limit or family, and close its breaker."""
    return Call("resume_limit", type(None), {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def forget_limit(
    name: str, *, reason: str | None = None, tenant: str | None = None, actor: str | None = None
) -> Call[bool]:
    """Remove the rule of a limit or family; return false if there was none."""
    return Call("forget_limit", bool, {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def charge_limit(step_id: int, lease_id: int, name: str, weight: float | Decimal = 1) -> Call[timedelta | None]:
    """Take tokens for a request of a held step, or return how long to wait before the next try."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "name": name, "weight": numeric(weight)}
    return Call("charge_limit", timedelta, arguments)


def numeric(number: float | Decimal | None) -> Decimal | None:
    """Format a number as SQL's numeric, digit by digit."""
    return None if number is None else Decimal(str(number))
