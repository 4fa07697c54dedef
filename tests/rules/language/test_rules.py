"""Rules as people write them: the two forms, the guardrails, and what each bad input is answered with."""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from holdfast.errors import BadDefinition
from holdfast.rules import (
    Change,
    Guard,
    Price,
    Refusal,
    Rule,
    Unchanged,
    absolute,
    compare_at,
    evaluate,
    everything,
    explain,
    field,
    from_json,
    item,
    keep_price,
    multiply,
    percent,
    price,
    rule_from_csv,
    set_to,
    sku,
    tag,
    to_json,
)
from holdfast.rules.language import json_schema
from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.items import ItemRefused, item_from

SUMMER = Rule("summer", where=tag("sale") & (price >= "1.00"), guard=Guard(minimum="3.50", most_down=30),
              change=percent(-20).round("nearest", "0.05").compare_at("before"))  # fmt: skip
SUMMER_JSON = {
    "name": "summer",
    "selector": {"and": [{"tag": "sale"}, {"field": "price", "op": "gte", "value": "1.00"}]},
    "transform": {"percent": "-20", "round": {"nearest": "0.05"}, "compareAt": "before"},
    "guardrails": {"minPrice": "3.50", "maxDecreasePercent": "30"},
}
CHECKED = Draft202012Validator(json_schema.schema())


def after(rule: Rule, amount: str | None, **more: Any) -> Any:
    """The verdict on an item in EUR that carries the tag, as text."""
    match evaluate(rule, item("1", amount, more.pop("currency", "EUR"), tags=["sale"], **more)):
        case Change(_, _, Price(units, compare, _)):
            return units, compare
        case Refusal(reason=reason):
            return reason
        case Unchanged(is_selected=is_selected):
            return "same" if is_selected else "not selected"


def rule(**parts: Any) -> Rule:
    return Rule("r", **{"where": everything, **parts})


def test_the_two_forms_are_the_same_rule() -> None:
    """A-119: a rule has a selector and a transform."""
    assert from_json(SUMMER_JSON) == SUMMER
    assert from_json(json.dumps(SUMMER_JSON)) == SUMMER
    assert to_json(SUMMER) == SUMMER_JSON


def test_the_rule_of_the_example_gives_the_prices_of_the_example() -> None:
    assert after(SUMMER, "49.90") == (3990, 4990)
    assert after(SUMMER, "4.00") == "below_minimum"
    assert after(SUMMER, "0.99") == "not selected"


@pytest.mark.parametrize(
    ("change", "amount", "units"),
    [
        (percent(-20), "49.95", 3996),
        (percent("12.5"), "8", 900),
        (percent(-20), "49.99", "result_too_precise"),
        (percent(-20).round("down"), "49.99", 3999),
        (percent(-20).round("up"), "49.99", 4000),
        (percent("-50").round("nearest"), "0.01", "same"),
        (absolute("-5"), "20", 1500),
        (set_to("7.77"), "9", 777),
        (multiply("1.19"), "100", 11900),
        (keep_price().round("nearest", ending="0.99"), "20.30", 1999),
        (keep_price().round("up", ending="9.99"), "20.30", 2999),
        (keep_price().round("down", ending=".99"), "0.50", "no_such_ending"),
        (keep_price().round("nearest", ending=".99"), "0.80", 99),
        (keep_price().round("nearest", "0.05"), "1.03", 105),
        (multiply("0.875").floor("8").ceiling("9"), "8", "same"),
        (multiply("2").round("nearest", "10").ceiling("95"), "60", 9500),
        (set_to("1.999"), "2", "value_too_precise"),
    ],
)
def test_transforms_change_round_and_bound_in_that_order(change: Any, amount: str, units: Any) -> None:
    found = after(rule(change=change), amount)

    assert (found[0] if isinstance(found, tuple) else found) == units


@pytest.mark.parametrize(
    ("change", "guard", "amount", "reason"),
    [
        (set_to(0), Guard(most_down=None), "5", "not_above_zero"),
        (absolute("-6"), Guard(most_down=None, above_zero=False), "5", "negative"),
        (percent("-50.01").round("up"), Guard(), "100", "down_too_far"),
        (percent("100.01").round("down"), Guard(), "100", "up_too_far"),
        (set_to("3.99"), Guard(), "5", "below_cost"),
        (set_to("5.50"), Guard(maximum="5.40"), "5", "above_maximum"),
        (percent(10).compare_at("before"), Guard(), "10", "compare_at_not_above"),
        (multiply("999999"), Guard(most_up=None), "9999999999999", "too_large"),
    ],
)
def test_guardrails_are_on_by_default_and_refuse_with_their_reason(
    change: Any, guard: Guard, amount: str, reason: str
) -> None:
    assert after(rule(change=change, guard=guard), amount, cost="4.00") == reason


