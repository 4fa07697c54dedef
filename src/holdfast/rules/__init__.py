"""Rules: bulk changes that are previewed, applied as previewed, stopped, retried and explained.

The names here write and evaluate rules. They are pure: `hf.rules` previews and applies them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.rules.language.evaluate import Change, Refusal, Unchanged, evaluate
    from holdfast.rules.language.explain import Explanation, explain
    from holdfast.rules.language.guard import Guard
    from holdfast.rules.language.items import Item, item
    from holdfast.rules.language.money import Price
    from holdfast.rules.language.price_list import rule_from_csv
    from holdfast.rules.language.read_json import from_json
    from holdfast.rules.language.rule import Rule
    from holdfast.rules.language.selectors import (
        compare_at,
        cost,
        currency,
        everything,
        field,
        item_id,
        price,
        sku,
        tag,
    )
    from holdfast.rules.language.transforms import absolute, keep_price, multiply, percent, set_to
    from holdfast.rules.language.write_json import to_json

__all__ = [
    "Change", "Explanation", "Guard", "Item", "Price", "Refusal", "Rule", "Unchanged", "absolute", "compare_at", "cost",
    "currency", "evaluate", "everything", "explain", "field", "from_json", "item", "item_id", "keep_price", "multiply",
    "percent", "price", "rule_from_csv", "set_to", "sku", "tag", "to_json",
]  # fmt: skip

_PLACES = {
    **dict.fromkeys(("Change", "Refusal", "Unchanged", "evaluate"), "evaluate"),
    **dict.fromkeys(("Explanation", "explain"), "explain"),
    "Guard": "guard",
    **dict.fromkeys(("Item", "item"), "items"),
    "Price": "money",
    "rule_from_csv": "price_list",
    "from_json": "read_json",
    "Rule": "rule",
    **dict.fromkeys(
        ("compare_at", "cost", "currency", "everything", "field", "item_id", "price", "sku", "tag"), "selectors"
    ),
    **dict.fromkeys(("absolute", "keep_price", "multiply", "percent", "set_to"), "transforms"),
    "to_json": "write_json",
}

if not TYPE_CHECKING:  # a type checker would take every name as one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, because the face's entry and commands need none of them."""
        if name not in _PLACES:
            raise AttributeError(f"module 'holdfast.rules' has no attribute {name!r}")
        return getattr(import_module(f"holdfast.rules.language.{_PLACES[name]}"), name)
