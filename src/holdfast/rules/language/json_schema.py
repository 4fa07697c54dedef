"""Writes the JSON Schema of rules, for editors: `python -m holdfast.rules.language.json_schema > rule.schema.json`."""

from __future__ import annotations

import json
import sys
from typing import Any

from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.guard import MOST_DOWN, MOST_UP
from holdfast.rules.language.money import DIGITS
from holdfast.rules.language.rule import ALL, LONGEST_NAME, MOST_PRICES
from holdfast.rules.language.selectors import (
    AMOUNTS,
    CUSTOM,
    LONGEST_TEXT,
    MOST_LISTED,
    OF_AMOUNTS,
    OF_TEXT,
    OPERATORS,
    TEXTS,
)
from holdfast.rules.language.transforms import CHANGES, COMPARE_AT, WAYS

_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}


def schema() -> dict[str, Any]:
    """Return it as values."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A rule of Holdfast",
        "description": "Which items change, how, and within which limits; or a list of prices by sku.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "not": {"const": ALL}},
            "currency": {"description": "Items in another currency are refused.", "enum": sorted(EXPONENTS)},
            "selector": {"$ref": "#/$defs/selector"},
            "transform": {"$ref": "#/$defs/transform"},
            "guardrails": _guardrails(),
            "prices": _prices(),
        },
        "required": ["name"],
        "oneOf": [{"required": ["selector", "transform"]}, {"required": ["prices"]}],
        "additionalProperties": False,
        "dependentSchemas": {"prices": {"properties": {"selector": False, "transform": False}}},
        "$defs": {
            "number": {
                "description": "An exact number, as text with a decimal point or as a whole number.",
                "oneOf": [{"type": "string", "pattern": f"^-?{DIGITS}$"}, {"type": "integer"}],
            },
            "amount": {
                "description": "An amount of 0 or more.",
                "oneOf": [{"type": "string", "pattern": f"^{DIGITS}$"}, {"type": "integer", "minimum": 0}],
            },
            "selector": _selector(),
            "transform": _transform(),
        },
    }


def written() -> str:
    """Return it as text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _selector() -> dict[str, Any]:
    one = {"$ref": "#/$defs/selector"}
    several = {"type": "array", "items": one, "minItems": 1}
    number = {"$ref": "#/$defs/number"}
    price_range = _object({"min": number, "max": number}, [])
    return {
        "oneOf": [
            _object({"all": {"const": True}}, ["all"]),
            _object({"tag": _TEXT}, ["tag"]),
            _object({"sku": {"oneOf": [_TEXT, _several(_TEXT)]}}, ["sku"]),
            _object({"priceRange": {**price_range, "minProperties": 1}}, ["priceRange"]),
            *_comparisons(number),
            _object({"and": several}, ["and"]),
            _object({"or": several}, ["or"]),
            _object({"not": one}, ["not"]),
        ]
    }


def _several(one: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_LISTED}


def _comparisons(number: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the forms of a comparison: each kind of field has its operators and values."""
    custom = {"type": "string", "pattern": f"^{CUSTOM.replace('.', chr(92) + '.')}.+$"}
    own = [*OF_TEXT, "eq", "ne"]
    order = ["gt", "gte", "lt", "lte"]
    scalar = {"oneOf": [_TEXT, {"type": "integer"}, {"type": "boolean"}]}
    ordered = {"oneOf": [_TEXT, {"type": "integer"}]}
    amounts, texts = {"enum": list(AMOUNTS)}, {"enum": list(TEXTS)}
    return [
        _comparison(amounts, [op for op in OF_AMOUNTS if op != "in"], number),
        _comparison(amounts, ["in"], _several(number)),
        _comparison(texts, [*own, *order], _TEXT),
        _comparison(texts, ["in"], _several(_TEXT)),
        _comparison(custom, [op for op in OPERATORS if op in {"eq", "ne", "contains"}], scalar),
        _comparison(custom, order, ordered),
        _comparison(custom, ["startsWith", "endsWith"], _TEXT),
        _comparison(custom, ["in"], _several(scalar)),
    ]


def _comparison(field: dict[str, Any], ops: list[str], value: dict[str, Any]) -> dict[str, Any]:
    return _object({"field": field, "op": {"enum": ops}, "value": value}, ["field", "op", "value"])


def _transform() -> dict[str, Any]:
    amount = {"$ref": "#/$defs/amount"}
    number = {"$ref": "#/$defs/number"}
    ending = _object({"ending": amount}, ["ending"])
    ways = [_object({way: {"oneOf": [*amount_forms(), ending]}}, [way]) for way in WAYS]
    changes = {
        "percent": {**number, "description": "Above -100."},
        "absolute": number,
        "set": amount,
        "multiply": amount,
    }
    return {
        "type": "object",
        "properties": {
            **changes,
            "round": {"oneOf": [{"enum": ["none", *WAYS]}, *ways]},
            "floor": amount,
            "ceiling": amount,
            "compareAt": {"oneOf": [{"enum": list(COMPARE_AT)}, *amount_forms()]},
        },
        "additionalProperties": False,
        "minProperties": 1,
        "not": {"anyOf": [{"required": [one, other]} for one in CHANGES for other in CHANGES if one < other]},
    }


def amount_forms() -> list[dict[str, Any]]:
    """Return the two forms of an amount."""
    return [{"type": "string", "pattern": f"^{DIGITS}$"}, {"type": "integer", "minimum": 0}]


def _guardrails() -> dict[str, Any]:
    amount: dict[str, Any] = {"oneOf": [*amount_forms(), {"type": "null"}]}
    return {
        "type": "object",
        "properties": {
            "minPrice": amount,
            "maxPrice": amount,
            "maxDecreasePercent": {**amount, "default": str(MOST_DOWN)},
            "maxIncreasePercent": {**amount, "default": str(MOST_UP)},
            "aboveZero": {"type": "boolean", "default": True},
            "aboveCost": {"type": "boolean", "default": True},
            "compareAtAbovePrice": {"type": "boolean", "default": True},
            "maxTargets": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }


def _prices() -> dict[str, Any]:
    compare_at = {"oneOf": [{"enum": ["keep", "clear"]}, *amount_forms()]}
    return {
        "description": "New prices by sku.",
        "type": "object",
        "additionalProperties": _object({"price": {"$ref": "#/$defs/amount"}, "compareAt": compare_at}, ["price"]),
        "propertyNames": _TEXT,
        "minProperties": 1,
        "maxProperties": MOST_PRICES,
    }


if __name__ == "__main__":
    sys.stdout.write(written())
