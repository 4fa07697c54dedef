"""A second evaluation of rules, written on fractions of whole currency units and without regard to speed."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.items import Item
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.selectors import All, And, Compare, Not, Or, Selector, Tag
from holdfast.rules.language.transforms import Rounding, Transform

Told = tuple[str, Any]  # ("changed", (price, compare-at)), ("unchanged", selected) or ("refused", reason)


def verdict(rule: Rule, item: Item) -> Told:
    if item.currency not in EXPONENTS:
        return "refused", "currency_unknown"
    unit = Fraction(1, 10 ** EXPONENTS[item.currency])
    if rule.prices is not None:
        entry = rule.prices.get(item.sku or item.id)
        if entry is None:
            return "unchanged", False
        return of_transform(rule, Transform("set", entry.price, compare=entry.compare_at), item, unit)
    if not selects(rule.where, item, unit):
        return "unchanged", False
    assert rule.change is not None
    return of_transform(rule, rule.change, item, unit)


def of_transform(rule: Rule, change: Transform, item: Item, unit: Fraction) -> Told:
    if rule.currency not in {None, item.currency}:
        return "refused", "currency_differs"
    if any(Fraction(each) % unit for each in amounts(rule, change)):
        return "refused", "value_too_precise"
    if item.unit_amount is None:
        return "refused", "no_price"
    old = item.unit_amount * unit
    new = bounded(change, old, unit)
    if new is None:
        return "refused", "no_such_ending"
    if new % unit:
        return "refused", "result_too_precise"
    compare = compare_at(change, item, new, unit)
    before = None if item.compare_at is None else item.compare_at * unit
    if (new, compare) == (old, before):
        return "unchanged", True
    reason = broken(rule, item, old, new, unit) if new != old else None
    if reason is None and rule.guard.compare_at_above and compare is not None and compare <= new:
        reason = "compare_at_not_above"
    return (
        ("changed", tuple(None if each is None else each / unit for each in (new, compare)))
        if reason is None
        else ("refused", reason)
    )


def bounded(change: Transform, old: Fraction, unit: Fraction) -> Fraction | None:
    new = changed(change, old)
    if change.rounding is not None:
        rounded_to = rounded(change.rounding, new, unit)
        if rounded_to is None:
            return None
        new = rounded_to
    if change.floor_at is not None:
        new = max(new, Fraction(change.floor_at))
    if change.ceiling_at is not None:
        new = min(new, Fraction(change.ceiling_at))
    return new


def amounts(rule: Rule, change: Transform) -> list[Decimal]:
    """The amounts of money in a rule, apart from its selector."""
    found = [change.floor_at, change.ceiling_at, rule.guard.minimum, rule.guard.maximum]
    if change.change in {"set", "absolute"}:
        found.append(change.value)
    if change.rounding is not None:
        found += [change.rounding.step, change.rounding.ending]
    if isinstance(change.compare, Decimal):
        found.append(change.compare)
    return [each for each in found if each is not None]


def changed(change: Transform, old: Fraction) -> Fraction:
    if change.value is None:
        return old
    value = Fraction(change.value)
    return {
        "percent": old + old * value / 100,
        "absolute": old + value,
        "set": value,
        "multiply": old * value,
    }[str(change.change)]


def rounded(rounding: Rounding, amount: Fraction, unit: Fraction) -> Fraction | None:
    """Choose among the candidates around the amount."""
    if rounding.ending is None:
        apart = unit if rounding.step is None else Fraction(rounding.step)
        first = math.floor(amount / apart) * apart
        candidates = [first - apart, first, first + apart]
    else:
        ending = Fraction(rounding.ending)
        apart = Fraction(10 ** len(str(int(ending))) if ending >= 1 else 1)
        first = max(math.floor(amount / apart), 0) * apart + ending
        candidates = [each for each in (first - apart, first, first + apart) if each >= ending]
    below = [each for each in candidates if each <= amount]
    above = [each for each in candidates if each >= amount]
    if rounding.way == "down":
        return max(below, default=None)
    if rounding.way == "up":
        return min(above)
    return max(candidates, key=lambda each: (-abs(each - amount), each))


def compare_at(change: Transform, item: Item, new: Fraction, unit: Fraction) -> Fraction | None:
    before = None if item.compare_at is None else item.compare_at * unit
    old = (item.unit_amount or 0) * unit
    if isinstance(change.compare, Decimal):
        return Fraction(change.compare)
    return {"keep": before, "clear": None, "before": before if old == new else old}[change.compare]


def broken(rule: Rule, item: Item, old: Fraction, new: Fraction, unit: Fraction) -> str | None:
    guard = rule.guard
    far = Fraction(10**18) * unit
    down = None if guard.most_down is None else old * (1 - Fraction(guard.most_down) / 100)
    up = None if guard.most_up is None else old * (1 + Fraction(guard.most_up) / 100)
    found = {
        "negative": new < 0,
        "too_large": new >= far,
        "not_above_zero": guard.above_zero and new <= 0,
        "below_minimum": guard.minimum is not None and new < Fraction(guard.minimum),
        "above_maximum": guard.maximum is not None and new > Fraction(guard.maximum),
        "below_cost": guard.above_cost and item.cost is not None and new < item.cost * unit,
        "down_too_far": down is not None and new < down,
        "up_too_far": up is not None and new > up,
    }
    return next((reason for reason, is_broken in found.items() if is_broken), None)


def selects(selector: Selector, item: Item, unit: Fraction) -> bool:
    match selector:
        case All():
            return True
        case Tag(name):
            return name in item.tags
        case And(parts):
            return min(selects(part, item, unit) for part in parts)
        case Or(parts):
            return max(selects(part, item, unit) for part in parts)
        case Not(part):
            return not selects(part, item, unit)
        case Compare(field, "ne", value):
            return not selects(Compare(field, "eq", value), item, unit)
        case Compare(field, op, value):
            found = value_of(field, item, unit)
            return found is not None and holds(op, found, value)
        case _:
            raise AssertionError(selector)


def value_of(field: str, item: Item, unit: Fraction) -> Any:
    own = {"price": item.unit_amount, "compareAt": item.compare_at, "cost": item.cost}
    if field in own:
        return None if own[field] is None else own[field] * unit
    texts = {"id": item.id, "sku": item.sku, "currency": item.currency}
    return texts[field] if field in texts else item.fields.get(field.removeprefix("fields."))


def numeric(value: Any) -> Fraction | None:
    if isinstance(value, bool | list):
        return None
    try:
        return Fraction(value)
    except ValueError:
        return None


def same(found: Any, value: Any) -> bool:
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, str) and isinstance(value, str):
        return found == value
    return numeric(found) is not None and numeric(found) == numeric(value)


def holds(op: str, found: Any, value: Any) -> bool:
    match op:
        case "eq":
            return same(found, value)
        case "in":
            return any(same(found, each) for each in value)
        case "contains":
            return (
                any(same(each, value) for each in found)
                if isinstance(found, list)
                else (isinstance(found, str) and str(value) in found)
            )
        case "startsWith" | "endsWith":
            return isinstance(found, str) and getattr(found, op.lower())(value)
    left, right = (found, value) if numeric(value) is None else (numeric(found), numeric(value))
    if left is None or isinstance(left, str) != isinstance(right, str) or isinstance(left, bool | list):
        return False
    return bool({"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[op])
