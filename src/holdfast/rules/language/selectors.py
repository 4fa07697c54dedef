"""Selectors say which items a rule changes: `tag("sale") & (price >= "1.00")`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from holdfast.errors import BadDefinition
from holdfast.rules.language.money import number
from holdfast.spelling import did_you_mean

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "startsWith", "endsWith"]
Value = str | int | bool | Decimal | tuple[str | int | bool | Decimal, ...]
OPERATORS: Final[tuple[str, ...]] = get_args(Operator)
OF_AMOUNTS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in")
OF_TEXT: Final = ("contains", "startsWith", "endsWith")
AMOUNTS: Final = ("price", "compareAt", "cost")
TEXTS: Final = ("id", "sku", "currency")
CUSTOM: Final = "fields."
LONGEST_TEXT = 1000
MOST_LISTED = 100_000  # values of one `in`


class Selector:
    """A condition on items. Combine conditions with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Selector) -> Selector:
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Selector) -> Selector:
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Selector:
        return Not(self)

    def __bool__(self) -> bool:
        raise BadDefinition(
            "a condition on items is neither true nor false", where="where", next="write & for and, | for or, ~ for not"
        )


@dataclass(frozen=True, slots=True)
class All(Selector):
    """Every item."""


@dataclass(frozen=True, slots=True)
class Tag(Selector):
    """Items that carry a tag."""

    name: str

    def __post_init__(self) -> None:
        check_text(self.name, "tag")


@dataclass(frozen=True, slots=True)
class Compare(Selector):
    """Items whose field compares with a value. `ne` means `not eq`, so it matches items that lack the field too."""

    field: str
    op: str
    value: Value

    def __post_init__(self) -> None:
        check_field(self.field)
        if self.op not in OPERATORS:
            raise BadDefinition(f"there is no operator {self.op!r:.40}", where="op",
                                next=did_you_mean(str(self.op), OPERATORS))  # fmt: skip
        if self.field in AMOUNTS and self.op not in OF_AMOUNTS:
            raise BadDefinition(
                f"{self.field} is an amount and has no {self.op}",
                where="op",
                next=f"use one of: {', '.join(OF_AMOUNTS)}",
            )
        object.__setattr__(self, "value", _checked(self.field, self.op, self.value))


@dataclass(frozen=True, slots=True)
class And(Selector):
    """Items that all parts match."""

    parts: tuple[Selector, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts, "and")


@dataclass(frozen=True, slots=True)
class Or(Selector):
    """Items that at least one part matches."""

    parts: tuple[Selector, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts, "or")


@dataclass(frozen=True, slots=True)
class Not(Selector):
    """Items that the part does not match."""

    part: Selector

    def __post_init__(self) -> None:
        _check_parts((self.part,), "not")


class Field:
    """A field of items, for conditions: `price >= "1.00"`, `field("brand").startswith("Ac")`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        check_field(name)
        self._name = name

    def __eq__(self, value: object) -> Selector:  # type: ignore[override]  # a condition, not a truth
        return Compare(self._name, "eq", value)  # type: ignore[arg-type]  # it checks the value itself

    def __ne__(self, value: object) -> Selector:  # type: ignore[override]
        return Compare(self._name, "ne", value)  # type: ignore[arg-type]

    def __gt__(self, value: str | int | Decimal) -> Selector:
        return Compare(self._name, "gt", value)

    def __ge__(self, value: str | int | Decimal) -> Selector:
        return Compare(self._name, "gte", value)

    def __lt__(self, value: str | int | Decimal) -> Selector:
        return Compare(self._name, "lt", value)

    def __le__(self, value: str | int | Decimal) -> Selector:
        return Compare(self._name, "lte", value)

    __hash__ = None  # type: ignore[assignment]  # == makes a condition

    def between(self, low: str | int | Decimal, high: str | int | Decimal) -> Selector:
        """Match values from `low` to `high`, both included."""
        return (self >= low) & (self <= high)

    def in_(self, values: Iterable[str | int | bool | Decimal]) -> Selector:
        """Match any of the values."""
        return Compare(self._name, "in", (values,) if isinstance(values, str) else tuple(values))

    def contains(self, value: str) -> Selector:
        """Match texts that contain the value, and lists that have it as an element."""
        return Compare(self._name, "contains", value)

    def startswith(self, value: str) -> Selector:
        """Match texts that begin with the value."""
        return Compare(self._name, "startsWith", value)

    def endswith(self, value: str) -> Selector:
        """Match texts that end with the value."""
        return Compare(self._name, "endsWith", value)


def tag(name: str) -> Selector:
    """Match items that carry the tag."""
    return Tag(name)


def field(name: str) -> Field:
    """Name a custom field of the channel's items, for a condition: `field("brand") == "Acme"`."""
    return Field(f"{CUSTOM}{name}")


