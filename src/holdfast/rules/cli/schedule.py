"""`holdfast rules schedule`: previews and applies a rule on a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.connection import opened
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.cli.schedules.page import read_moment
from holdfast.errors import BadInput, NotFound
from holdfast.handlers.schedules import schedule_definition
from holdfast.kernel import db
from holdfast.rules import reads
from holdfast.rules.clock import ScheduledRule
from holdfast.rules.language.read_file import read_rule
from holdfast.rules.language.rule import Rule

EXAMPLE = "Example: holdfast rules schedule summer --channel shop --cron '0 6 * * 1' --timezone Europe/Berlin"


def schedule(
    rule: Annotated[str, typer.Argument(help="A file, or the name of a defined rule.", metavar="RULE")],
    *,
    channel: Annotated[str, typer.Option("--channel", help="The channel that holds the prices.")],
    cron: Annotated[str | None, typer.Option("--cron", help="Five fields: '0 6 * * 1'.")] = None,
    every: Annotated[str | None, typer.Option("--every", help="An interval: 1h.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Once: 2027-03-01T06:00.")] = None,
    timezone: Annotated[
        str, typer.Option("--timezone", help="The time zone of the cron, and of times without an offset.")
    ] = "UTC",
    preview_only: Annotated[bool, typer.Option("--preview-only", help="Let each plan wait for a person.")] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="The schedule's name; by default rules:RULE:CHANNEL.")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Preview a rule at each tick, and apply the plan if it keeps the rule's limits. Any worker fires the ticks."""
    path = Path(rule)
    with opened() as connection:
        if path.suffix.lower() in {".json", ".csv"} or path.exists():
            wanted: Rule | str = read_rule(path)
        elif reads.rules(connection, rule):
            wanted = rule
        else:
            raise NotFound(f"there is no rule and no file {rule}", where=rule,
                           next="list them: holdfast rules list --rules")  # fmt: skip
        if not any(each.channel == channel and each.tenant_id in {tenant, "*"} for each in reads.channels(connection)):
            raise NotFound(f"there is no channel {channel} of tenant {tenant}", where="--channel",
                           next="list them: holdfast rules channels")  # fmt: skip
        own = name or f"rules:{wanted if isinstance(wanted, str) else wanted.name}:{channel}"
        call = schedule_definition(
            own, ScheduledRule(wanted, channel, own, not preview_only), None, missed="one", missed_window=None,
            overlap="skip", tenant=tenant, cron=cron, every=every, at=read_moment("at", at, timezone),
            timezone=timezone, from_code=False, error=BadInput,
        )  # fmt: skip
        db.run(connection, call)
    if as_json:
        data_json({"schedule": own, "channel": channel, "apply": not preview_only})
    else:
        data(own)
    say(f"to see its ticks: holdfast schedules show {own}")
