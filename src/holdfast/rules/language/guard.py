"""Guardrails: limits that a new price must keep, or its item is refused. All but two are on by default."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from holdfast.errors import BadDefinition
from holdfast.rules.language.money import number
from holdfast.rules.language.transforms import Amount
from holdfast.spelling import checks_options

MOST_DOWN = 50
MOST_UP = 100
MOST_TARGETS = 1_000_000_000


@dataclass(frozen=True, slots=True, init=False)
class Guard:
    """The guardrails of a rule. Override each one by name; None or False switches it off."""

    minimum: Decimal | None
    maximum: Decimal | None
    most_down: Decimal | None
    most_up: Decimal | None
    above_zero: bool
    above_cost: bool
    compare_at_above: bool
    most_targets: int | None

    @checks_options(BadDefinition)
    def __init__(
        self,
        *,
        minimum: Amount | None = None,
        maximum: Amount | None = None,
        most_down: Amount | None = MOST_DOWN,
        most_up: Amount | None = MOST_UP,
        above_zero: bool = True,
        above_cost: bool = True,
        compare_at_above: bool = True,
        most_targets: int | None = None,
    ) -> None:
        """Set the guardrails.

        `minimum`, `maximum`: of the new price. `most_down`, `most_up`: how far a price may move, in percent.
        `above_zero`: the new price is above 0. `above_cost`: it is not below the item's cost, if the item has one.
        `compare_at_above`: a compare-at price is above the price. `most_targets`: how many items one run may change.
        """
        least = _number(minimum, "minimum")
        most = _number(maximum, "maximum")
        if least is not None and most is not None and least > most:
            raise BadDefinition(f"minimum {least} is above maximum {most}", where="minimum",
                                next="lower the minimum, or raise the maximum")  # fmt: skip
        for name, value in (
            ("minimum", least),
            ("maximum", most),
            ("most_down", _number(most_down, "most_down")),
            ("most_up", _number(most_up, "most_up")),
            ("above_zero", _flag(above_zero, "above_zero")),
            ("above_cost", _flag(above_cost, "above_cost")),
            ("compare_at_above", _flag(compare_at_above, "compare_at_above")),
            ("most_targets", _count(most_targets)),
        ):
            object.__setattr__(self, name, value)


def _number(given: Amount | None, where: str) -> Decimal | None:
    if given is None:
        return None
    value = number(given, where)
    if value < 0:
        raise BadDefinition(f"{where} must be 0 or more, got {value}", where=where, next=f'write "{abs(value)}"')
    return value


def _flag(given: bool, where: str) -> bool:
    if not isinstance(given, bool):
        raise BadDefinition(f"{where} must be true or false, got {given!r:.40}", where=where,
                            next="write true or false without quotes")  # fmt: skip
    return given


def _count(given: object) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_TARGETS):
        return given
    raise BadDefinition(f"most_targets must be a whole number from 1 to {MOST_TARGETS}, got {given!r:.40}",
                        where="most_targets", next="write 5000, or leave it out for no limit")  # fmt: skip
