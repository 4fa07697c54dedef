"""Each error of the rule language shows the value at fault and says what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast.rules.language
from holdfast.errors import BadDefinition
from holdfast.rules import Guard, Rule, everything, field, item, multiply, percent, tag
from holdfast.rules.language.items import ItemRefused
from holdfast.rules.language.rule import ListedPrice
from holdfast.rules.language.selectors import And, Not

FOLDER = Path(holdfast.rules.language.__file__).parent
NAMES = {BadDefinition.__name__, ItemRefused.__name__}
WRONG: list[tuple[str, str, Callable[[], Any]]] = [
    ("minimum", "-1", lambda: Guard(minimum="-1")),
    ("minimum", "3", lambda: Guard(minimum="3", maximum="2")),
    ("above_zero", "'no'", lambda: Guard(above_zero="no")),  # type: ignore[arg-type]
    ("most_targets", "0", lambda: Guard(most_targets=0)),
    ("percent", "-100", lambda: percent(-100)),
    ("percent", "1000001", lambda: percent(1_000_001)),
    ("multiply", "-2", lambda: multiply(-2)),
    ("round", "0.99", lambda: percent(1).round("up", "0.05", ending="0.99")),
    ("round", "0", lambda: percent(1).round("up", 0)),
    ("floor", "5", lambda: percent(1).floor(5).ceiling(4)),
    ("ceiling", "-4", lambda: percent(1).ceiling(-4)),
    ("tag", "7", lambda: tag(7)),  # type: ignore[arg-type]
    ("field", "''", lambda: field("")),
    ("and", "()", lambda: And(())),
    ("not", "'sale'", lambda: Not("sale")),  # type: ignore[arg-type]
    ("where", "'sale'", lambda: tag("a") & "sale"),  # type: ignore[operator]
    ("where", "'sale'", lambda: Rule("r", "sale", percent(1))),  # type: ignore[arg-type]
    ("name", "'a\\nb'", lambda: Rule("a\nb", everything, percent(1))),
    ("name", "100", lambda: Rule("a" * 101, everything, percent(1))),
    ("name", "'*'", lambda: Rule("*", everything, percent(1))),
    ("change", "None", lambda: Rule("r", everything)),
    ("guard", "5", lambda: Rule("r", everything, percent(1), 5)),  # type: ignore[arg-type]
    ("prices", "selector", lambda: Rule("r", change=percent(1), prices={"A": ListedPrice(1)})),  # type: ignore[arg-type]
    ("currency", "'EURO'", lambda: item("7", "1", "EURO")),
    ("price", "1.5", lambda: item("7", 1.5, "EUR")),  # type: ignore[arg-type]
    ("sku", "5", lambda: item("7", "1", "EUR", sku=5)),  # type: ignore[arg-type]
    ("id", "''", lambda: item("", "1", "EUR")),
]


@pytest.mark.parametrize(("where", "shown", "wrong"), WRONG)
def test_a_wrong_value_is_shown_with_what_to_write_instead(where: str, shown: str, wrong: Callable[[], Any]) -> None:
    with pytest.raises((BadDefinition, ItemRefused)) as exc_info:
        wrong()

    error = exc_info.value
    assert (error.where, shown in error.what, bool(error.next)) == (where, True, True), error


def raised() -> Iterator[tuple[str, ast.Call]]:
    """Find every place of the language that makes one of its errors."""
    for file in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
                yield f"{file.name}:{node.lineno}", node


def test_no_error_of_the_language_leaves_the_reader_alone() -> None:
    places = dict(raised())

    assert len(places) > 50
    assert [place for place, call in places.items() if "next" not in {each.arg for each in call.keywords}] == []