def check_field(name: object) -> None:
    """Raise BadDefinition unless rules know the field."""
    if isinstance(name, str) and (name in AMOUNTS or name in TEXTS):
        return
    if isinstance(name, str) and name.startswith(CUSTOM):
        check_text(name.removeprefix(CUSTOM), "field")
        return
    known = [*AMOUNTS, *TEXTS]
    raise BadDefinition(f"items have no field {name!r:.60}", where="field",
                        next=f"{did_you_mean(str(name), known)}; a custom field is {CUSTOM}brand")  # fmt: skip


def check_text(given: object, where: str) -> None:
    """Raise BadDefinition unless it is text that a rule can hold."""
    if not isinstance(given, str) or not 1 <= len(given) <= LONGEST_TEXT or "\0" in given or not _is_unicode(given):
        raise BadDefinition(f"{where} must be text of 1 to {LONGEST_TEXT} characters, got {given!r:.60}", where=where,
                            next='write text in quotes, such as "sale"')  # fmt: skip


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _checked(field_name: str, op: str, given: Any) -> Value:
    """Return the value of a comparison as rules hold it: amounts as Decimals, lists as tuples."""
    if op == "in":
        if not isinstance(given, tuple | list) or not 1 <= len(given) <= MOST_LISTED:
            raise BadDefinition(
                f"`in` needs a list of 1 to {MOST_LISTED} values, got {given!r:.60}",
                where="value",
                next='write ["a", "b"]',
            )
        return tuple(_one(field_name, "eq", each) for each in given)
    return _one(field_name, op, given)


def _one(field_name: str, op: str, given: Any) -> str | int | bool | Decimal:
    if field_name in AMOUNTS:
        return number(given, "value")
    if isinstance(given, Decimal | float):  # a float is refused there
        given = format(number(given, "value"), "f")
    needs_text = field_name in TEXTS or op in OF_TEXT
    if isinstance(given, bool) and op in {"eq", "ne", "contains"} and field_name not in TEXTS:
        return given
    if isinstance(given, int) and not isinstance(given, bool) and not needs_text:
        number(given, "value")
        return given
    if op == "contains" and isinstance(given, int) and field_name not in TEXTS:
        return given
    check_text(given, "value")
    return str(given)


def _parts(selector: Selector, kind: type[And | Or]) -> tuple[Selector, ...]:
    if not isinstance(selector, Selector):
        raise BadDefinition(f"{selector!r:.60} is not a condition on items", where="where", next='write tag("sale")')
    return selector.parts if isinstance(selector, kind) else (selector,)


def _check_parts(parts: object, where: str) -> None:
    if not isinstance(parts, tuple) or not parts or not all(isinstance(part, Selector) for part in parts):
        raise BadDefinition(f"{where} needs at least one condition, got {parts!r:.60}", where=where,
                            next='write tag("sale")')  # fmt: skip


everything: Final = All()
price: Final = Field("price")
compare_at: Final = Field("compareAt")
cost: Final = Field("cost")
sku: Final = Field("sku")
item_id: Final = Field("id")
currency: Final = Field("currency")
