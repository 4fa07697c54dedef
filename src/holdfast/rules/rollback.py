"""Plans the rollback of a run: settles unknown outcomes, reads what is forced, and judges what a channel shows now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection

from holdfast.durations import Duration, duration
from holdfast.errors import BadInput, NotFound, WrongState
from holdfast.kernel.call import Executor
from holdfast.rules import calls, reads
from holdfast.rules.channel import ChannelCall, Registered, Write
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.money import Price, shown
from holdfast.rules.rows import LaterChange, RuleRunRow, TargetRow

READ_AT_ONCE = 1000
PATIENCE = timedelta(minutes=10)  # for reading what unknown outcomes became
Standing = Literal["restore", "restored", "conflict", "unknown"]


@dataclass(frozen=True, slots=True)
class Request:
    """A rollback as it is asked for; targets are numbers."""

    only: Sequence[int] | None = None
    without: Sequence[int] | None = None
    force: Sequence[int] | None = None
    apply: bool = False
    expires_in: Duration = "24h"
    key: str | None = None
    reason: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Standpoint:
    """What a rollback would do with one target now."""

    target: TargetRow
    standing: Standing
    detail: str = ""


def planned(executor: Executor, run_id: UUID, channels: Mapping[str, Registered], request: Request) -> UUID | int:
    """Plan a rollback, and return its run's id, or how many targets are read first because their outcome is unknown."""
    seen: list[dict[str, Any]] = []
    if request.force:
        with executor.connection() as connection:
            run = reads.run_of(connection, run_id)
            targets = reads.targets_by_number(connection, run_id, list(request.force))
        seen = _seen(run, targets, request.force, channels)
    call = calls.rollback(run_id, only=request.only, without=request.without, force=seen, apply=request.apply,
                          expires_in=duration(request.expires_in, "expires_in"), key=request.key,
                          reason=request.reason, actor=request.actor)  # fmt: skip
    (answer,) = executor.make(call)
    made: UUID | None = answer.rollback_id
    return int(answer.unknown) if made is None else made


def still_unknown(run_id: UUID, count: int) -> WrongState:
    """Return the error of a rollback whose unknown outcomes could not be settled."""
    return WrongState(
        f"the outcome of {count} targets of run {run_id} is still unknown: they could not be read",
        where=str(run_id),
        next="roll back when the channel responds again, or resolve these targets by hand",
    )


def known_channel(run: RuleRunRow, channels: Mapping[str, Registered]) -> Registered:
    """Return the channel of a run; raise NotFound if the app has none."""
    if run.channel not in channels:
        raise NotFound(f"this app has no channel {run.channel}", where="channel", next="register it: hf.rules.channel")
    return channels[run.channel]


def standpoints(executor: Executor, rollback: RuleRunRow, known: Registered) -> Iterator[Standpoint]:
    """Read what the channel shows for each target of a planned rollback, page by page; nothing is written."""
    after = 0
    while True:
        with executor.connection() as connection:
            page = reads.targets_page(connection, rollback.id, after=after, most=READ_AT_ONCE)
        if not page:
            return
        after = page[-1].id
        prices = known.channel.read([each.item_id for each in page], ChannelCall(known.request_timeout))
        judged = [(each, _judged(each, prices.get(each.item_id))) for each in page]
        with executor.connection() as connection:
            later = _later(connection, rollback, [each.item_id for each, verdict in judged if verdict == "conflict"])
        for each, verdict in judged:
            detail = "" if verdict != "conflict" else _detail(each, prices.get(each.item_id), later.get(each.item_id))
            yield Standpoint(each, verdict, detail)


def _judged(target: TargetRow, found: Price | Refusal | None) -> Standing:
    if found is None or isinstance(found, Refusal):
        return "unknown"
    write = Write(target.item_id, target.before, target.after, target.writes_price, target.writes_compare_at)
    if write.shows(found, target.before):
        return "restore"
    return "restored" if write.shows(found, target.after) else "conflict"


def _later(connection: Connection[Any], rollback: RuleRunRow, items: list[str]) -> dict[str, LaterChange]:
    if not items or rollback.parent_run_id is None:
        return {}
    return {each.item_id: each for each in reads.later_changes(connection, rollback.parent_run_id, items)}


def _detail(target: TargetRow, found: Price | Refusal | None, later: LaterChange | None) -> str:
    currency = target.before.currency
    if later is not None:
        wrote = f"run {later.run_id} wrote {shown(later.unit_amount, currency)} on {later.at:%Y-%m-%d %H:%M}"
        return f"{wrote}; roll that back first"
    shows = shown(found.unit_amount, found.currency) if isinstance(found, Price) else "nothing"
    return f"we wrote {shown(target.before.unit_amount, currency)}, the shop shows {shows}, which no run wrote"


def _seen(
    run: RuleRunRow, targets: Sequence[TargetRow], wanted: Sequence[int], channels: Mapping[str, Registered]
) -> list[dict[str, Any]]:
    """Read what the channel shows for targets that are to be overwritten: the write compares with that."""
    stray = next((number for number in wanted if number not in {each.id for each in targets}), None)
    if stray is not None:
        raise NotFound(f"run {run.id} has no target {stray}", where="force",
                       next=f"list them: holdfast rules targets {run.id}")  # fmt: skip
    known = known_channel(run, channels)
    prices = known.channel.read([each.item_id for each in targets], ChannelCall(known.request_timeout))
    seen = []
    for target in targets:
        found = prices.get(target.item_id)
        if not isinstance(found, Price) or found.currency != target.after.currency:
            raise BadInput(f"item {target.item_id} cannot be overwritten: the channel shows {_why(found)}",
                           where="force", next="leave it out")  # fmt: skip
        seen.append({"target_id": target.id, "unit_amount": found.unit_amount, "compare_at": found.compare_at})
    return seen


def _why(found: Price | Refusal | None) -> str:
    if isinstance(found, Price):
        return f"a price in {found.currency}"
    return "no such item" if found is None else found.message
