"""Arrays that are written by hand arrive as what they are."""

from __future__ import annotations

import pytest

from holdfast.kernel import calls
from holdfast.kernel.arrays import Bigints, Jsons, Texts
from holdfast.kernel.db import run
from kernel.steps import DB, start

pytestmark = pytest.mark.one_server


@pytest.mark.parametrize("texts", [[], ["a"], ["", "größe", 'with "quotes", commas and {braces}', "null", "\\"]])
def test_texts_arrive_as_they_are(db: DB, texts: list[str]) -> None:
    row = db.execute("select %s::text[]", [Texts(texts)]).fetchone()

    assert row == (texts,)


def test_numbers_and_json_arrive_as_they_are(db: DB) -> None:
    row = db.execute(
        "select %s::bigint[], %s::jsonb[]", [Bigints([1, -(2**63)]), Jsons(['{"a": "ü"}', "null"])]
    ).fetchone()

    assert row == ([1, -(2**63)], [{"a": "ü"}, None])


def test_a_claim_takes_kinds_that_were_written_once(db: DB) -> None:
    start(db, "mail")
    start(db, "fax")
    kinds = Texts(["mail", "letter"])

    claimed = [run(db, calls.claim_steps("a", kinds=kinds, batch=5)) for _ in range(2)]

    assert [[step.kind for step in steps] for steps in claimed] == [["mail"], []]
