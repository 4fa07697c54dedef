"""Each promise names the tests that show it."""

from __future__ import annotations

import re

from docs.pages import DOCS, ROOT

TEXT = (DOCS / "explanation" / "guarantees.md").read_text("utf-8")


def test_every_test_file_that_is_named_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", TEXT))

    assert named
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_every_promise_names_a_test() -> None:
    """A paragraph that begins with bold words is one."""
    promises = re.findall(r"^\*\*.*?(?=\n\n)", TEXT, re.MULTILINE | re.DOTALL)

    assert len(promises) >= 10
    assert [promise for promise in promises if "`tests/" not in promise] == []