def test_each_guardrail_can_be_switched_off_by_name() -> None:
    off = Guard(most_down=None, most_up=None, above_zero=False, above_cost=False, compare_at_above=False)

    assert after(rule(change=set_to(0), guard=off), "5", cost="4") == (0, None)
    assert after(rule(change=multiply(9).compare_at("before"), guard=off), "5", cost="50") == (4500, 500)


def test_compare_at_is_kept_set_to_before_set_to_a_value_or_cleared() -> None:
    def compared(how: str) -> Any:
        return after(rule(change=percent(-10).compare_at(how)), "10", compare_at="12")

    assert [compared(how) for how in ("keep", "before", "14.50", "clear")] == [
        (900, 1200), (900, 1000), (900, 1450), (900, None),
    ]  # fmt: skip
    assert after(rule(change=set_to(10).compare_at("before")), "10", compare_at="12") == "same"


def test_a_rule_knows_which_fields_it_writes() -> None:
    both, only_compare, only_price = percent(1).compare_at("before"), keep_price().compare_at("clear"), percent(1)

    assert [
        (each.writes_price, each.writes_compare_at)
        for each in (rule(change=both), rule(change=only_compare), rule(change=only_price))
    ] == [(True, True), (False, True), (True, False)]


def test_ne_is_not_eq_so_it_matches_items_that_lack_the_field() -> None:
    acme = field("brand") == "acme"
    other = field("brand") != "acme"
    lacking = item("1", "1", "EUR")

    for selector, amount in ((acme, "not selected"), (other, (110, None)), (~acme, (110, None))):
        verdict = evaluate(rule(where=selector, change=percent(10)), lacking)
        assert (verdict.after[:2] if isinstance(verdict, Change) else "not selected") == amount


def test_selectors_in_json_have_short_forms() -> None:
    transform = {"percent": "1"}
    short = {"or": [{"sku": "A"}, {"sku": ["A", "B"]}, {"priceRange": {"min": "1", "max": 2}}, {"all": True}]}

    found = from_json({"name": "r", "selector": short, "transform": transform})

    assert found.where == (sku == "A") | sku.in_(["A", "B"]) | price.between("1", 2) | everything
    assert list(CHECKED.iter_errors({"name": "r", "selector": short, "transform": transform})) == []


def test_a_condition_has_no_truth_so_that_and_cannot_drop_one() -> None:
    for wrong in (lambda: tag("a") and tag("b"), lambda: "1" < price < "2", lambda: not tag("a")):
        with pytest.raises(BadDefinition) as exc_info:
            wrong()
        assert "&" in str(exc_info.value.next)


def test_an_item_in_another_currency_than_the_rules_is_refused() -> None:
    euros = rule(change=percent(10), currency="EUR")

    assert after(euros, "10") == (1100, None)
    assert after(euros, "1000", currency="JPY") == "currency_differs"
    assert after(rule(change=absolute("0.50")), "1000", currency="JPY") == "value_too_precise"
    assert after(rule(change=percent(10), where=price > "999.50"), "1000", currency="JPY") == (1100, None)


def test_the_callers_decimal_context_does_not_matter() -> None:
    with decimal.localcontext(decimal.Context(prec=2)):
        assert after(rule(change=percent("12.3456").round("nearest"), where=price > "12345"), "12345.67") == (
            1386982,
            None,
        )


def test_currencies_have_the_exponents_of_iso_4217() -> None:
    assert {code: EXPONENTS[code] for code in ("EUR", "JPY", "KWD", "CLF", "HUF", "ISK")} == {
        "EUR": 2, "JPY": 0, "KWD": 3, "CLF": 4, "HUF": 2, "ISK": 0,
    }  # fmt: skip
    assert len(EXPONENTS) > 150


