"""Random rules, in all currencies, against an oracle on fractions; and against their own JSON form."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from holdfast.rules import Change, Refusal, Rule, Unchanged, evaluate, explain, from_json, to_json
from holdfast.rules.language import json_schema
from holdfast.rules.language.evaluate import Verdict
from holdfast.rules.language.items import Item
from holdfast.rules.language.money import shown_exactly
from holdfast.rules.language.write_json import text_of
from rules.language import oracle
from rules.language.rule_strategies import items, lists, rules, units

EXAMPLES = 300  # each with several items
CHECKED = Draft202012Validator(json_schema.schema())


def told(verdict: Verdict) -> oracle.Told:
    match verdict:
        case Change(_, _, after):
            return "changed", (after.unit_amount, after.compare_at)
        case Unchanged(_, is_selected):
            return "unchanged", is_selected
        case Refusal():
            return "refused", verdict.reason


@settings(max_examples=EXAMPLES, deadline=None)
@given(rules() | lists(), st.lists(items(), min_size=1, max_size=4))
def test_a_rule_gives_what_the_oracle_on_fractions_gives(rule: Rule, several: list[Item]) -> None:
    """A-119: selector and transform give one verdict per item; nothing is rounded unless the rule says so."""
    for item in several:
        assert told(evaluate(rule, item)) == oracle.verdict(rule, item)


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(rules() | lists())
def test_a_rule_and_its_json_form_round_trip_and_fit_the_published_schema(rule: Rule) -> None:
    form = to_json(rule)
    text = text_of(rule)

    assert from_json(form) == from_json(text) == from_json(text.encode()) == rule
    assert json.loads(text) == form
    assert text_of(from_json(text)) == text
    assert list(CHECKED.iter_errors(form)) == []


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(rules() | lists(), items())
def test_an_explanation_ends_in_the_verdict_and_shows_each_step(rule: Rule, item: Item) -> None:
    verdict = evaluate(rule, item)
    if (isinstance(verdict, Unchanged) and not verdict.is_selected) or item.currency == "XXX":
        return

    explained = explain(rule, item.price, item_id=item.id, sku=item.sku, cost=item.cost)

    assert told(explained.verdict) == told(verdict)
    if isinstance(verdict, Change) and rule.change is not None and rule.change.writes_price:
        calculated = [step.value for step in explained.steps if step.name not in {"compare at", "guardrail"}]
        assert calculated[-1] == shown_exactly(verdict.after.unit_amount or 0, 1, item.currency)
        assert not any(step.value == "refused" for step in explained.steps)


@given(units, st.integers(1, 10**6), st.sampled_from(["EUR", "JPY", "KWD"]))
def test_a_fraction_is_shown_exactly_or_cut(numerator: int, denominator: int, currency: str) -> None:
    places = {"EUR": 2, "JPY": 0, "KWD": 3}[currency]
    text = shown_exactly(numerator, denominator, currency)
    exact = Fraction(numerator, denominator * 10**places)

    if text.endswith("…"):
        cut = Fraction(text[:-1])
        assert cut <= exact < cut + Fraction(1, 10 ** (places + 6))
    else:
        assert Fraction(text) == exact


def test_the_published_schema_is_that_of_the_code() -> None:
    from pathlib import Path

    path = Path(__file__).parents[3] / "docs" / "reference" / "rule.schema.json"

    assert path.read_text(encoding="utf-8") == json_schema.written(), (
        "python -m holdfast.rules.language.json_schema > docs/reference/rule.schema.json"
    )
    assert Draft202012Validator.check_schema(json_schema.schema()) is None
