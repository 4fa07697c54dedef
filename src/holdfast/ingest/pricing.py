"""Prices by rules: the first one that fits a record, by priority, multiplies its price; exact arithmetic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from holdfast.errors import BadDefinition


@dataclass(frozen=True, slots=True)
class Rule:
    """A pricing rule as the run froze it."""

    priority: int
    criteria: Mapping[str, Any]
    markup: Decimal
    rating: str | None


@dataclass(frozen=True, slots=True)
class Pricing:
    """The column of the price, and the factor that applies if no rule matches: `Pricing("price_cents", "1.15")`.

    Rules are rows of `ingest.pricing_rules`. `rating` names the column for the rating of the rule. A price in
    whole cents stays whole, rounded half up; a Decimal keeps all digits.
    """

    column: str
    default: str = "1"
    rating: str | None = None

    def __post_init__(self) -> None:
        given: Any = self.default
        try:
            markup = Decimal(given) if isinstance(given, (str, int, Decimal)) else Decimal("NaN")
        except InvalidOperation:
            markup = Decimal("NaN")
        if not (markup.is_finite() and markup > 0):
            raise BadDefinition(
                f"default must be a number above 0 as text, got {given!r}", where="default", next='use "1.15"'
            )

    def applied(self, values: dict[str, Any], rules: list[Rule]) -> dict[str, Any]:
        """Return the values of a record with its price, by the first rule that fits."""
        price = values.get(self.column)
        if price is None:
            return values
        if isinstance(price, float):
            raise ValueError(f"{self.column} is a float, which cannot hold a price exactly; use cents or Decimal")
        rule = next((rule for rule in rules if fits(rule.criteria, values)), None)
        product = Decimal(price) * (Decimal(self.default) if rule is None else rule.markup)
        priced: Any = int(product.quantize(Decimal(1), ROUND_HALF_UP)) if isinstance(price, int) else product
        rated = {} if self.rating is None else {self.rating: None if rule is None else rule.rating}
        return {**values, self.column: priced, **rated}


def read_rules(text: str | None) -> list[Rule]:
    """Read the rules that a run froze, in the order of their priority."""
    rows = json.loads(text, parse_float=Decimal) if text else []
    return [Rule(row["priority"], row["criteria"], Decimal(row["markup"]), row["rating"]) for row in rows]


def fits(criteria: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Return whether a record fits all criteria: a value, a list of values, or a range from min to max."""
    return all(_fits(wanted, values.get(column)) for column, wanted in criteria.items())


def _fits(wanted: Any, value: Any) -> bool:
    match wanted:
        case None:
            return True
        case list():
            return value in wanted
        case dict():
            return (
                value is not None
                and (wanted.get("min") is None or value >= wanted["min"])
                and (wanted.get("max") is None or value <= wanted["max"])
            )
    return bool(value == wanted)
