"""An item: what a rule is evaluated on. The edges give text or Decimals; an item holds minor units."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from holdfast.errors import BadInput
from holdfast.rules.language.currencies import EXPONENTS, complaint
from holdfast.rules.language.money import LARGEST_AMOUNT, Price, minor_units
from holdfast.spelling import did_you_mean

LONGEST_ID = 400  # characters
_AMOUNT = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,10})?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_FIELDS: Final[Mapping[str, Any]] = {}
COLUMNS = ("id", "sku", "price", "compareAt", "currency", "cost", "tags", "fields")


class Item(NamedTuple):  # a tuple: a preview makes a million of them
    """One item of a channel. Amounts are in minor units: 4990 and EUR for 49.90. `item(...)` makes one from text."""

    id: str
    unit_amount: int | None
    currency: str
    compare_at: int | None = None
    cost: int | None = None
    sku: str | None = None
    tags: frozenset[str] | tuple[str, ...] = ()
    fields: Mapping[str, Any] = _NO_FIELDS

    @property
    def price(self) -> Price:
        """What the channel shows for it."""
        return Price(self.unit_amount, self.compare_at, self.currency)


class ItemRefused(BadInput):
    """An item cannot be read. `reason` is a word for programs, `item_id` its id as far as it is known."""

    def __init__(
        self,
        what: str,
        *,
        reason: str,
        item_id: str,
        where: str | None = None,
        next: str | None = None,  # noqa: A002 - the word is that of the other errors
    ) -> None:
        super().__init__(what, where=where, next=next)
        self.reason = reason
        self.item_id = item_id


def item(
    id: str,  # noqa: A002 - the word is the same in the protocol of channels
    price: str | Decimal | int | None,
    currency: str,
    *,
    compare_at: str | Decimal | int | None = None,
    cost: str | Decimal | int | None = None,
    sku: str | None = None,
    tags: Iterable[str] = (),
    fields: Mapping[str, Any] = _NO_FIELDS,
) -> Item:
    """Make an item from amounts as people write them: `item("7", "49.90", "EUR", tags=["sale"])`."""
    name = check_id(id)
    if currency not in EXPONENTS:
        what, hint = complaint(currency) or (currency, "")
        raise ItemRefused(what, reason="currency_unknown", item_id=name, where="currency", next=hint)
    return Item(
        name,
        None if price is None else amount(price, currency, "price", name),
        currency,
        None if compare_at is None else amount(compare_at, currency, "compareAt", name),
        None if cost is None else amount(cost, currency, "cost", name),
        _text(sku, "sku", name),
        tuple(tags),
        fields,
    )


def item_from(row: Mapping[str, Any]) -> Item:
    """Make an item from a mapping with the names of the JSON form: id, price, currency, compareAt, cost, sku, …."""
    unknown = next((name for name in row if name not in COLUMNS), None)
    if unknown is not None:
        name = str(row.get("id", "?"))[:LONGEST_ID]
        raise ItemRefused(f"an item has no {unknown!r:.40}", reason="item_invalid", item_id=name, where=str(unknown),
                          next=did_you_mean(str(unknown), COLUMNS))  # fmt: skip
    tags = row.get("tags") or ()
    fields = row.get("fields") or _NO_FIELDS
    name = check_id(row.get("id", row.get("sku")))
    check_lists(name, tags, fields)
    return item(
        name,
        row.get("price"),
        row.get("currency", ""),
        compare_at=row.get("compareAt"),
        cost=row.get("cost"),
        sku=row.get("sku"),
        tags=tags,
        fields=fields,
    )


def check_lists(item_id: str, tags: Any, fields: Any) -> None:
    """Raise ItemRefused unless tags are a list of text and fields a mapping."""
    is_list = isinstance(tags, Collection) and not isinstance(tags, str | bytes | Mapping)
    if not is_list or not isinstance(fields, Mapping) or not all(isinstance(each, str) for each in (*tags, *fields)):
        raise ItemRefused(f"tags must be a list of text and fields an object, got {tags!r:.40} and {fields!r:.40}",
                          reason="item_invalid", item_id=item_id, where="tags",
                          next='write {"tags": ["sale"], "fields": {"brand": "leaf"}}')  # fmt: skip


def check_item(item: object) -> None:
    """Raise ItemRefused for a malformed item of a channel: a float as an amount, or an id that is not text."""
    if not isinstance(item, Item):
        raise ItemRefused(f"a channel must list Items and Refusals, got {item!r:.60}", reason="item_invalid",
                          item_id="?", next='use item("7", "49.90", "EUR")')  # fmt: skip
    parts: dict[str, Any] = item._asdict()
    name = check_id(parts["id"])
    for what in ("unit_amount", "compare_at", "cost"):
        units = parts[what]
        if isinstance(units, float):
            raise ItemRefused(
                f"{what} is the float {units!r}, which is not exact",
                reason="float",
                item_id=name,
                where=what,
                next="write 4990 for 49.90 EUR",
            )
        if units is not None and (type(units) is not int or abs(units) > LARGEST_AMOUNT):
            raise ItemRefused(f"{what} must be a whole number of minor units, got {units!r:.60}",
                              reason="item_invalid", item_id=name, where=what, next="write 4990 for 49.90")  # fmt: skip
    for what in ("id", "currency", "sku"):
        _text(parts[what], what, name)
    if item.currency not in EXPONENTS:
        raise ItemRefused(
            f"there is no currency {item.currency!r:.40}",
            reason="currency_unknown",
            item_id=name,
            where="currency",
            next="use a code of ISO 4217, such as EUR",
        )
    check_lists(name, item.tags, item.fields)


def check_id(given: Any) -> str:
    """Return an item's id; raise ItemRefused unless it is text."""
    name = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or _CONTROL.search(name) or name == "*":
        raise ItemRefused(
            f"an item's id must have 1 to {LONGEST_ID} characters, no control characters and not be *, "
            f"got {given!r:.60}",
            reason="item_invalid",
            item_id="?" if given is None else _CONTROL.sub("?", str(given))[:LONGEST_ID] or "?",
            where="id",
            next="give the item the id that the channel knows it by",
        )
    return name


