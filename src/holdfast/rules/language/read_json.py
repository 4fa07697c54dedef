"""Reads rules from JSON. Every error says where in the rule the value at fault is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from holdfast.errors import BadDefinition
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.rule import DEEPEST, ListedPrice, Rule
from holdfast.rules.language.selectors import And, Compare, Not, Or, Selector, Tag, everything
from holdfast.rules.language.transforms import (
    CHANGES,
    Transform,
    absolute,
    keep_price,
    multiply,
    percent,
    set_to,
)
from holdfast.spelling import did_you_mean

LARGEST_TEXT = 8_000_000  # bytes of a rule's JSON
_LONGEST_NUMBER = 30
_RULE = ("name", "selector", "transform", "guardrails", "currency", "prices")
_TRANSFORM = (*CHANGES, "round", "floor", "ceiling", "compareAt")
_MAKERS: dict[str, Callable[[Any], Transform]] = {
    "percent": percent,
    "absolute": absolute,
    "set": set_to,
    "multiply": multiply,
}
GUARDRAILS = {  # JSON: Python
    "minPrice": "minimum",
    "maxPrice": "maximum",
    "maxDecreasePercent": "most_down",
    "maxIncreasePercent": "most_up",
    "aboveZero": "above_zero",
    "aboveCost": "above_cost",
    "compareAtAbovePrice": "compare_at_above",
    "maxTargets": "most_targets",
}
_SELECTORS = ("all", "tag", "sku", "priceRange", "field", "and", "or", "not")


def from_json(given: str | bytes | Mapping[str, Any]) -> Rule:
    """Read a rule from JSON text, or from what a JSON parser returned."""
    document = _parsed(given) if isinstance(given, str | bytes) else given
    _check_object(document, "the rule", _RULE)
    with _at("guardrails"):
        guard = _guard(document.get("guardrails", {}))
    shared: dict[str, Any] = {"guard": guard, "currency": document.get("currency")}
    name = document.get("name", "")
    if "prices" in document:
        with _at("prices"):
            if "selector" in document or "transform" in document:
                raise BadDefinition(
                    "a list of prices has no selector and no transform of its own", next="leave both out, or the prices"
                )
            return Rule(name, prices=_prices(document["prices"]), **shared)
    for part, example in (("selector", '{"tag": "sale"}'), ("transform", '{"percent": "-20"}')):
        if part not in document:
            raise BadDefinition(f"the rule has no {part}", where=part, next=f'write "{part}": {example}')
    with _at("selector"):
        where = _selector(document["selector"], 1)
    with _at("transform"):
        change = _transform(document["transform"])
    return Rule(name, where, change, **shared)


def _parsed(text: str | bytes) -> Any:
    if len(text) > LARGEST_TEXT:
        raise BadDefinition(
            f"a rule can have {LARGEST_TEXT:,} bytes of JSON, got {len(text):,}", where="rule", next="split the rule"
        )
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_refuse_fraction, parse_int=_whole,
                          parse_constant=_refuse_constant)  # fmt: skip
    except RecursionError:
        raise BadDefinition("the rule is nested too deep", where="rule", next=f"use at most {DEEPEST} levels") from None
    except UnicodeDecodeError as error:
        raise BadDefinition(f"the rule is not UTF-8: {error}", where="rule", next="save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadDefinition(f"the rule is not valid JSON: {error.msg}", where="rule",
                            next=f"look at line {error.lineno}, column {error.colno}") from None  # fmt: skip


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadDefinition(f"the rule has {twice!r:.60} twice in one object", where=twice, next="remove one of them")
    return fields


def _refuse_fraction(text: str) -> NoReturn:
    raise BadDefinition(
        f"the number {text:.40} is a float to most JSON parsers", next=f'write it in quotes: "{text:.40}"'
    )


def _refuse_constant(text: str) -> NoReturn:
    raise BadDefinition(f"{text} is not a number", next="write an amount in quotes")


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise BadDefinition(f"the number {text:.40}… has too many digits", next="use at most 18 digits")
    return int(text)


@contextmanager
def _at(part: str) -> Iterator[None]:
    """Prefix the place of errors, so that `where` is the path to the value at fault."""
    try:
        yield
    except BadDefinition as error:
        error.where = part if error.where in {None, part} else f"{part}.{error.where}"
        raise


def _check_object(given: Any, what: str, known: tuple[str, ...]) -> None:
    if not isinstance(given, Mapping):
        raise BadDefinition(f"{what} must be an object, got {given!r:.60}",
                            next=f"write {{…}} with some of: {', '.join(known)}")  # fmt: skip
    for name in given:
        if name not in known:
            raise BadDefinition(
                f"{what} has no {name!r:.60}", where=str(name)[:60], next=did_you_mean(str(name), known)
            )


def _selector(given: Any, depth: int) -> Selector:
    if depth > DEEPEST:
        raise BadDefinition("the selector is nested too deep", next=f"use at most {DEEPEST} levels")
    if not isinstance(given, Mapping) or not given:
        raise BadDefinition(f"a selector must be an object, got {given!r:.60}", next='write {"tag": "sale"}')
    kind = "field" if "field" in given else next(iter(given))
    if kind not in _SELECTORS:
        raise BadDefinition(
            f"there is no selector {kind!r:.60}", where=str(kind)[:60], next=did_you_mean(str(kind), _SELECTORS)
        )
    _check_object(given, f"a selector with {kind}", ("field", "op", "value") if kind == "field" else (kind,))
    if kind in {"and", "or"}:
        return _combined(kind, given[kind], depth)
    if kind == "field":
        return _condition(given)
    with _at(kind):
        return _single(kind, given[kind], depth)


def _combined(kind: str, given: Any, depth: int) -> Selector:
    if not isinstance(given, list | tuple) or not given:
        raise BadDefinition(f"{kind} needs a list of selectors, got {given!r:.60}", where=kind,
                            next=f'write "{kind}": [{{"tag": "sale"}}, {{"tag": "new"}}]')  # fmt: skip
    parts: list[Selector] = []
    for index, each in enumerate(given):
        with _at(f"{kind}[{index}]"):
            parts.append(_selector(each, depth + 1))
    return And(tuple(parts)) if kind == "and" else Or(tuple(parts))


def _single(kind: str, value: Any, depth: int) -> Selector:
    match kind:
        case "all":
            if value is not True:
                raise BadDefinition(f"all must be true, got {value!r:.60}", next='write {"all": true}')
            return everything
        case "tag":
            return Tag(value)
        case "sku":
            listed = isinstance(value, list | tuple)
            return Compare("sku", "in", tuple(value)) if listed else Compare("sku", "eq", value)
        case "priceRange":
            return _price_range(value)
        case _:
            return Not(_selector(value, depth + 1))


def _condition(given: Mapping[str, Any]) -> Selector:
    for part, example in (("op", "eq"), ("value", "1.99")):
        if part not in given:
            raise BadDefinition(f"the condition on {given['field']!r:.60} has no {part}", where=part,
                                next=f'write "{part}": "{example}"')  # fmt: skip
    return Compare(given["field"], given["op"], given["value"])


def _price_range(given: Any) -> Selector:
    _check_object(given, "priceRange", ("min", "max"))
    least, most = given.get("min"), given.get("max")
    if least is None and most is None:
        raise BadDefinition("priceRange needs min, max or both", next='write {"min": "1.00", "max": "5.00"}')
    bounds = [Compare("price", op, bound) for op, bound in (("gte", least), ("lte", most)) if bound is not None]
    return bounds[0] if len(bounds) == 1 else And(tuple(bounds))


def _transform(given: Any) -> Transform:
    _check_object(given, "the transform", _TRANSFORM)
    chosen = [name for name in CHANGES if name in given]
    if len(chosen) > 1:
        raise BadDefinition(f"a transform has one of {', '.join(CHANGES)}, got {' and '.join(chosen)}", where=chosen[1],
                            next=f"keep {' or '.join(chosen)}")  # fmt: skip
    transform = _MAKERS[chosen[0]](given[chosen[0]]) if chosen else keep_price()
    if "round" in given:
        with _at("round"):
            transform = _round(transform, given["round"])
    if "floor" in given:
        transform = transform.floor(given["floor"])
    if "ceiling" in given:
        transform = transform.ceiling(given["ceiling"])
    if "compareAt" in given:
        transform = transform.compare_at(given["compareAt"])
    return transform


def _round(transform: Transform, given: Any) -> Transform:
    if isinstance(given, str):
        return transform.round(given)
    if not isinstance(given, Mapping) or len(given) != 1:
        raise BadDefinition(f"round must be one way and its step, got {given!r:.60}", next='write {"nearest": "0.05"}')
    ((way, step),) = given.items()
    if isinstance(step, Mapping):
        _check_object(step, "round", ("ending",))
        return transform.round(way, ending=step.get("ending", ""))
    return transform.round(way, step)


def _guard(given: Any) -> Guard:
    _check_object(given, "guardrails", tuple(GUARDRAILS))
    try:
        return Guard(**{GUARDRAILS[name]: value for name, value in given.items()})
    except BadDefinition as error:
        error.where = next((name for name, own in GUARDRAILS.items() if own == error.where), error.where)
        raise


def _prices(given: Any) -> dict[str, ListedPrice]:
    if not isinstance(given, Mapping):
        raise BadDefinition(f"prices must be an object, got {given!r:.60}", next='write {"SKU-1": {"price": "1.99"}}')
    prices: dict[str, ListedPrice] = {}
    for sku, entry in given.items():
        with _at(str(sku)[:60]):
            _check_object(entry, "an entry", ("price", "compareAt"))
            prices[sku] = ListedPrice(entry.get("price"), entry.get("compareAt", "keep"))
    return prices
