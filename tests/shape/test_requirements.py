"""Every requirement of a face and of the whole product is named by a test, or listed with what brings it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.faces import all_faces

TESTS = Path(__file__).parents[1]
OF_THE_PRODUCT = "X-01 … X-16"
IDS = re.compile(r"([A-Z])-(\d{2,3})(?:\s*(?:\.\.|…|to)\s*[A-Z]-(\d{2,3}))?")
NOT_BY_A_TEST = {
    "X-01": "the fixture `template` runs each test that depends on the server on the oldest and on the newest",
    "X-08": "alerts and their sinks are not there yet: Observability",
    "O-45": "live subscriptions come with API; events and runs are read by index until then",
    "O-104": "live subscriptions come with API",
    "O-105": "pages come with Console",
    "P-16": "a watermark in the user's own store comes with Sources; here it is part of the transaction",
    "P-42": "mail comes with Observability; the alert is a row of ingest.events",
    "P-111": "watermarks in other stores come with Sources",
    "P-126": "a figure of the bench: the section `feeds` measures the document's example",
    "P-136": "pages come with Console",
    "P-144": "mail comes with Observability",
}

LATER = {  # rows of rules that later parts of the document bring
    "limits of one shop: Channels": "A-52 A-53",
    "alerts and their sinks: Observability": "A-96 … A-103",
}


def ids(text: str) -> set[str]:
    """Read ids and ranges of ids."""
    return {
        f"{letter}-{number:02d}"
        for letter, first, last in IDS.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


NOT_BY_A_TEST |= {each: reason for reason, rows in LATER.items() for each in ids(rows)}


def docstrings() -> Iterator[str]:
    """What tests say that they prove."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


def wanted() -> set[str]:
    return ids(" ".join([OF_THE_PRODUCT, *(each for face in all_faces() for each in face.requirements)]))


def named() -> set[str]:
    return {each for text in docstrings() for each in ids(text)}


def test_every_row_is_named_by_a_test_or_listed_with_the_reason() -> None:
    assert len(wanted()) > 200
    assert sorted(wanted() - named() - NOT_BY_A_TEST.keys()) == []


def test_what_is_listed_as_not_proven_is_not_named_by_a_test() -> None:
    assert sorted(NOT_BY_A_TEST.keys() & named()) == []
