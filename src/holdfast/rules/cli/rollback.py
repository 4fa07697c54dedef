"""`holdfast rules rollback`: plans a rollback, compares it with the channel, and asks before it applies."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated, Any

import typer

from holdfast.cli.app_loader import load_app
from holdfast.cli.options import Reason
from holdfast.cli.render import AsJson, data, data_json, plain, say
from holdfast.errors import BadInput
from holdfast.rules.cli.manual import Only, Without
from holdfast.rules.cli.parts import Actor, AppOption, RunId, parse_run, run_document, target_document
from holdfast.rules.handle import RuleRun
from holdfast.rules.language.money import shown
from holdfast.rules.rollback import Standpoint
from holdfast.rules.rows import TargetRow

EXAMPLE = "Example: holdfast rules rollback RUN --app shop.prices:hf"
SHOWN = 10  # lines of each kind
SIGNS = {"restore": "~", "restored": "=", "conflict": "!", "unknown": "?"}


def rollback(
    run: RunId,
    *,
    only: Only = None,
    without: Without = None,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", help="Overwrite this item although it has changed since. May be repeated."),
    ] = None,
    overwrite: Annotated[
        int | None, typer.Option("--overwrite", min=1, help="Confirm how many items --force overwrites.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")] = False,
    named: AppOption = None,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Plan the rollback of a run, print what it would restore, and apply it after you confirm.

    Items that somebody has changed since are not touched, unless --force names them.
    """
    if named is None:
        raise BadInput("--app is missing: the channel is defined in an app", where="--app",
                       next="write --app MODULE:NAME, or set HOLDFAST_APP")  # fmt: skip
    if force:
        _confirm_force(len(force), overwrite)
    hf = load_app(named)
    try:
        undone: RuleRun = hf.rules.run(parse_run(run))
        planned = undone.rollback(only=_targets(only), without=_targets(without), force=_targets(force), reason=reason,
                                  actor=actor)  # fmt: skip
        lines, counts, listed = _looked(planned)
        if not as_json:
            for line in lines:
                data(line)
        is_applied = yes or (not as_json and _agreed(_sentence(planned, counts)))
        if is_applied:
            planned.apply(plan=planned.summary.plan_hash, reason=reason, actor=actor)
        _report(planned, counts, listed, is_applied=is_applied, as_json=as_json)
    finally:
        hf.close()


def _targets(given: list[str] | None) -> list[int | str] | None:
    return None if given is None else list(given)


def _looked(planned: RuleRun) -> tuple[list[str], Counter[str], list[Standpoint]]:
    """Return the first lines of each kind, the counts, and the targets of these lines."""
    counts: Counter[str] = Counter()
    listed: list[Standpoint] = []
    for each in planned.standpoints():
        counts[each.standing] += 1
        if counts[each.standing] <= SHOWN:
            listed.append(each)
    lines = [_line(each) for each in listed]
    more = sum(counts.values()) - len(listed)
    if more > 0:
        lines.append(f"  … {more:,} more: holdfast rules targets {planned.id}")
    return lines, counts, listed


def _line(each: Standpoint) -> str:
    target = each.target
    parts = [f"{SIGNS[each.standing]} {plain(target.item_id)}"]
    if each.standing == "conflict":
        parts.append(f"conflict: {plain(each.detail)}")
    elif each.standing == "unknown":
        parts.append("the channel does not show it")
    else:
        parts += _moves(target)
    return "   ".join(parts)


def _moves(target: TargetRow) -> list[str]:
    before, after = target.before, target.after
    parts = []
    if before.unit_amount != after.unit_amount:
        parts.append(f"{shown(before.unit_amount, before.currency)} → {shown(after.unit_amount, after.currency)} "
                     f"{after.currency}")  # fmt: skip
    if before.compare_at != after.compare_at:
        parts.append(
            f"compare at {shown(before.compare_at, before.currency)} → {shown(after.compare_at, after.currency)}"
        )
    return parts


def _sentence(planned: RuleRun, counts: Counter[str]) -> str:
    restored = f", {counts['restored']:,} restored already" if counts["restored"] else ""
    return (
        f"Plan {planned.summary.plan_hash[:8]}: {counts['restore']:,} to restore{restored}, {counts['conflict']:,} "
        f"changed since (will not be touched), {counts['unknown']:,} unknown"
    )


def _agreed(sentence: str) -> bool:
    if not sys.stdin.isatty():
        data(sentence)
        return False
    return typer.confirm(f"{sentence}; apply?", err=True)


def _confirm_force(count: int, overwrite: int | None) -> None:
    """Let the operator type how many conflicts are overwritten."""
    if overwrite is None and not sys.stdin.isatty():
        raise BadInput(f"{count} conflicts would be overwritten, and there is no terminal to ask", where="--force",
                       next=f"add --overwrite {count} to confirm")  # fmt: skip
    typed = overwrite if overwrite is not None else typer.prompt(f"type {count} to overwrite them", err=True)
    if str(typed) != str(count):
        raise BadInput(f"the count was not confirmed: {count} conflicts, got {typed}", where="--force",
                       next=f"type {count} to confirm")  # fmt: skip


def _report(
    planned: RuleRun, counts: Counter[str], listed: list[Standpoint], *, is_applied: bool, as_json: bool
) -> None:
    summary = planned.summary
    if as_json:
        targets: list[dict[str, Any]] = [
            {**target_document(each.target), "standing": each.standing, "detail": each.detail} for each in listed
        ]
        data_json({**run_document(summary), "standing": dict(counts), "targets": targets})
    elif is_applied:
        data(f"{planned.id} {summary.status}")
    if is_applied:
        say(f"to follow it: holdfast rules show {planned.id}")
    else:
        say(f"then: holdfast rules apply {planned.id} --plan {summary.plan_hash[:8]}")