def amount(given: Any, currency: str, what: str, item_id: str) -> int:
    """Return an amount in minor units; raise ItemRefused if it is not exact, not one, or too precise."""
    exact: Decimal | None = None
    if type(given) is str:
        exact = Decimal(given) if _AMOUNT.fullmatch(given) else None
    elif type(given) is Decimal:
        exact = given if given.is_finite() and 0 <= given <= LARGEST_AMOUNT else None
    elif type(given) is int:
        exact = Decimal(given) if 0 <= given <= LARGEST_AMOUNT else None
    elif isinstance(given, float):
        raise ItemRefused(f"{what} is the float {given!r}, which is not exact", reason="float", item_id=item_id,
                          where=what, next=f'write it in quotes: "{given!r}"')  # fmt: skip
    if exact is None:
        raise ItemRefused(f"{what} must be an amount such as 1.99, got {given!r:.60}", reason="amount_invalid",
                          item_id=item_id, where=what, next='write it as "1.99"')  # fmt: skip
    units = minor_units(exact, currency)
    if units is None:
        raise ItemRefused(f"{what} {given} has more decimals than {currency}", reason="too_many_decimals",
                          item_id=item_id, where=what,
                          next=f"write it with at most {EXPONENTS[currency]} decimals")  # fmt: skip
    if units > LARGEST_AMOUNT:
        raise ItemRefused(f"{what} {given} is too large", reason="too_large", item_id=item_id, where=what,
                          next=f"use at most {LARGEST_AMOUNT:,} minor units")  # fmt: skip
    return units


def _text(given: Any, what: str, item_id: str) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise ItemRefused(f"{what} must be text, got {given!r:.60}", reason="item_invalid", item_id=item_id, where=what,
                      next="write it in quotes")  # fmt: skip
