"""Compiles a transform into steps on whole numbers, for one currency.

Between steps an amount is a fraction of minor units, so nothing is rounded unless the rule says so.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from holdfast.rules.language.money import minor_units
from holdfast.rules.language.transforms import Rounding, Transform

Calculation = Callable[[int, int], tuple[int, int]]


class Step(NamedTuple):
    """One step of a calculation: its words for people, and what it does to a numerator and a denominator."""

    name: str
    detail: str
    calculate: Calculation


class TooPrecise(ValueError):
    """An amount of the rule has more decimals than the currency."""


class NoSuchAmount(ValueError):
    """No amount from 0 on has the ending, in the direction of the rounding."""


def compiled_steps(transform: Transform, currency: str) -> list[Step]:
    """Return the steps from the price before to the new price; raise TooPrecise."""
    steps: list[Step] = []
    if transform.change is not None and transform.value is not None:
        steps.append(_change(transform.change, transform.value, currency))
    if transform.rounding is not None:
        steps.append(_rounding(transform.rounding, currency))
    if transform.floor_at is not None:
        least = units_of(transform.floor_at, currency)
        steps.append(Step("floor", format(transform.floor_at, "f"),
                          lambda n, d: (least, 1) if n < least * d else (n, d)))  # fmt: skip
    if transform.ceiling_at is not None:
        most = units_of(transform.ceiling_at, currency)
        steps.append(Step("ceiling", format(transform.ceiling_at, "f"),
                          lambda n, d: (most, 1) if n > most * d else (n, d)))  # fmt: skip
    return steps


def units_of(amount: Decimal, currency: str) -> int:
    """Return an amount of a rule in minor units; raise TooPrecise."""
    units = minor_units(amount, currency)
    if units is None:
        raise TooPrecise(f"{amount:f} has more decimals than {currency}")
    return units


def _change(change: str, value: Decimal, currency: str) -> Step:
    detail = format(value, "f")
    if change == "set":
        amount = units_of(value, currency)
        return Step("set", detail, lambda _n, _d: (amount, 1))
    if change == "absolute":
        amount = units_of(value, currency)
        return Step("absolute", detail, lambda n, d: (n + amount * d, d))
    factor = Fraction(value) if change == "multiply" else (100 + Fraction(value)) / 100
    top, bottom = factor.numerator, factor.denominator
    return Step(change, f"{detail} %" if change == "percent" else detail, lambda n, d: (n * top, d * bottom))


def _rounding(rounding: Rounding, currency: str) -> Step:
    if rounding.ending is not None and rounding.modulus is not None:
        ending = units_of(rounding.ending, currency)
        return Step("round", f"{rounding.way} to the ending {rounding.ending:f}",
                    _to_multiple(rounding.way, units_of(rounding.modulus, currency), ending))  # fmt: skip
    if rounding.step is None:
        return Step("round", f"{rounding.way} to the smallest unit", _to_multiple(rounding.way, 1, 0))
    step = units_of(rounding.step, currency)
    return Step("round", f"{rounding.way} to {rounding.step:f}", _to_multiple(rounding.way, step, 0))


def _to_multiple(way: str, step: int, offset: int) -> Calculation:
    """Round to the amounts `offset` + k * `step`. With an offset, k is 0 or more: no price ends in -0.01."""

    def down(n: int, d: int) -> tuple[int, int]:
        k = (n - offset * d) // (d * step)
        if offset and k < 0:
            raise NoSuchAmount
        return k * step + offset, 1

    def up(n: int, d: int) -> tuple[int, int]:
        k = -((offset * d - n) // (d * step))
        return (max(k, 0) if offset else k) * step + offset, 1

    def nearest(n: int, d: int) -> tuple[int, int]:
        k = (2 * (n - offset * d) + d * step) // (2 * d * step)
        return (max(k, 0) if offset else k) * step + offset, 1

    return {"down": down, "up": up, "nearest": nearest}[way]
