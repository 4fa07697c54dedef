"""Writes rules as JSON. Each rule has one JSON form, and reading that form gives the same rule again."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from holdfast.errors import BadDefinition
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.read_json import GUARDRAILS
from holdfast.rules.language.rule import ListedPrice, Rule
from holdfast.rules.language.selectors import All, And, Compare, Not, Or, Selector, Tag
from holdfast.rules.language.transforms import Rounding, Transform


def to_json(rule: Rule) -> dict[str, Any]:
    """Return a rule's JSON form, as values."""
    form: dict[str, Any] = {"name": rule.name}
    if rule.currency is not None:
        form["currency"] = rule.currency
    if rule.prices is not None:
        form["prices"] = {sku: _listed_form(entry) for sku, entry in rule.prices.items()}
    elif rule.change is not None:
        form["selector"] = _selector_form(rule.where)
        form["transform"] = _transform_form(rule.change)
    guardrails = _guard_form(rule.guard)
    if guardrails:
        form["guardrails"] = guardrails
    return form


def text_of(rule: Rule) -> str:
    """Return a rule's JSON form as text, the same for the same rule."""
    return json.dumps(to_json(rule), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _selector_form(selector: Selector) -> dict[str, Any]:
    match selector:
        case All():
            return {"all": True}
        case Tag(name):
            return {"tag": name}
        case Compare(field, op, value):
            values = [_value_form(each) for each in value] if isinstance(value, tuple) else _value_form(value)
            return {"field": field, "op": op, "value": values}
        case And(parts):
            return {"and": [_selector_form(part) for part in parts]}
        case Or(parts):
            return {"or": [_selector_form(part) for part in parts]}
        case Not(part):
            return {"not": _selector_form(part)}
        case _:
            raise BadDefinition(
                f"{selector!r:.60} is not a condition on items", where="selector", next='write tag("sale")'
            )


def _value_form(value: Any) -> Any:
    return format(value, "f") if isinstance(value, Decimal) else value


def _transform_form(change: Transform) -> dict[str, Any]:
    form: dict[str, Any] = {}
    if change.change is not None:
        form[change.change] = _value_form(change.value)
    if change.rounding is not None:
        form["round"] = _round_form(change.rounding)
    if change.floor_at is not None:
        form["floor"] = _value_form(change.floor_at)
    if change.ceiling_at is not None:
        form["ceiling"] = _value_form(change.ceiling_at)
    if change.writes_compare_at:
        form["compareAt"] = _value_form(change.compare)
    return form


def _round_form(rounding: Rounding) -> Any:
    if rounding.ending is not None:
        return {rounding.way: {"ending": _value_form(rounding.ending)}}
    return rounding.way if rounding.step is None else {rounding.way: _value_form(rounding.step)}


def _guard_form(guard: Guard) -> dict[str, Any]:
    usual = Guard()
    return {
        name: _value_form(getattr(guard, own))
        for name, own in GUARDRAILS.items()
        if getattr(guard, own) != getattr(usual, own)
    }


def _listed_form(entry: ListedPrice) -> dict[str, Any]:
    form = {"price": _value_form(entry.price)}
    return form if entry.compare_at == "keep" else {**form, "compareAt": _value_form(entry.compare_at)}
