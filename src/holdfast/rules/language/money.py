"""Amounts: text or Decimal at the edges, whole minor units inside. A float is refused, because 0.1 is not exact."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from holdfast.errors import BadDefinition
from holdfast.rules.language.currencies import EXPONENTS

LARGEST_AMOUNT = 10**18 - 1  # minor units; the database's bigint holds nine times as much
DIGITS = r"(?:[0-9]{1,18}(?:\.[0-9]{1,10})?|\.[0-9]{1,10})"  # a regular expression of numbers without a sign
_NUMBER = re.compile(f"-?{DIGITS}")
_COMMA = re.compile(r"-?[0-9]{1,18},[0-9]{1,10}")
_MOST_SHOWN = 6  # decimals beyond those of the currency
_POWERS = [10**exponent for exponent in range(5)]


class Price(NamedTuple):
    """What a channel shows for an item, in minor units: 4990 and EUR for 49.90."""

    unit_amount: int | None
    compare_at: int | None
    currency: str


def number(given: object, where: str) -> Decimal:
    """Read a number of a rule: text, an int or a Decimal. Raise BadDefinition for anything else."""
    if isinstance(given, float):
        raise BadDefinition(
            f"{where} must be exact, got the float {given!r}", where=where, next=f'write it in quotes: "{given!r}"'
        )
    if isinstance(given, Decimal) and given.is_finite() and abs(given.adjusted()) <= 18:
        given = format(given, "f")
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) <= LARGEST_AMOUNT:
        return Decimal(given)
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        return Decimal(given)
    hint = 'write it as "1.99"'
    if isinstance(given, str) and _COMMA.fullmatch(given):
        hint = f'write it with a point: "{given.replace(",", ".")}"'
    raise BadDefinition(f"{where} must be a number, got {given!r:.60}", where=where, next=hint)


def minor_units(amount: Decimal, currency: str) -> int | None:
    """Return an amount in minor units of a known currency; None if it has more decimals than the currency."""
    numerator, denominator = amount.as_integer_ratio()  # exact, whatever the caller's decimal context is
    units, rest = divmod(numerator * _POWERS[EXPONENTS[currency]], denominator)
    return None if rest else units


def decimal(units: int, currency: str) -> Decimal:
    """Return minor units as a Decimal with the currency's decimals: 4990 of EUR is 49.90."""
    return Decimal(shown(units, currency))


def shown(units: int | None, currency: str) -> str:
    """Return minor units as text, and `-` for none."""
    if units is None:
        return "-"
    places = EXPONENTS[currency]
    digits = str(abs(units)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if units < 0 else text


def shown_exactly(numerator: int, denominator: int, currency: str) -> str:
    """Return a fraction of minor units as text, cut (`…`) if it has many decimals more than the currency."""
    units, rest = divmod(abs(numerator), denominator)
    text = shown(units, currency)
    if rest:
        more, cut = divmod(rest * 10**_MOST_SHOWN, denominator)
        digits = str(more).rjust(_MOST_SHOWN, "0")
        text += ("" if "." in text else ".") + (f"{digits}…" if cut else digits.rstrip("0"))
    return f"-{text}" if numerator < 0 else text
