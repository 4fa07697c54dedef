"""Tests assert an error's type and the value that it names, not its sentence: a `match` has at most three words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST_WORDS = 3


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Give what each `match=` of a file says in its own words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "match":
                    parts = keyword.value.values if isinstance(keyword.value, ast.JoinedStr) else [keyword.value]
                    said = [part.value for part in parts if isinstance(part, ast.Constant)]
                    yield node.lineno, " ".join(map(str, said))


def test_an_error_is_matched_by_a_value_and_not_by_its_sentence() -> None:
    long = [
        f"{path.relative_to(TESTS)}:{line}: {text}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, text in texts(path)
        if len(text.split()) > MOST_WORDS
    ]

    assert long == []
