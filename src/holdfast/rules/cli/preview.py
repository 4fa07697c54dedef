"""`holdfast rules preview`: evaluates a rule on a channel's items and shows the plan."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.app_loader import load_app
from holdfast.cli.options import parse_duration
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.errors import BadInput, NotFound, WrongState
from holdfast.rules import reads
from holdfast.rules.cli.parts import (
    Actor,
    AppOption,
    parse_run,
    plan_line,
    print_lines,
    refusal_document,
    refusal_line,
    run_document,
    target_document,
    target_line,
    unmatched_lines,
)
from holdfast.rules.handle import RuleRun
from holdfast.rules.language.read_file import read_rule
from holdfast.rules.language.read_json import from_json
from holdfast.rules.language.rule import Rule
from holdfast.rules.rows import Difference, RuleRunRow
from holdfast.rules.sources import ITEMS_FROM

EXAMPLE = "Example: holdfast rules preview summer.json --channel shop --app shop.prices:hf"
SHOWN = 10  # targets, and refusals


def preview(
    rule: Annotated[str | None, typer.Argument(help="A file, or the name of a defined rule.")] = None,
    *,
    channel: Annotated[str | None, typer.Option("--channel", help="The channel that holds the prices.")] = None,
    items: Annotated[Path | None, typer.Option("--items", help="Items as CSV, instead of the channel's list.")] = None,
    again: Annotated[str | None, typer.Option("--again", help="Plan this run again, and show what differs.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the plan at once.")] = False,
    expires_in: Annotated[
        timedelta,
        typer.Option("--expires-in", parser=parse_duration, metavar="DURATION", help="When the plan expires."),
    ] = timedelta(hours=24),
    named: AppOption = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="The tenant, by default that of --again, or default.")
    ] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a rule on a channel's items, and print what would change. Nothing is written outside Holdfast."""
    if named is None:
        raise BadInput("--app is missing: the channel is defined in an app", where="--app",
                       next="write --app MODULE:NAME, or set HOLDFAST_APP")  # fmt: skip
    if (rule is None) == (again is None) or (again is None and channel is None):
        raise BadInput("give a rule and --channel, or --again RUN", where="RULE", next=EXAMPLE)
    hf = load_app(named)
    try:
        old = None if again is None else _again(hf, again, tenant, items)
        owner = tenant or (old.tenant_id if old is not None else "default")
        wanted = _rule(hf, str(rule), owner) if old is None else from_json(old.plan["rule"])
        place = channel or (old.channel if old is not None else "")
        kept: dict[str, Any] = {} if old is None else _kept(old)
        run = hf.rules.preview(wanted, channel=place, items=items, apply=apply, expires_in=expires_in, tenant=owner,
                               actor=actor, **kept)  # fmt: skip
        difference = None if old is None else _difference(hf, old.id, run.id)
        _report(run, difference, as_json=as_json)
    finally:
        hf.close()


def _again(hf: Any, again: str, tenant: str | None, items: Path | None) -> RuleRunRow:
    """Return the run to plan again; raise an error if it cannot be planned alike."""
    old: RuleRunRow = hf.rules.run(parse_run(again)).summary
    if "undoes" in old.plan:
        raise WrongState(f"run {old.id} is a rollback", where="--again",
                         next=f"plan it again: holdfast rules rollback {old.plan['undoes']}")  # fmt: skip
    if tenant not in {None, old.tenant_id}:
        raise BadInput(f"run {old.id} is of tenant {old.tenant_id}, got {tenant}", where="--tenant",
                       next="leave out --tenant")  # fmt: skip
    if items is None and ITEMS_FROM in old.metadata:
        raise BadInput(f"run {old.id} was planned with items of its own, from {old.metadata[ITEMS_FROM]}",
                       where="--items", next="give them again: --items FILE")  # fmt: skip
    return old


def _kept(old: RuleRunRow) -> dict[str, Any]:
    """Return what a new plan has in common with an older one, beside its rule and channel."""
    own = {"actor", "source", ITEMS_FROM}  # of each run
    if old.metadata.get("correlationId") == str(old.id):
        own.add("correlationId")
    metadata = {name: value for name, value in old.metadata.items() if name not in own}
    return {"source": old.source, "project_id": old.project_id, "metadata": metadata}


def _rule(hf: Any, given: str, tenant: str) -> Rule:
    path = Path(given)
    if path.suffix.lower() in {".json", ".csv"} or path.exists():
        return read_rule(path)
    with hf.rules.connection() as connection:
        rows = reads.rules(connection, given, tenant)
    if not rows:
        raise NotFound(f"there is no file {given}, and no rule of that name of tenant {tenant}", where=given,
                       next="list them: holdfast rules list --rules")  # fmt: skip
    return from_json(rows[0].definition)


def _difference(hf: Any, old: UUID, new: UUID) -> Difference:
    with hf.rules.connection() as connection:
        return reads.difference(connection, old, new)


def _report(run: RuleRun, difference: Difference | None, *, as_json: bool) -> None:
    summary = run.summary
    targets = _first(run.targets(), SHOWN)
    refusals = _first(run.refusals(), SHOWN)
    if as_json:
        document = run_document(summary)
        document["targets"] = [target_document(each) for each in targets]
        document["refusals"] = [refusal_document(each) for each in refusals]
        if difference is not None:
            document["differs"] = {"added": difference.added, "gone": difference.gone, "changed": difference.changed,
                                   "same": difference.same}  # fmt: skip
        data_json(document)
        return
    for each in targets:
        data(target_line(each))
    _more(summary.counts["targets"], len(targets), f"holdfast rules targets {run.id}")
    for refusal in refusals:
        data(refusal_line(refusal))
    _more(summary.counts["refused"], len(refusals), f"holdfast rules targets {run.id} --refused")
    if difference is not None:
        data(f"Since then: {difference.added:,} items are new, {difference.gone:,} are gone, "
             f"{difference.changed:,} differ, {difference.same:,} are the same")  # fmt: skip
    print_lines([*unmatched_lines(summary), plan_line(summary)])
    _then(summary)


def _first(rows: Any, most: int) -> list[Any]:
    return [row for row, _ in zip(rows, range(most), strict=False)]


def _more(count: int, printed: int, command: str) -> None:
    if count > printed:
        data(f"  … {count - printed:,} more: {command}")


def _then(run: RuleRunRow) -> None:
    if run.status == "PREVIEW" and run.counts["targets"]:
        say(f"then: holdfast rules apply {run.id} --plan {run.plan_hash[:8]}")
    elif run.status != "PREVIEW":
        say(f"{run.id}: {run.status}; to follow it: holdfast rules show {run.id}")
