"""Random rules and items, in all currencies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.items import Item
from holdfast.rules.language.rule import ListedPrice, Rule
from holdfast.rules.language.selectors import (
    AMOUNTS,
    OF_AMOUNTS,
    TEXTS,
    And,
    Compare,
    Not,
    Or,
    Selector,
    Tag,
    everything,
)
from holdfast.rules.language.transforms import Transform, absolute, keep_price, multiply, percent, set_to

TAGS = ["sale", "new", "a"]
SKUS = ["SKU-1", "SKU-2", "b", "1.5"]
currencies = st.sampled_from(["EUR", "JPY", "KWD", "CLF", *sorted(EXPONENTS)])


def decimals(least: str, most: str) -> st.SearchStrategy[Decimal]:
    """Numbers of no to four decimals. Made of whole numbers, which is much faster than st.decimals."""
    low, high = Decimal(least), Decimal(most)
    return st.one_of(
        *(
            st.integers(int(low * 10**places), int(high * 10**places)).map(
                lambda number, places=places: Decimal(number).scaleb(-places)
            )
            for places in (0, 2, 4)
        )
    )


prices = decimals("0", "1000")
units = st.one_of(st.integers(0, 200), st.integers(0, 10**6), st.integers(0, 10**18 - 1))


def values_of(field: str, op: str) -> st.SearchStrategy[Any]:
    """Values that the operator takes for the field."""
    if field in AMOUNTS:
        one: st.SearchStrategy[Any] = prices
    elif field in TEXTS:
        one = st.sampled_from([*SKUS, "EUR"])
    elif op in {"eq", "ne", "in", "contains"}:
        one = st.sampled_from(["a", "b", 1, 2, "1.5", True, Decimal("1.50")])
    elif op in {"startsWith", "endsWith"}:
        one = st.sampled_from(["a", "b", "1.5"])
    else:
        one = st.sampled_from(["a", 1, "1.5", Decimal(2)])
    return st.lists(one, min_size=1, max_size=3).map(tuple) if op == "in" else one


@st.composite
def comparisons(draw: st.DrawFn) -> Selector:
    field = draw(st.sampled_from([*AMOUNTS, *TEXTS, "fields.x", "fields.y"]))
    ops = [*OF_AMOUNTS] if field in AMOUNTS else [*OF_AMOUNTS, "contains", "startsWith", "endsWith"]
    op = draw(st.sampled_from(ops))
    return Compare(field, op, draw(values_of(field, op)))


selectors: st.SearchStrategy[Selector] = st.recursive(
    st.one_of(st.just(everything), st.sampled_from(TAGS).map(Tag), comparisons()),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=6,
)


@st.composite
def transforms(draw: st.DrawFn) -> Transform:
    change = draw(
        st.one_of(
            decimals("-99.9", "300").map(percent),
            decimals("-500", "500").map(absolute),
            prices.map(set_to),
            decimals("0", "5").filter(bool).map(multiply),
            st.just(keep_price()),
        )
    )
    way = draw(st.sampled_from(["none", "up", "down", "nearest"]))
    match draw(st.sampled_from(["unit", "step", "ending"])):
        case "step":
            change = change.round(way, draw(st.sampled_from(["0.05", "0.5", "1", "7", "10", "0.025"])))
        case "ending":
            change = change.round(way, ending=draw(st.sampled_from(["0.99", ".9", "9.99", "95", "5", "0.09", "49.50"])))
        case _:
            change = change.round(way)
    low = draw(st.none() | decimals("0", "50"))
    if low is not None:
        change = change.floor(low)
    high = draw(st.none() | decimals("50", "900"))
    if high is not None:
        change = change.ceiling(high)
    return change.compare_at(draw(st.sampled_from(["keep", "before", "clear"]) | prices))


guards = st.builds(
    Guard,
    minimum=st.none() | decimals("0", "50"),
    maximum=st.none() | decimals("50", "2000"),
    most_down=st.none() | decimals("0", "100"),
    most_up=st.none() | decimals("0", "300"),
    above_zero=st.booleans(),
    above_cost=st.booleans(),
    compare_at_above=st.booleans(),
    most_targets=st.none() | st.integers(1, 1000),
)
some_currencies = st.none() | currencies


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    change = draw(transforms().filter(lambda each: each.writes_price or each.writes_compare_at))
    return Rule(draw(st.sampled_from(["summer", "ü"])), draw(selectors), change, draw(guards), draw(some_currencies))


@st.composite
def lists(draw: st.DrawFn) -> Rule:
    entry = st.builds(ListedPrice, prices, st.sampled_from(["keep", "clear"]) | prices)
    entries = draw(st.dictionaries(st.sampled_from([*SKUS, "7"]), entry, min_size=1))
    return Rule("list", guard=draw(guards), currency=draw(some_currencies), prices=entries)


@st.composite
def items(draw: st.DrawFn, currency: str | None = None) -> Item:
    return Item(
        draw(st.sampled_from(["7", "SKU-1", "b"])),
        draw(st.none() | units),
        currency or draw(currencies | st.just("XXX")),
        draw(st.none() | units),
        draw(st.none() | units),
        draw(st.none() | st.sampled_from(SKUS)),
        tuple(draw(st.sets(st.sampled_from(TAGS)))),
        draw(
            st.dictionaries(
                st.sampled_from(["x", "y"]),
                st.sampled_from(["a", "ab", "1.5", "1.50", 1, 2, Decimal("1.5"), True, ["a", 1], None]),
            )
        ),
    )
