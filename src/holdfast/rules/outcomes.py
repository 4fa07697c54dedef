"""Decides the outcome of a target: pure functions from what the channel did to the outcome that is settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from holdfast.errors import OutsideError, Unavailable
from holdfast.models import Fail, Retry, Snooze
from holdfast.rules.channel import Registered, Write, Wrote, price_text
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.money import Price
from holdfast.rules.treatment import Treatment, of_item

Outcome = dict[str, Any] | Retry | Fail | Snooze
CHANGED = "the item has changed since the preview"
WRITTEN: Final[dict[str, Any]] = {"effect": "written"}  # the same object for all: it is checked and written once
FOUND: Final[dict[str, Any]] = {"effect": "found"}


INTERRUPTED: Final = Retry(  # the channel may have been changed, so that the target is not as it was before
    {"type": "UNKNOWN", "class": "UNKNOWN", "message": "its worker was stopped during the call", "unknown": True}, 0,
    is_charged=False,
)  # fmt: skip


class Target(NamedTuple):  # a tuple: a run makes a million of them
    """One target of a call: what to write, and what earlier tries left."""

    write: Write
    is_unknown: bool  # an earlier try may have written it
    rate_limits: int  # in a row, before this try
    tries_left: int | None  # with this one; None: any number
    retries: int  # by hand


def target_of(given: Mapping[str, Any]) -> Target:
    """Read a target from what `rules.target_inputs` returns."""
    currency = given["currency"]
    write = Write(
        given["item_id"],
        Price(given["price_before"], given["compare_at_before"], currency),
        Price(given["price_after"], given["compare_at_after"], currency),
        given["writes_price"],
        given["writes_compare_at"],
    )
    return Target(write, given.get("is_unknown", False), given.get("rate_limits", 0), given.get("tries_left"),
                  given.get("retries", 0))  # fmt: skip


def judged(write: Write, found: Price | Refusal | None) -> Wrote | None:
    """Return what to do without a write; None if the item shows `before` and is to be written."""
    if found is None:
        return Wrote("not_found", error_class="NOT_FOUND", message="the channel has no such item")
    if isinstance(found, Refusal):
        return Wrote("stale", {"message": found.message}, "VALIDATION", CHANGED)
    if write.shows(found, write.before):
        return None
    if write.shows(found, write.after):
        return Wrote("found")
    return Wrote("stale", price_text(found), "VALIDATION", CHANGED)


def outcome_of(registered: Registered, target: Target, wrote: Wrote) -> Outcome:
    """Return the outcome of a target that the channel answered for."""
    write = target.write
    match wrote.effect:
        case "written":
            return WRITTEN
        case "found":
            return FOUND
        case "stale":
            message = f"item {write.item_id} shows neither what the preview saw nor the new price"
            return Fail(_error("stale", "VALIDATION", message, found=wrote.found))
        case "not_found":
            return Fail(_error("not_found", "NOT_FOUND", wrote.message or f"there is no item {write.item_id}"))
        case "unknown":
            return retried(registered, target, Treatment("UNKNOWN", retries=True), wrote.message, is_unknown=True)
    treatment = of_item(registered.errors, wrote)
    if treatment.retries:
        return retried(registered, target, treatment, wrote.message, is_unknown=target.is_unknown)
    return failed(treatment, wrote.message, code=wrote.code, is_unknown=target.is_unknown)


def retried(
    registered: Registered, target: Target, treatment: Treatment, message: str, *, is_unknown: bool, after: Any = None
) -> Retry:
    """Return the retry of a target. A rate limit closes the channel's limit, and has delays of its own."""
    unknown = True if is_unknown else None
    if treatment.error_class != "RATE_LIMIT":
        return Retry(_error(None, treatment.error_class, message, unknown=unknown), after)
    ordinal = target.rate_limits + 1
    error = _error(None, "RATE_LIMIT", message, unknown=unknown, rate_limits=ordinal, retries=target.retries)
    return Retry(error, after, registered.place, policy=registered.rate_limit_policy, ordinal=ordinal,
                 is_charged=registered.charges_rate_limits, of_call=True)  # fmt: skip


def failed(treatment: Treatment, message: str, *, code: str | None = None, is_unknown: bool = False) -> Fail:
    """Return the failure of a target that no retry helps."""
    return Fail(_error("outcome_unknown" if is_unknown else "unrecoverable", treatment.error_class, message, code=code,
                       retryable=None if is_unknown else False, unknown=is_unknown or None))  # fmt: skip


def unknown_after(error: OutsideError, target: Target) -> bool:
    """Return whether a call that failed as a whole leaves it open whether the target was written."""
    return target.is_unknown or (isinstance(error, Unavailable) and error.is_sent)


def is_last(outcome: Outcome, target: Target) -> bool:
    """Return whether a target is given up with this outcome."""
    if isinstance(outcome, Retry):
        return outcome.is_charged and target.tries_left is not None and target.tries_left <= 1
    return isinstance(outcome, Fail)


def is_open(outcome: Outcome) -> bool:
    """Return whether an outcome leaves it open whether the target was written."""
    return isinstance(outcome, Retry | Fail) and outcome.error.get("unknown") is True


def settled_by_reading(outcome: Outcome, verdict: Wrote | None) -> Outcome:
    """Return the outcome of a target that is given up and was read once more; None: it still shows `before`."""
    match verdict:
        case None if isinstance(outcome, Retry | Fail):
            known = {name: value for name, value in outcome.error.items() if name != "unknown"}
            if known.get("reason") == "outcome_unknown":
                known["reason"] = "unrecoverable"
            return replace(outcome, error=known)
        case Wrote(effect="found"):
            return FOUND
        case Wrote(effect="not_found", message=message):
            return Fail(_error("not_found", "NOT_FOUND", message))
        case Wrote(found=found):
            return Fail(_error("stale", "VALIDATION", CHANGED, found=found))
    return outcome


def left_open(outcome: Outcome) -> Outcome:
    """Return the outcome of a target that is given up and could not be read."""
    if not isinstance(outcome, Retry | Fail):
        return outcome
    return Fail({**outcome.error, "reason": "outcome_unknown", "unknown": True})


def broken(error: Exception) -> Retry:
    """Return the retry of a target whose channel raised an error that it may not raise: it may have been written."""
    text = f"{type(error).__name__}: {error}"[:400]
    return Retry(_error(None, "UNKNOWN", f"the channel broke: {text}", unknown=True))


def late(message: str) -> Fail:
    """Return the failure of a target that took too long alone."""
    return Fail(_error("timeout", "TIMEOUT", message, unknown=True))


def _error(reason: str | None, error_class: str, message: str, **more: Any) -> dict[str, Any]:
    """Return an error as it is stored: `rules.rule_targets` shows its parts."""
    parts = {"type": error_class, "class": error_class, "message": message, "reason": reason, **more}
    return {name: value for name, value in parts.items() if value is not None}
