"""Transforms say how a price changes: `percent(-20).round("nearest", "0.05").compare_at("before")`.

The order is fixed: the change itself, then rounding, then floor and ceiling. Compare-at follows from the new price.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from holdfast.errors import BadDefinition
from holdfast.rules.language.money import number
from holdfast.spelling import did_you_mean

Amount = str | int | Decimal
Way = Literal["up", "down", "nearest"]
WAYS: Final = ("up", "down", "nearest")
CHANGES: Final = ("percent", "absolute", "set", "multiply")
COMPARE_AT: Final = ("keep", "before", "clear")
MOST_PERCENT = 1_000_000


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounds up, down or to the nearest multiple of `step`, or to the nearest amount that ends in `ending`.

    With neither it rounds to the currency's smallest unit. An amount halfway between two goes up.
    """

    way: str
    step: Decimal | None = None
    ending: Decimal | None = None

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise BadDefinition(f"there is no rounding {self.way!r:.40}", where="round",
                                next=did_you_mean(str(self.way), ["none", *WAYS]))  # fmt: skip
        if self.step is not None and self.ending is not None:
            raise BadDefinition(f"round takes a step or an ending, got {self.step} and {self.ending}", where="round",
                                next="leave one out")  # fmt: skip
        for name, given in (("step", self.step), ("ending", self.ending)):
            if given is not None and given <= 0:
                raise BadDefinition(f"the {name} of round must be above 0, got {given}", where="round",
                                    next="write 0.05 for a step, 0.99 for an ending, or leave it out")  # fmt: skip

    @property
    def modulus(self) -> Decimal | None:
        """How far amounts with that ending are apart: 1 for 0.99, 10 for 9.99, 100 for 95."""
        if self.ending is None:
            return None
        return Decimal(1) if self.ending < 1 else Decimal(10 ** len(str(int(self.ending))))


@dataclass(frozen=True, slots=True)
class Transform:
    """What a rule does to a price. `percent`, `absolute`, `set_to`, `multiply` and `keep_price` make one."""

    change: str | None = None  # one of CHANGES; None leaves the price to rounding, floor and ceiling
    value: Decimal | None = None
    rounding: Rounding | None = None
    floor_at: Decimal | None = None
    ceiling_at: Decimal | None = None
    compare: str | Decimal = "keep"

    def round(self, way: str, step: Amount | None = None, *, ending: Amount | None = None) -> Transform:
        """Round the new price `up`, `down` or to the `nearest` step or ending; `none` does not round."""
        if way == "none":
            return replace(self, rounding=None)
        exact_step = None if step is None else number(step, "round")
        exact_ending = None if ending is None else number(ending, "round")
        return replace(self, rounding=Rounding(way, exact_step, exact_ending))

    def floor(self, amount: Amount) -> Transform:
        """Never go below the amount, after rounding."""
        return _checked(replace(self, floor_at=_not_negative(amount, "floor")))

    def ceiling(self, amount: Amount) -> Transform:
        """Never go above the amount, after rounding."""
        return _checked(replace(self, ceiling_at=_not_negative(amount, "ceiling")))

    def compare_at(self, value: Amount) -> Transform:
        """Set the compare-at price: `before` is the price until now, `clear` removes it, `keep` leaves it alone.

        An amount sets it to that. With `before` an item whose price does not change keeps its own.
        """
        if isinstance(value, str) and value in COMPARE_AT:
            return replace(self, compare=value)
        if isinstance(value, str) and value.isalpha():
            raise BadDefinition(f"compare-at cannot be {value!r:.40}", where="compareAt",
                                next=did_you_mean(value, COMPARE_AT))  # fmt: skip
        return replace(self, compare=_not_negative(value, "compareAt"))

    @property
    def writes_price(self) -> bool:
        """Whether it can change the price."""
        parts = (self.change, self.rounding, self.floor_at, self.ceiling_at)
        return any(part is not None for part in parts)

    @property
    def writes_compare_at(self) -> bool:
        """Whether it can change the compare-at price."""
        return self.compare != "keep"


def percent(by: Amount) -> Transform:
    """Change the price by a percentage: `percent(-20)` takes a fifth off."""
    value = number(by, "percent")
    if not -100 < value <= MOST_PERCENT:
        raise BadDefinition(f"percent must be above -100 and at most {MOST_PERCENT}, got {value}", where="percent",
                            next="use set for a price of 0" if value <= -100 else "use set or multiply")  # fmt: skip
    return Transform("percent", value)


def absolute(by: Amount) -> Transform:
    """Change the price by an amount: `absolute("-5.00")`."""
    return Transform("absolute", number(by, "absolute"))


def set_to(amount: Amount) -> Transform:
    """Set the price to an amount."""
    return Transform("set", _not_negative(amount, "set"))


def multiply(by: Amount) -> Transform:
    """Multiply the price: `multiply("1.19")`."""
    value = number(by, "multiply")
    if value <= 0:
        raise BadDefinition(f"multiply must be above 0, got {value}", where="multiply", next="use set for a price of 0")
    return Transform("multiply", value)


def keep_price() -> Transform:
    """Start from the price as it is, to round or bound it, or to change compare-at alone."""
    return Transform()


def _not_negative(given: Amount, where: str) -> Decimal:
    value = number(given, where)
    if value < 0:
        raise BadDefinition(f"{where} must be 0 or more, got {value}", where=where, next=f'write "{abs(value)}"')
    return value


def _checked(transform: Transform) -> Transform:
    low, high = transform.floor_at, transform.ceiling_at
    if low is not None and high is not None and low > high:
        raise BadDefinition(f"floor {low} is above ceiling {high}", where="floor",
                            next="lower the floor, or raise the ceiling")  # fmt: skip
    return transform
