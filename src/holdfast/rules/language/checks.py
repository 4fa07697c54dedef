"""Compiles guardrails into checks on whole numbers, for one currency."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from holdfast.rules.language.arithmetic import units_of
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.money import LARGEST_AMOUNT


class Check(NamedTuple):
    """One guardrail. `breaks` is called with the price before, the price after and the item's cost."""

    reason: str
    message: str
    breaks: Callable[[int, int, int | None], bool]


COMPARE_AT_NOT_ABOVE = "compare_at_not_above"


def compiled_checks(guard: Guard, currency: str) -> list[Check]:
    """Return the checks of a new price, in the order in which they refuse; raise TooPrecise."""
    checks = [
        Check("negative", "below 0", lambda _before, after, _cost: after < 0),
        Check(
            "too_large", f"above {LARGEST_AMOUNT:,} minor units", lambda _before, after, _cost: after > LARGEST_AMOUNT
        ),
    ]
    if guard.above_zero:
        checks.append(Check("not_above_zero", "not above 0", lambda _before, after, _cost: after <= 0))
    if guard.minimum is not None:
        least = units_of(guard.minimum, currency)
        checks.append(Check("below_minimum", f"below the minimum {guard.minimum:f}",
                            lambda _before, after, _cost: after < least))  # fmt: skip
    if guard.maximum is not None:
        most = units_of(guard.maximum, currency)
        checks.append(Check("above_maximum", f"above the maximum {guard.maximum:f}",
                            lambda _before, after, _cost: after > most))  # fmt: skip
    if guard.above_cost:
        checks.append(Check("below_cost", "below the item's cost",
                            lambda _before, after, cost: cost is not None and after < cost))  # fmt: skip
    if guard.most_down is not None:
        checks.append(Check("down_too_far", f"more than {guard.most_down:f} % down", _moves(guard.most_down, -1)))
    if guard.most_up is not None:
        checks.append(Check("up_too_far", f"more than {guard.most_up:f} % up", _moves(guard.most_up, 1)))
    return checks


def _moves(most: Decimal, sign: int) -> Callable[[int, int, int | None], bool]:
    share = Fraction(most) / 100
    top, bottom = share.numerator, share.denominator
    return lambda before, after, _cost: (after - before) * sign * bottom > before * top