@pytest.mark.parametrize(
    ("part", "given", "where"),
    [
        ("transform", {"percent": -12.5}, "transform.percent"),
        ("transform", {"percent": "-100"}, "transform.percent"),
        ("transform", {"percent": "-101"}, "transform.percent"),
        ("transform", {"percent": "1", "set": "2"}, "transform.set"),
        ("transform", {"prozent": "1"}, "transform.prozent"),
        ("transform", {"percent": "1e5"}, "transform.percent"),
        ("transform", {"percent": "NaN"}, "transform.percent"),
        ("transform", {"percent": True}, "transform.percent"),
        ("transform", {"set": "-1"}, "transform.set"),
        ("transform", {"multiply": "0"}, "transform.multiply"),
        ("transform", {"percent": "1", "round": {"nearest": "0"}}, "transform.round"),
        ("transform", {"percent": "1", "round": "sideways"}, "transform.round"),
        ("transform", {"percent": "1", "floor": "5", "ceiling": "4"}, "transform.floor"),
        ("transform", {"percent": "1", "compareAt": "after"}, "transform.compareAt"),
        ("transform", {}, "change"),
        ("transform", [], "transform"),
        ("selector", {}, "selector"),
        ("selector", {"all": False}, "selector.all"),
        ("selector", {"tog": "sale"}, "selector.tog"),
        ("selector", {"and": []}, "selector.and"),
        ("selector", {"and": [{"tag": "a"}, {"tag": 7}]}, "selector.and[1].tag"),
        ("selector", {"field": "prise", "op": "eq", "value": "1"}, "selector.field"),
        ("selector", {"field": "price", "op": "about", "value": "1"}, "selector.op"),
        ("selector", {"field": "price", "op": "contains", "value": "1"}, "selector.op"),
        ("selector", {"field": "price", "op": "gt", "value": 1.5}, "selector.value"),
        ("selector", {"field": "price", "op": "gt", "value": "1,99"}, "selector.value"),
        ("selector", {"field": "price", "op": "gt"}, "selector.value"),
        ("selector", {"field": "sku", "op": "in", "value": "A"}, "selector.value"),
        ("selector", {"field": "fields.x", "op": "eq", "value": {"a": 1}}, "selector.value"),
        ("selector", {"priceRange": {}}, "selector.priceRange"),
        ("guardrails", {"minPrice": 3.5}, "guardrails.minPrice"),
        ("guardrails", {"maxPrice": "1", "minPrice": "2"}, "guardrails.minPrice"),
        ("guardrails", {"aboveZero": "no"}, "guardrails.aboveZero"),
        ("guardrails", {"maxTargets": 0}, "guardrails.maxTargets"),
        ("guardrails", {"minimum": "1"}, "guardrails.minimum"),
        ("currency", "EURO", "currency"),
        ("currency", "eur", "currency"),
        ("name", "", "name"),
        ("prices", {"A": {"price": "1"}}, "prices"),
        ("colour", "red", "colour"),
    ],
)
def test_a_bad_rule_is_answered_with_the_place_at_fault(part: str, given: Any, where: str) -> None:
    form = {**SUMMER_JSON, part: given}

    with pytest.raises(BadDefinition) as exc_info:
        from_json(form)

    assert exc_info.value.where == where
    assert exc_info.value.exit_code == 2
    assert exc_info.value.next
    beyond = {"transform.percent", "transform.multiply", "transform.floor", "transform.round", "guardrails.minPrice"}
    assert list(CHECKED.iter_errors(form)) or where in beyond  # what a schema cannot say


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "r", "selector": {"all": true}, "transform": {"percent": -12.5}}',
        '{"name": "r", "name": "s", "selector": {"all": true}, "transform": {"percent": "1"}}',
        '{"name": "r", "selector": {"all": true}, "transform": {"percent": NaN}}',
        '{"name": "r", "selector": {"all": true}, "transform": {"percent": ' + "9" * 5000 + "}}",
        '{"name": "r", "selector": ' + '{"not": ' * 1000 + '{"all": true}' + "}" * 1001 + "}",
        '{"name": "r", "selector": '
        + '{"not": ' * 60
        + '{"all": true}'
        + "}" * 60
        + ', "transform": {"percent": "1"}}',
        "[" * 100_000,
        json.dumps({"name": "x" * 10_000_000}),
        '{"name": "r"',
        '"r"',
        b"\xff\xfe",
        '{"name": "\\ud800", "selector": {"all": true}, "transform": {"percent": "1"}}',
        '{"name": "r", "selector": {"tag": "\\u0000"}, "transform": {"percent": "1"}}',
    ],
)
def test_bad_json_is_answered_with_an_error_of_ours(text: str | bytes) -> None:
    """Bad input: 10 MB, 1 000 levels, a float, a name twice, and text that is no JSON."""
    with pytest.raises(BadDefinition) as exc_info:
        from_json(text)

    assert len(str(exc_info.value)) < 300
    assert exc_info.value.next


