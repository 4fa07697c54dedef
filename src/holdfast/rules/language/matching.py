"""Compiles a selector into one function on items, for one currency."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any

from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.items import Item
from holdfast.rules.language.selectors import AMOUNTS, CUSTOM, All, And, Compare, Not, Or, Selector, Tag

Match = Callable[[Item], bool]
_DECIMAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,10})?")
_ATTRIBUTES = {"price": "unit_amount", "compareAt": "compare_at", "cost": "cost", "id": "id", "sku": "sku",
               "currency": "currency"}  # fmt: skip
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip


def compiled_selector(selector: Selector, currency: str) -> Match:
    """Return a function that says whether an item in that currency is selected."""
    match selector:
        case All():
            return lambda _: True
        case Tag(name):
            return lambda item: name in item.tags
        case Not(part):
            inner = compiled_selector(part, currency)
            return lambda item: not inner(item)
        case And(parts):
            return _all([compiled_selector(part, currency) for part in parts])
        case Or(parts):
            return _any([compiled_selector(part, currency) for part in parts])
        case Compare():
            return _comparison(selector, currency)
        case _:
            raise TypeError(f"{selector!r} is not a selector")


def _all(matches: list[Match]) -> Match:
    if len(matches) == 2:
        first, second = matches
        return lambda item: first(item) and second(item)

    def every(item: Item) -> bool:
        for match in matches:  # noqa: SIM110 - a loop is twice as fast as all() with a generator
            if not match(item):
                return False
        return True

    return every


def _any(matches: list[Match]) -> Match:
    def some(item: Item) -> bool:
        for match in matches:  # noqa: SIM110
            if match(item):
                return True
        return False

    return some


def _comparison(condition: Compare, currency: str) -> Match:
    op = condition.op
    if op == "ne":
        equal = _comparison(Compare(condition.field, "eq", condition.value), currency)
        return lambda item: not equal(item)
    test = _test_of_amount(op, condition.value, currency) if condition.field in AMOUNTS else _test(op, condition.value)
    if condition.field.startswith(CUSTOM):
        name = condition.field.removeprefix(CUSTOM)

        def custom(item: Item) -> bool:
            value = item.fields.get(name)
            return value is not None and test(value)

        return custom
    get = attrgetter(_ATTRIBUTES[condition.field])

    def own(item: Item) -> bool:
        value = get(item)
        return value is not None and test(value)

    return own


def _test_of_amount(op: str, given: Any, currency: str) -> Callable[[int], bool]:
    """Compare minor units with an amount exactly, also if the amount has more decimals than the currency."""
    if op == "in":
        units = {numerator for numerator, denominator in map(_units(currency), given) if denominator == 1}
        return lambda value: value in units
    numerator, denominator = _units(currency)(given)
    if op == "eq":
        return (lambda value: value == numerator) if denominator == 1 else (lambda _: False)
    compares = _ORDERS[op]
    if denominator == 1:
        return lambda value: compares(value, numerator)
    return lambda value: compares(value * denominator, numerator)


def _units(currency: str) -> Callable[[Decimal], tuple[int, int]]:
    places = EXPONENTS[currency]
    return lambda amount: Decimal((*amount.as_tuple()[:2], int(amount.as_tuple()[2]) + places)).as_integer_ratio()


def _test(op: str, given: Any) -> Callable[[Any], bool]:
    match op:
        case "eq":
            return _equals(given)
        case "in":
            tests = [_equals(each) for each in given if not isinstance(each, str)]
            texts = frozenset(each for each in given if isinstance(each, str))
            numbers = frozenset(number for each in texts if (number := as_number(each)) is not None)
            return lambda value: (
                (value in texts if isinstance(value, str) else as_number(value) in numbers)
                or any(test(value) for test in tests)
            )
        case "contains":
            equals = _equals(given)
            return lambda value: (
                any(map(equals, value))
                if isinstance(value, list | tuple)
                else isinstance(value, str) and str(given) in value
            )
        case "startsWith":
            return lambda value: isinstance(value, str) and value.startswith(given)
        case "endsWith":
            return lambda value: isinstance(value, str) and value.endswith(given)
        case _:
            return _ordered(_ORDERS[op], given)


def _equals(given: Any) -> Callable[[Any], bool]:
    """Compare text with text, truth with truth, and numbers with numbers and with text that is a number."""
    if isinstance(given, bool):
        return lambda value: value is given
    exact = as_number(given)
    if isinstance(given, str):
        return lambda value: (
            value == given if isinstance(value, str) else exact is not None and as_number(value) == exact
        )
    return lambda value: as_number(value) == exact


def _ordered(compares: Callable[[Any, Any], bool], given: Any) -> Callable[[Any], bool]:
    """Compare numbers if the rule's value is a number, else text."""
    exact = as_number(given)
    if exact is None:
        return lambda value: isinstance(value, str) and compares(value, given)

    def numeric(value: Any) -> bool:
        number = as_number(value)
        return number is not None and compares(number, exact)

    return numeric


def as_number(value: Any) -> Decimal | int | None:
    """Return a number, or text that is one, as an exact number; None for anything else, floats included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return Decimal(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else None
