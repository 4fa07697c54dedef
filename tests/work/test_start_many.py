"""Many tasks at once: what cannot be kept for all of them is refused, not forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import BadInput
from work.tasks import DB


@pytest.mark.parametrize("option", [{"key": "k"}, {"unique_key": "k"}])
def test_an_option_that_many_cannot_have_is_refused(db: DB, dsn: str, option: dict[str, Any]) -> None:
    """A key that was left out in silence would let work run twice."""
    hf = Holdfast(dsn)

    @hf.task
    def greet(name: str) -> None: ...

    with pytest.raises(BadInput, match=next(iter(option))):
        greet.options(**option).start_many([{"name": "Ada"}])

    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)