def test_a_selector_made_in_python_cannot_be_endless_either() -> None:
    deep = tag("a")
    for _ in range(100):
        deep = ~deep
    wide = tag("a")
    for _ in range(60):
        wide = wide & tag("b")  # one `and` of 61 parts

    assert rule(where=wide, change=percent(1))
    with pytest.raises(BadDefinition):
        rule(where=deep, change=percent(1))


@pytest.mark.parametrize(
    "given", [0.1, float("nan"), None, "1,99", "\u0661", " 1", "+1", Decimal("Infinity"), Decimal("1e99")]
)
def test_a_number_that_is_not_exact_is_refused(given: Any) -> None:
    for make in (percent, absolute, set_to, multiply, lambda value: compare_at > value):
        with pytest.raises(BadDefinition) as exc_info:
            make(given)
        assert exc_info.value.next


def test_a_list_of_prices_is_a_rule_and_round_trips() -> None:
    listed = rule_from_csv(
        "spring", b"\xef\xbb\xbfsku,price,compare-at\r\nA,1.99,2.99\r\nB,5,\r\n\r\nC,7.50,-\r\n", currency="EUR"
    )

    assert from_json(to_json(listed)) == listed
    assert list(CHECKED.iter_errors(to_json(listed))) == []

    def priced(which: str, **more: Any) -> Any:
        return after(listed, "5.00", sku=which, **more)

    assert (priced("A"), priced("B"), priced("C", compare_at="9"), priced("D")) == (
        "down_too_far", "same", (750, None), "not selected",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("sku,price\nA,1.99\nA,2.99\n", "line 3"),
        ('sku,price\nA,"1,99"\n', "line 2"),
        ("sku,price\nA,1,99\n", "line 2"),
        ("sku;price\nA;1.99\n", "line 1"),
        ("sku,cost\nA,1\n", "line 1"),
        ("sku,price,price\nA,1,1\n", "line 1"),
        ("sku,price\nA,\n", "line 2"),
        ("sku,price\n,1\n", "sku"),
        ("sku,price\nA,-1\n", "line 2"),
        ("sku,price,compareAt\nA,1,before\n", "line 2"),
        ('sku,price\nA,"1\n', "line 2"),
        ("sku,price\n", "line 1"),
        ("", "line 1"),
        (b"sku,price\n\xff,1\n", "rule"),
    ],
)
def test_a_bad_list_of_prices_is_answered_with_its_line(text: str | bytes, where: str) -> None:
    with pytest.raises(BadDefinition) as exc_info:
        rule_from_csv("spring", text)

    assert exc_info.value.where == where
    assert exc_info.value.next


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "1", "price": 1.5, "currency": "EUR"}, "float"),
        ({"id": "1", "price": "1.999", "currency": "EUR"}, "too_many_decimals"),
        ({"id": "1", "price": "1,99", "currency": "EUR"}, "amount_invalid"),
        ({"id": "1", "price": "-1", "currency": "EUR"}, "amount_invalid"),
        ({"id": "1", "price": True, "currency": "EUR"}, "amount_invalid"),
        ({"id": "1", "price": "1", "currency": "EURO"}, "currency_unknown"),
        ({"id": "", "price": "1", "currency": "EUR"}, "item_invalid"),
        ({"id": "1", "price": "1", "currency": "EUR", "tags": "sale"}, "item_invalid"),
        ({"id": "1", "prize": "1", "currency": "EUR"}, "item_invalid"),
        ({"id": "1", "price": "9" * 18 + ".5", "currency": "EUR"}, "too_large"),
    ],
)
def test_an_item_that_cannot_be_read_is_refused_with_its_reason(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(ItemRefused) as exc_info:
        item_from(row)

    assert exc_info.value.reason == reason
    assert exc_info.value.next


def test_an_item_without_a_price_is_refused_only_if_the_rule_selects_it() -> None:
    assert after(rule(change=percent(1)), None) == "no_price"
    assert after(rule(change=percent(1), where=price > 0), None) == "not selected"


def test_an_explanation_lists_every_step_with_its_value() -> None:
    explained = explain(SUMMER, Price(4990, None, "EUR"))

    assert [(step.name, step.value) for step in explained.steps] == [
        ("before", "49.90"), ("percent", "39.92"), ("round", "39.90"), ("compare at", "49.90"), ("guardrail", "ok"),
        ("guardrail", "ok"), ("guardrail", "ok"), ("guardrail", "ok"),
    ]  # fmt: skip
    refused = explain(SUMMER, Price(400, None, "EUR"))
    assert ("guardrail", "below the minimum 3.50", "refused") in [
        (step.name, step.detail, step.value) for step in refused.steps
    ]
