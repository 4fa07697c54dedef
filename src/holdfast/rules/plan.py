"""What follows from a stored plan: its hash, as `rules.plan_digest` computes it in SQL, and why a target changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from holdfast.errors import WrongState
from holdfast.rules.language.explain import Explanation, explain
from holdfast.rules.language.money import minor_units
from holdfast.rules.language.read_json import from_json
from holdfast.rules.language.rule import ListedPrice, Rule
from holdfast.rules.rows import RuleRunRow, TargetRow

GROUP = 1000  # targets per digest, so that neither side holds the whole text


class PlannedTarget(NamedTuple):
    """The values of a target that its plan's hash covers, in the order of their line."""

    item_id: str
    currency: str
    price_before: int
    price_after: int
    compare_at_before: int | None
    compare_at_after: int | None
    writes_price: bool
    writes_compare_at: bool


def digest(plan: str, targets: Iterable[PlannedTarget]) -> str:
    """Return the hash of a plan: its JSON text as PostgreSQL writes it, and its targets by the bytes of their items."""
    whole = hashlib.sha256(plan.encode())
    for group in _groups(targets):
        whole.update(hashlib.sha256("\n".join(map(_line, group)).encode()).digest())
    return whole.hexdigest()


def _groups(targets: Iterable[PlannedTarget]) -> Iterator[list[PlannedTarget]]:
    rest = iter(targets)
    while group := list(islice(rest, GROUP)):
        yield group


def _line(target: PlannedTarget) -> str:
    return "\t".join(map(_text, target))


def _text(value: str | int | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value)


def explained(run: RuleRunRow, target: TargetRow) -> Explanation:
    """Recompute a target from the rule that its run froze and the price before."""
    if "undoes" in run.plan:
        raise WrongState(f"run {run.id} is a rollback: it restores what was there before", where=str(run.id),
                         next=f"explain the run that it undoes: holdfast rules explain {run.plan['undoes']} "
                              f"{target.item_id}")  # fmt: skip
    rule = from_json(run.plan["rule"])
    return explain(rule, target.before, item_id=target.item_id, sku=_listed_sku(rule, target))


def _listed_sku(rule: Rule, target: TargetRow) -> str | None:
    """Find a target's entry in a list of prices: a plan stores the item's id, and the list has skus."""
    if rule.prices is None or target.item_id in rule.prices:
        return None
    return next((sku for sku, entry in rule.prices.items() if _gives(entry, target)), None)


def _gives(entry: ListedPrice, target: TargetRow) -> bool:
    """Return whether an entry of a list of prices leads to what the target's plan says."""
    currency = target.after.currency
    match entry.compare_at:
        case "keep":
            compare_at = target.before.compare_at
        case "clear":
            compare_at = None
        case amount:
            compare_at = minor_units(Decimal(amount), currency)
    return (minor_units(entry.price, currency), compare_at) == (target.after.unit_amount, target.after.compare_at)
