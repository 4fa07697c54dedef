"""Evaluates a rule on items: `evaluate(rule, item)` is a change, no change, or a refusal with its reason.

A rule is compiled once per currency into functions on whole numbers. Between the steps an amount is a fraction of minor
units, so that nothing is rounded unless the rule says so.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from holdfast.rules.language.arithmetic import NoSuchAmount, Step, TooPrecise, compiled_steps, units_of
from holdfast.rules.language.checks import COMPARE_AT_NOT_ABOVE, Check, compiled_checks
from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.items import Item
from holdfast.rules.language.matching import Match, compiled_selector
from holdfast.rules.language.money import Price, minor_units, shown, shown_exactly
from holdfast.rules.language.rule import ListedPrice, Rule
from holdfast.rules.language.transforms import Transform


class Change(NamedTuple):
    """The item gets another price, another compare-at price, or both."""

    item: Item
    before: Price
    after: Price


class Unchanged(NamedTuple):
    """Nothing would be written: the rule does not select the item, or its result is what is there."""

    item: Item
    is_selected: bool


class Refusal(NamedTuple):
    """The item cannot or must not be changed. `reason` is a word for programs, `message` one for people.

    `after` is the price that was refused, if the calculation got that far.
    """

    item_id: str
    reason: str
    message: str
    before: Price | None = None
    after: Price | None = None


Verdict = Change | Unchanged | Refusal
Evaluate = Callable[[Item], Verdict]
"""Evaluates one rule on one item."""


class Compiled(NamedTuple):
    """A rule for one currency. `problem` is why it cannot change items in that currency."""

    selects: Match
    steps: list[Step]
    checks: list[Check]
    problem: tuple[str, str] | None


def evaluate(rule: Rule, item: Item) -> Verdict:
    """Evaluate a rule on one item."""
    return evaluator(rule)(item)


@lru_cache(maxsize=64)
def evaluator(rule: Rule) -> Evaluate:
    """Compile a rule into a function on items, which is the fast form for many items."""
    by_currency: dict[str, Evaluate] = {}

    def run(item: Item) -> Verdict:
        known = by_currency.get(item.currency)
        if known is None:
            if item.currency not in EXPONENTS:
                return Refusal(item.id, "currency_unknown", f"there is no currency {item.currency!r:.40}")
            make = _for_listed if rule.prices is not None else _for_currency
            known = by_currency[item.currency] = make(rule, item.currency)
        return known(item)

    return run


def compiled(rule: Rule, transform: Transform, currency: str) -> Compiled:
    """Compile a rule for one currency."""
    selects = compiled_selector(rule.where, currency)
    if rule.currency is not None and rule.currency != currency:
        return Compiled(
            selects, [], [], ("currency_differs", f"the rule is for {rule.currency}, the item in {currency}")
        )
    try:
        if isinstance(transform.compare, Decimal):
            units_of(transform.compare, currency)
        return Compiled(selects, compiled_steps(transform, currency), compiled_checks(rule.guard, currency), None)
    except TooPrecise as error:
        return Compiled(selects, [], [], ("value_too_precise", f"the rule's {error}"))


def _for_listed(rule: Rule, currency: str) -> Evaluate:
    """Evaluate a list of prices: each entry is a transform of its own."""
    prices = rule.prices or {}

    @lru_cache(maxsize=1)  # an item is evaluated once; items with the same entry are rare
    def of_entry(entry: ListedPrice) -> Evaluate:
        return _for_currency(rule, currency, listed_transform(entry))

    def run(item: Item) -> Verdict:
        entry = prices.get(item.sku or item.id)
        return Unchanged(item, is_selected=False) if entry is None else of_entry(entry)(item)

    return run


def listed_transform(entry: ListedPrice) -> Transform:
    """Return an entry of a list of prices as the transform that it is."""
    return Transform("set", entry.price, compare=entry.compare_at)


def _for_currency(rule: Rule, currency: str, transform: Transform | None = None) -> Evaluate:
    transform = transform or rule.change or Transform()
    selects, steps, checks, problem = compiled(rule, transform, currency)
    new_price = _calculation(steps, _compare_at(transform, currency), currency)
    broken = _guardrails(checks, rule.guard.compare_at_above)

    def run(item: Item) -> Verdict:
        if not selects(item):
            return Unchanged(item, is_selected=False)
        before = Price(item.unit_amount, item.compare_at, currency)
        if problem is not None:
            return Refusal(item.id, *problem, before)
        after = new_price(item, before)
        if isinstance(after, Refusal):
            return after
        if after == before:
            return Unchanged(item, is_selected=True)
        return broken(item, before, after) or Change(item, before, after)

    return run


def _calculation(
    steps: list[Step], compare_at: Callable[[Item, int], int | None], currency: str
) -> Callable[[Item, Price], Price | Refusal]:
    calculations = [step.calculate for step in steps]

    def new_price(item: Item, before: Price) -> Price | Refusal:
        old = item.unit_amount
        if old is None:
            return Refusal(item.id, "no_price", "the item has no price", before)
        n, d = old, 1
        try:
            for calculate in calculations:
                n, d = calculate(n, d)
        except NoSuchAmount:
            return Refusal(item.id, "no_such_ending", f"no amount below {shown(old, currency)} has that ending", before)
        new, rest = divmod(n, d)
        if rest:
            text = shown_exactly(n, d, currency)
            return Refusal(item.id, "result_too_precise", f"{text} has more decimals than {currency}", before)
        return Price(new, compare_at(item, new), currency)

    return new_price


def _guardrails(checks: list[Check], guards_compare_at: bool) -> Callable[[Item, Price, Price], Refusal | None]:
    breaches = [(check.breaks, check) for check in checks]

    def broken(item: Item, before: Price, after: Price) -> Refusal | None:
        old, new, compare_at = before.unit_amount, after.unit_amount, after.compare_at
        if old is None or new is None:
            return None
        if new != old:
            for breaks, check in breaches:
                if breaks(old, new, item.cost):
                    return Refusal(item.id, check.reason, check.message, before, after)
        if guards_compare_at and compare_at is not None and compare_at <= new:
            return Refusal(item.id, COMPARE_AT_NOT_ABOVE, compare_at_message(after), before, after)
        return None

    return broken


def compare_at_message(after: Price) -> str:
    """Refuse a compare-at price that is not above the price."""
    return f"compare-at {shown(after.compare_at, after.currency)} is not above the price"


def _compare_at(transform: Transform, currency: str) -> Callable[[Item, int], int | None]:
    match transform.compare:
        case "keep":
            return lambda item, _: item.compare_at
        case "clear":
            return lambda _item, _: None
        case "before":
            return lambda item, new: item.unit_amount if new != item.unit_amount else item.compare_at
        case amount:
            units = minor_units(Decimal(amount), currency)  # None only if the rule has a problem, which comes first
            return lambda _item, _: units
