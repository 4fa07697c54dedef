"""Extra steps for a target of a rollback, and for one whose outcome is unknown.

A rollback compares as every apply does, so it overwrites nothing that somebody changed since. What is stale elsewhere
is a conflict here: it says what we wrote, what is there, and which run of ours wrote that. An unknown outcome is
settled by a read: the target was applied if the channel shows what it was to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from holdfast.errors import OutsideError, Rejected
from holdfast.handlers.batch import Batch
from holdfast.models import Fail, Retry, Snooze
from holdfast.rules.channel import ChannelCall, Registered
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.money import Price, decimal

Outcome = dict[str, Any] | Retry | Fail | Snooze
UNKNOWN = "outcome_unknown"


def without_write(registered: Registered, batch: Batch, targets: Sequence[Mapping[str, Any]]) -> dict[int, Outcome]:
    """Return the outcomes of targets that are not written, by their places: those to read, and those undone already."""
    special = [place for place, target in enumerate(targets) if "undoes" in target or "only_reads" in target]
    outcomes: dict[int, Outcome] = {
        place: _conflict(targets[place], "its target was rolled back by another run meanwhile")
        for place in special
        if targets[place].get("undoes", {}).get("is_undone")
    }
    reads = [place for place in special if targets[place].get("only_reads") and place not in outcomes]
    if reads:
        chosen = [targets[place] for place in reads]
        outcomes.update(zip(reads, _settled(registered, batch, chosen), strict=True))
    return outcomes


def conflict_of(target: Mapping[str, Any], outcome: Any) -> Any:
    """Return the outcome of a target; a rollback's target that is stale is in conflict."""
    if "undoes" not in target or not isinstance(outcome, Fail) or not isinstance(outcome.error, Mapping):
        return outcome
    if outcome.error.get("reason") != "stale":
        return outcome
    found = outcome.error.get("found")
    return _conflict(target, described(target, found), found)


def described(target: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
    """Return a conflict as a sentence: `we wrote 12.00, the shop shows 11.50, which no run wrote`."""
    currency = target["currency"]
    later = target["undoes"].get("later")
    if later is not None:
        wrote = _text(later["unit_amount"], currency)
        return f"run {later['run_id']} wrote {wrote} on {str(later['at'])[:16].replace('T', ' ')}; roll that back first"
    shown = (found or {}).get("price", "something else")
    wrote = _text(target["price_before"], currency)
    return f"we wrote {wrote}, the channel shows {shown}, which no run wrote"


def _conflict(target: Mapping[str, Any], message: str, found: Mapping[str, Any] | None = None) -> Fail:
    wrote = {"unit_amount": target["price_before"], "compare_at": target["compare_at_before"],
             "currency": target["currency"]}  # fmt: skip
    parts = {"type": "VALIDATION", "class": "VALIDATION", "reason": "conflict", "message": f"conflict: {message}",
             "wrote": wrote, "found": found, "later": target["undoes"].get("later")}  # fmt: skip
    return Fail({name: value for name, value in parts.items() if value is not None})


def _settled(registered: Registered, batch: Batch, targets: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """Read targets whose outcome is unknown, and return the outcome of each."""
    left = batch.time_left()
    most = registered.request_timeout
    timeout = most if left is None else max(min(most, left - timedelta(seconds=1)), timedelta(seconds=0.1))
    call = ChannelCall(timeout, targets[0].get("correlation_id"))
    try:
        shown = registered.channel.read([target["item_id"] for target in targets], call)
    except Rejected as error:
        return [_still_unknown(error.what)] * len(targets)
    except OutsideError as error:
        return [Retry(_still_unknown(error.what).error, error.retry_after)] * len(targets)
    return [_read(target, shown.get(target["item_id"])) for target in targets]


def _read(target: Mapping[str, Any], found: Price | Refusal | None) -> Outcome:
    if found is None:
        return Fail({"type": "NOT_FOUND", "class": "NOT_FOUND", "reason": "not_found",
                     "message": f"there is no item {target['item_id']}"})  # fmt: skip
    if isinstance(found, Refusal):
        return _still_unknown(found.message)
    if _shows(target, found, "after"):
        return {"effect": "found"}
    if _shows(target, found, "before"):
        return Fail({"type": "UNKNOWN", "class": "UNKNOWN", "reason": "not_applied", "retryable": True,
                     "message": "the channel shows the price from before: it was not applied"})  # fmt: skip
    shown = {"price": _text(found.unit_amount, found.currency), "compareAt": _text(found.compare_at, found.currency),
             "currency": found.currency}  # fmt: skip
    message = f"item {target['item_id']} shows neither what the preview saw nor the new price"
    return Fail({"type": "VALIDATION", "class": "VALIDATION", "reason": "stale", "message": message, "found": shown})


def _still_unknown(message: str) -> Fail:
    return Fail({"type": "UNKNOWN", "class": "UNKNOWN", "reason": UNKNOWN, "retryable": True,
                 "message": f"it could not be read: {message}"})  # fmt: skip


def _shows(target: Mapping[str, Any], found: Price, which: str) -> bool:
    return (
        found.currency == target["currency"]
        and (not target["writes_price"] or found.unit_amount == target[f"price_{which}"])
        and (not target["writes_compare_at"] or found.compare_at == target[f"compare_at_{which}"])
    )


def _text(units: int | None, currency: str) -> str | None:
    return None if units is None else format(decimal(units, currency), "f")
