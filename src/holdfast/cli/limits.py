"""`holdfast limits`: lists limits with their rules and current state, and changes them."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import Reason, WideOption, output_options
from holdfast.cli.render import AsJson, data, data_json, heading, say
from holdfast.cli.table import Column, data_table
from holdfast.durations import duration
from holdfast.errors import BadInput, NotFound
from holdfast.kernel import db, limit_calls
from holdfast.kernel.call import Call
from holdfast.kernel.query import as_mapping, clock, query
from holdfast.reads import limits as reads
from holdfast.reads.limits import LimitChange, LimitDetail, LimitRule
from holdfast.reads.run_page import span_text

app = typer.Typer(help="Limits: how much at once and how fast.", no_args_is_help=True)

COLUMNS = (
    Column("limit"),
    Column("tenant", "*", rank=6),
    Column("held", rank=1),
    Column("rate", rank=2),
    Column("tokens", rank=2),
    Column("parked", "0", rank=1),
    Column("oldest parked", rank=5),
    Column("opens", rank=4),
    Column("paused", rank=3),
    Column("breaker", rank=3),
    Column("reason", rank=7, least=12),
)
PARTS = ("concurrency", "rate", "per", "burst", "breaker_after", "breaker_for", "until")  # of a change, as it is shown
Name = Annotated[str, typer.Argument(help="A limit, such as shop:acme, or a family: 'shop:*'.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Whose steps the rule counts; * for all together.")]
Rate = Annotated[str | None, typer.Option("--rate", help="Tokens per time: 40/1s, 100/1m.")]


@app.command("list", epilog="Example: holdfast limits list --json")
@output_options
def list_(*, wide: WideOption = False, as_json: AsJson = False) -> None:
    """List limits: those that keep steps waiting first, 200 at most."""
    _show(None, wide=wide, as_json=as_json)


@app.command(epilog="Example: holdfast limits show 'shop:*'")
@output_options
def show(name: Name, *, wide: WideOption = False, as_json: AsJson = False) -> None:
    """Show a limit, the values of a family, and how it was changed."""
    _show(name, wide=wide, as_json=as_json)


@app.command("set", epilog="Example: holdfast limits set 'shop:*' --concurrency 2 --rate 40/1s --burst 80")
@output_options
def set_(
    name: Name,
    *,
    concurrency: Annotated[int | None, typer.Option("--concurrency", help="Steps held at once.")] = None,
    rate: Rate = None,
    burst: Annotated[float | None, typer.Option("--burst", help="Tokens that a bucket holds.")] = None,
    breaker_after: Annotated[int | None, typer.Option("--breaker-after", help="Failures in a row.")] = None,
    breaker_for: Annotated[str | None, typer.Option("--breaker-for", help="How long it stays open: 60s.")] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace the whole rule of a limit: what an option is not given for is not limited.

    It prints the rule that it replaced.
    """
    tokens, per = _rate(rate)
    opens = None if breaker_for is None else duration(breaker_for, "breaker_for")
    call = limit_calls.define_limit(
        name,
        concurrency=concurrency,
        rate=tokens,
        per=per,
        burst=burst,
        breaker_after=breaker_after,
        breaker_for=opens,
        tenant=tenant,
    )
    with opened() as connection:
        before = query(connection, reads.rules(name))
        db.run(connection, call)
        after = query(connection, reads.rules(name))
    rules = "; ".join(_rule(rule) for rule in after)
    replaced = "; ".join(_rule(rule) for rule in before) if before and before != after else ""
    message = f"limit {name} is defined: {rules}" + (f"; before: {replaced}" if replaced else "")
    _report(name, "defined", message, as_json)


