"""A handler's transaction is settled and committed in one message, with what the handler returned written in it."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Continue, Ctx, Holdfast
from holdfast.kernel.db import WRITTEN_OUT
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server
# What text could end, or be taken for something else: as a literal, in an array, as a placeholder, in another encoding.
AWKWARD = [
    "'",
    "''; rollback; --",
    '"',
    "\\",
    "\\'",
    "\\\\",
    '\\"',
    "{}",
    "{1,2}",
    ",",
    "%s %(step_ids)s %%",
    "$1",
    "ä€😀",
    "\n\t",
    "",
]
SETTINGS = [
    "set standard_conforming_strings = off",
    "set client_encoding = 'UTF8'",
    "set search_path = ''",
    "set datestyle = 'German'",
]


class Item(TypedDict):
    text: str


@pytest.fixture
def effects(db: DB) -> DB:
    db.execute("create table public.effects (what text)")
    return db


def written(db: DB) -> list[str]:
    return [what for (what,) in db.execute("select what from public.effects order by what")]


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_result_is_stored_as_it_was_returned(hf: Holdfast, effects: DB, setting: str, is_async: bool) -> None:
    """W-60: by a text that no value can break out of, whatever the handler set in its session."""

    def plain(ctx: Ctx) -> Any:
        with ctx.transaction() as tx:
            tx.execute(setting)  # type: ignore[call-overload]
            tx.execute("insert into public.effects values ('once')")
        if not ctx.cursor:
            raise Continue(AWKWARD)
        return {"returned": AWKWARD, "cursor": ctx.cursor}

    async def waiting(ctx: Ctx) -> Any:
        async with ctx.transaction() as tx:
            await tx.execute(setting)  # type: ignore[call-overload]
            await tx.execute("insert into public.effects values ('once')")
        if not ctx.cursor:
            raise Continue(AWKWARD)
        return {"returned": AWKWARD, "cursor": ctx.cursor}

    handle = hf.task(name="work")(waiting if is_async else plain).start()
    burst(hf)

    assert handle.result(timeout=0) == {"returned": AWKWARD, "cursor": AWKWARD}
    assert written(effects) == ["once"] * 2


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("size", [1, WRITTEN_OUT, 900_000])
def test_a_transaction_commits_with_a_result_of_any_size(hf: Holdfast, effects: DB, size: int, is_async: bool) -> None:
    """W-60: a large result is not written into the text, which a server logs if it fails."""

    def plain(ctx: Ctx) -> str:
        with ctx.transaction() as tx:
            tx.execute("insert into public.effects values ('once')")
        return "x" * size

    async def waiting(ctx: Ctx) -> str:
        async with ctx.transaction() as tx:
            await tx.execute("insert into public.effects values ('once')")
        return "x" * size

    handle = hf.task(name="work")(waiting if is_async else plain).start()
    burst(hf)

    assert handle.result(timeout=0) == "x" * size
    assert written(effects) == ["once"]


def test_each_result_of_a_batch_is_stored_as_it_was_returned(hf: Holdfast, effects: DB) -> None:
    """W-60"""

    @hf.task(batch=len(AWKWARD))
    def work(batch: Batch, items: list[Item]) -> list[str]:
        with batch.transaction() as tx:
            tx.execute("insert into public.effects values ('once')")
        return [item["text"] for item in items]

    handles = [work.start(text=text) for text in AWKWARD]
    burst(hf)

    assert [handle.result(timeout=0) for handle in handles] == AWKWARD
    assert written(effects) == ["once"]


def test_a_constraint_that_is_checked_at_the_commit_rolls_everything_back(hf: Holdfast, effects: DB) -> None:
    """W-60: the settle is part of the same message, and of what is undone."""
    effects.execute("alter table public.effects add unique (what) deferrable initially deferred")
    effects.execute("insert into public.effects values ('there')")

    @hf.task
    def work(ctx: Ctx) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert into public.effects values ('there')")

    handle = work.start()
    burst(hf)

    assert (handle.status().state, handle.status().error["type"]) == ("error", "UniqueViolation")
    assert written(effects) == ["there"]
