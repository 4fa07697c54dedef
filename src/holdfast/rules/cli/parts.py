"""What several commands of `holdfast rules` share: arguments, documents and lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.options import matching
from holdfast.cli.render import Styled, data, plain
from holdfast.cli.run_page import state_cell
from holdfast.errors import BadInput
from holdfast.rules import reads
from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.money import shown
from holdfast.rules.rows import RefusalRow, RuleRunRow, StateRow, TargetRow

PLANNED = "~"  # the sign of a target that nothing was sent for yet
_WORD = re.compile(r"_(\w)")


def runs(incomplete: str) -> list[str]:
    """Complete the id of a recent run."""
    return matching(reads.recent_ids(), incomplete)


RunId = Annotated[str, typer.Argument(metavar="RUN", help="A rule run's id.", autocompletion=runs)]
Actor = Annotated[str | None, typer.Option("--actor", help="The person that you act for; by default your login.")]
AppOption = Annotated[
    str | None, typer.Option("--app", envvar="HOLDFAST_APP", help="The app that has the channel, module:name.")
]


def parse_run(text: str) -> UUID:
    """Parse a run's id."""
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"a rule run's id is a UUID, got {text!r:.60}", where="RUN",
                       next="list them: holdfast rules list") from None  # fmt: skip


def status_cell(status: str, states: Mapping[str, StateRow]) -> Styled:
    """Return a status as a cell: word, colour and sign; the last two follow from what the machine says of it."""
    return state_cell(states[status]) if status in states else Styled(status, "")


def status_text(run: RuleRunRow) -> str:
    """Return a run's status and what it does not say, as in `APPLYING, paused`."""
    return run.status if run.remark is None else f"{run.status}, {run.remark}"


def signs(states: Mapping[str, StateRow]) -> dict[str, str]:
    """Return the sign of each state of a target."""
    return {name: PLANNED if state.phase == "shut" else state_cell(state).sign for name, state in states.items()}


def camel(document: Any) -> Any:
    """Return a mapping with its keys in camel case, as the document writes them; keys of JSON values stay."""
    return {_WORD.sub(lambda found: found[1].upper(), key): value for key, value in document.items()}


def run_document(run: RuleRunRow) -> dict[str, Any]:
    """Return a run as JSON prints it, with the failed count and the possible actions."""
    fields = {**asdict(run), "failed": run.counts["failed"], "actions": run.actions, "unmatched": run.unmatched}
    fields["rule_run_id"] = fields.pop("id")
    return {name: str(value) if isinstance(value, UUID) else value for name, value in camel(fields).items()}


def target_document(target: TargetRow) -> dict[str, Any]:
    """Return a target as JSON prints it; ids are text."""
    fields = asdict(target)
    fields["target_id"] = str(fields.pop("id"))
    fields["rule_run_id"] = str(target.rule_run_id)
    return dict(camel(fields))


def target_line(target: TargetRow, sign: str = PLANNED) -> str:
    """Return a target as one line: `~ SKU-1042   49.90 → 39.90 EUR   -20.0 %   compare at - → 49.90`."""
    before, after = target.before, target.after
    parts = [f"{sign} {plain(target.item_id)}"]
    if before.unit_amount != after.unit_amount:
        change = f"{shown(before.unit_amount, before.currency)} → {shown(after.unit_amount, after.currency)}"
        parts += [f"{change} {after.currency}", percent(before.unit_amount, after.unit_amount)]
    if before.compare_at != after.compare_at:
        parts.append(
            f"compare at {shown(before.compare_at, before.currency)} → {shown(after.compare_at, after.currency)}"
        )
    if target.status != "PREVIEW":
        parts.append(target.status)
    if target.reason:
        parts.append(f"{target.reason}: {plain(target.error or '')}{_found(target.found_json)}")
    return "   ".join(part for part in parts if part)


def _found(found: dict[str, Any] | None) -> str:
    """Return what the channel shows instead of the price before, as ` (found 16.00 EUR)`."""
    if found is None or "currency" not in found:
        return ""
    compare_at = f", compare at {found['compareAt']}" if found.get("compareAt") is not None else ""
    return f" (found {plain(str(found.get('price') or '-'))} {plain(str(found['currency']))}{plain(compare_at)})"


def refusal_line(refusal: RefusalRow) -> str:
    """Return a refusal as one line: `! SKU-77   4.00 → 3.20 EUR   refused: below the minimum 3.50`."""
    parts = [f"! {plain(refusal.item_id or '?')}"]
    currency = refusal.currency
    if currency in EXPONENTS and refusal.price_before is not None:
        after = "" if refusal.price_after is None else f" → {shown(refusal.price_after, str(currency))}"
        parts.append(f"{shown(refusal.price_before, str(currency))}{after} {currency}")
    return "   ".join([*parts, f"refused: {plain(refusal.message)}"])


def refusal_document(refusal: RefusalRow) -> dict[str, Any]:
    """Return a refusal as JSON prints it."""
    return {"itemId": refusal.item_id, "reason": refusal.reason, "message": refusal.message,
            "currency": refusal.currency, "priceBefore": refusal.price_before,
            "priceAfter": refusal.price_after}  # fmt: skip


def percent(before: int | None, after: int | None) -> str:
    """Return a move in percent, with one decimal."""
    if not before or after is None:
        return ""
    return f"{Decimal(after - before) * 100 / Decimal(before):+.1f} %"


def plan_line(run: RuleRunRow) -> str:
    """Return the last line of a preview: what the plan does, in one sentence."""
    counts = run.counts
    sums = ", ".join(f"{amount:+,} {currency}" for currency, amount in sorted(run.sums.items()))
    largest = "" if run.largest_percent is None else f", largest {run.largest_percent:+.1f} %"
    moves = f"; {sums}{largest}" if sums else ""
    return (
        f"Plan {run.plan_hash[:8]}: {counts['targets']:,} to change, {counts['unchanged']:,} unchanged, "
        f"{counts['refused']:,} refused{moves}; expires {moment(run.expires_at)}"
    )


def unmatched_lines(run: RuleRunRow) -> list[str]:
    """Return one line about the skus of a list of prices that match no item, or none."""
    count, first = run.unmatched["skus"], run.unmatched["first"]
    if not count:
        return []
    more = ", …" if count > len(first) else ""
    words = "1 sku of the list matches" if count == 1 else f"{count:,} skus of the list match"
    return [f"? {words} no item: {', '.join(map(plain, first))}{more}"]


def moment(at: datetime) -> str:
    """Return a time to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def print_lines(lines: list[str]) -> None:
    """Print lines of data."""
    for line in lines:
        data(line)
