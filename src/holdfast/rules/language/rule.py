"""A rule: which items change, how, and within which limits. A list of prices is a rule too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from holdfast.errors import BadDefinition
from holdfast.rules.language.currencies import complaint
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.selectors import And, Not, Or, Selector, check_text, everything
from holdfast.rules.language.transforms import Amount, Transform, set_to

LONGEST_NAME = 100  # characters, as SQL has it: rules.freeze_rule
ALL = "*"  # no name: elsewhere it stands for all
DEEPEST = 50  # levels of and, or and not
MOST_CONDITIONS = 10_000
MOST_PRICES = 200_000  # entries of a list of prices
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class ListedPrice(NamedTuple):
    """An entry of a list of prices. `compare_at` is an amount, `keep` or `clear`."""

    price: Decimal
    compare_at: str | Decimal = "keep"


@dataclass(frozen=True)
class Rule:
    """Which items change (`where`), and how (`change`), or a list of `prices` by sku. `guard` bounds the result.

    With a `currency` items in another one are refused.
    """

    name: str
    where: Selector = everything
    change: Transform | None = None
    guard: Guard = field(default_factory=Guard)
    currency: str | None = None
    prices: Mapping[str, ListedPrice] | None = field(default=None, hash=False)  # mappings have no hash

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or _CONTROL.search(name) or name == ALL:
            raise BadDefinition(
                f"a rule's name must have 1 to {LONGEST_NAME} characters, no control characters and not be {ALL}, "
                f"got {name!r:.60}",
                where="name",
                next="write a short name such as summer",
            )
        if self.currency is not None and (problem := complaint(self.currency)):
            raise BadDefinition(problem[0], where="currency", next=problem[1])
        if not isinstance(self.guard, Guard):
            raise BadDefinition(f"guard must be a Guard, got {self.guard!r:.60}", where="guard", next="write Guard(…)")
        check_size(self.where)
        if self.prices is not None:
            object.__setattr__(self, "prices", MappingProxyType(self._checked_prices(self.prices)))
        else:
            self._check_change()

    def _check_change(self) -> None:
        if not isinstance(self.change, Transform):
            raise BadDefinition(f"rule {self.name} changes nothing, got {self.change!r:.60}", where="change",
                                next="write change=percent(-20)")  # fmt: skip
        if not self.change.writes_price and not self.change.writes_compare_at:
            raise BadDefinition(f"rule {self.name} changes nothing", where="change", next="write change=percent(-20)")

    def _checked_prices(self, prices: Mapping[str, ListedPrice]) -> dict[str, ListedPrice]:
        if self.change is not None or self.where != everything:
            raise BadDefinition("a list of prices has no selector and no transform of its own", where="prices",
                                next="leave out where and change, or the prices")  # fmt: skip
        if not 1 <= len(prices) <= MOST_PRICES:
            raise BadDefinition(f"a list of prices must have 1 to {MOST_PRICES} entries, got {len(prices)}",
                                where="prices", next="split the list")  # fmt: skip
        for sku in prices:
            check_text(sku, "sku")
        return {sku: _listed(entry.price, entry.compare_at) for sku, entry in prices.items()}

    @property
    def writes_price(self) -> bool:
        """Whether it can change prices. Only what a rule can change is compared and written."""
        return self.change is None or self.change.writes_price

    @property
    def writes_compare_at(self) -> bool:
        """Whether it can change compare-at prices."""
        if self.change is not None:
            return self.change.writes_compare_at
        return any(entry.compare_at != "keep" for entry in (self.prices or {}).values())


def _listed(price: Amount, compare_at: str | Decimal) -> ListedPrice:
    """Check an entry as the transform that it is."""
    transform = set_to(price).compare_at(compare_at)
    if transform.compare == "before" or transform.value is None:
        raise BadDefinition("a list of prices cannot set compare-at to `before`", where="compareAt",
                            next="use an amount, keep or clear")  # fmt: skip
    return ListedPrice(transform.value, transform.compare)


def check_size(where: Selector) -> None:
    """Raise BadDefinition for a selector that is too deep or too large."""
    if not isinstance(where, Selector):
        raise BadDefinition(f"where must be a condition on items, got {where!r:.60}", where="where",
                            next='write where=tag("sale")')  # fmt: skip
    for conditions, depth in enumerate(_depths(where), 1):
        if depth > DEEPEST:
            raise BadDefinition(f"a selector can have at most {DEEPEST} levels", where="selector",
                                next="use one `in` instead of many conditions")  # fmt: skip
        if conditions > MOST_CONDITIONS:
            raise BadDefinition(f"a selector can have at most {MOST_CONDITIONS} conditions",
                                where="selector", next="use one `in` instead of many conditions")  # fmt: skip


def _depths(where: Selector) -> Iterator[int]:
    """Yield the level of each condition, without recursion."""
    stack = [(1, where)]
    while stack:
        depth, selector = stack.pop()
        yield depth
        match selector:
            case And(parts) | Or(parts):
                stack.extend((depth + 1, part) for part in parts)
            case Not(part):
                stack.append((depth + 1, part))
            case _:
                pass