@app.command(epilog="Example: holdfast limits pause shop:acme --for 10m --reason 'a sale'")
@output_options
def pause(
    name: Name,
    *,
    span: Annotated[
        str | None, typer.Option("--for", help="How long, such as 10m; by default until it is resumed.")
    ] = None,
    reason: Reason = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Admit no step under a limit for a while; steps that are already claimed continue."""
    with opened() as connection:
        until = None if span is None else clock(connection) + duration(span, "for")
        db.run(connection, limit_calls.pause_limit(name, until=until, reason=reason, tenant=tenant))
    message = f"limit {name} is paused; to resume it: holdfast limits resume {shlex.quote(name)}"
    _report(name, "paused", message, as_json)


@app.command(epilog="Example: holdfast limits resume shop:acme")
@output_options
def resume(name: Name, *, reason: Reason = None, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """End the pause of a limit, and close its breaker."""
    _change(limit_calls.resume_limit(name, reason=reason, tenant=tenant), name, "resumed", as_json=as_json)


@app.command(epilog="Example: holdfast limits remove 'shop:*'")
@output_options
def remove(name: Name, *, reason: Reason = None, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Remove the rule of a limit; the steps that waited for it may run."""
    with opened() as connection:
        (is_removed,) = db.run(connection, limit_calls.forget_limit(name, reason=reason, tenant=tenant))
    if not is_removed:
        raise NotFound(f"there is no limit {name}", where="name", next="holdfast limits list")
    _report(name, "removed", f"limit {name} is removed", as_json)


@app.command(epilog="Example: holdfast limits reset 'shop:*'")
@output_options
def reset(name: Name, *, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Put back the rule that the app defined, after it was set or removed by hand."""
    _change(limit_calls.reset_limit(name, tenant=tenant), name, "reset", as_json=as_json)


def _change(call: Call[Any], name: str, event: str, *, as_json: bool) -> None:
    with opened() as connection:
        db.run(connection, call)
    _report(name, event, f"limit {name} is {event}", as_json)


def _report(name: str, event: str, message: str, as_json: bool) -> None:
    if as_json:
        data_json({"limit": name, "event": event})
    say(message)


def _rate(given: str | None) -> tuple[float | None, timedelta | None]:
    """Read 40/1s."""
    if given is None:
        return None, None
    tokens, _, per = given.partition("/")
    try:
        return float(tokens), duration(per or "1s", "rate")
    except (BadInput, ValueError):
        next_ = "use tokens per time, as in 40/1s or 100/1m"
        raise BadInput(f"rate must be such as 40/1s, got {given!r}", where="rate", next=next_) from None


def _show(name: str | None, *, wide: bool, as_json: bool) -> None:
    with opened() as connection:
        limits, now = query(connection, reads.limits(name)), clock(connection)
        changes = [] if name is None else query(connection, reads.changes(name))
    if name is not None and not limits:
        raise NotFound(f"there is no limit {name}", where="name", next="holdfast limits list")
    if as_json:
        history = {"changes": [as_mapping(change) for change in changes]} if name is not None else {}
        data_json({"limits": [as_mapping(limit) for limit in limits], **history})
        return
    rows = [
        (limit.name, limit.tenant, _of(limit, limit.held, limit.concurrency), _rate_text(limit.rate, limit.per),
         _of(limit, _short(limit.tokens), _short(limit.burst)), f"{limit.parked:,}", limit.oldest_parked_at,
         limit.wake_at, _paused(limit), limit.breaker, limit.reason)
        for limit in limits
    ]  # fmt: skip
    data_table(COLUMNS, rows, now=now, wide=wide)
    if not limits:
        say("no limits yet: holdfast limits set, or hf.limit(…) in an app")
    if changes:
        heading("changes")
    for change in changes:
        data(_line(change))


def _line(change: LimitChange) -> str:
    by = f"the app of {change.actor}" if (change.event, change.actor_kind) == ("defined", "worker") else change.actor
    payload = json.loads(change.payload)
    parts = [f"{name} {_short(payload[name])}" for name in PARTS if name in payload]
    details = [*([change.reason] if change.reason else []), *parts]
    suffix = f": {', '.join(details)}" if details else ""
    return f"{change.at:%Y-%m-%d %H:%M:%S} {change.name} {change.event} by {by}{suffix}"


def _of(limit: LimitDetail, count: Any, most: Any) -> str | None:
    """Format a count with its limit; a family's limit is that of each value, and its count that of all."""
    if most is None:
        return None if count is None else f"{count}"
    if limit.name.endswith(":*"):
        return f"{most} each" if count is None else f"{count}, {most} each"
    return f"{count} of {most}" if count is not None else f"{most}"


def _rule(rule: LimitRule) -> str:
    parts = {
        "concurrency": rule.concurrency,
        "rate": _rate_text(rule.rate, rule.per),
        "burst": _short(rule.burst),
        "breaker_after": rule.breaker_after,
        "breaker_for": None if rule.breaker_for is None else _span(rule.breaker_for),
    }
    values = [f"{name} {value}" for name, value in parts.items() if value is not None]
    tenant = "" if rule.tenant == "*" else f" (tenant {rule.tenant})"
    return (", ".join(values) or "nothing is limited, not even by its family's rule") + tenant


def _rate_text(rate: float | None, per: float | None) -> str | None:
    """Format a rate as `--rate` takes it."""
    return None if rate is None or per is None else f"{rate:g}/{_span(per)}"


def _span(seconds: float) -> str:
    return span_text(timedelta(seconds=seconds)).replace(" min", "m").replace(" ", "")


def _short(value: Any) -> str | None:
    return f"{value:g}" if isinstance(value, (int, float)) else value


def _paused(limit: LimitDetail) -> Any:
    return limit.paused_until or ("until resumed" if limit.paused_by else None)
