"""The machine of rules with failing channels, rollbacks, rollbacks of rollbacks, passes and corrections."""

from __future__ import annotations

import json
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Retry, Settlement
from holdfast.rules import reconcile_calls
from properties.database import Database
from properties.rules_machine import Lease, Rules, Write, compare_and_set, own_lease, places, some_items
from properties.rules_model import LEASE, Run, Shop, Target
from rules.plans import called, refused

PASS = "reconcile:shop"
ROLLBACK = "select rules.rollback(%s, only_ids => %s)"
CORRECT = "select rules.correct(%s, %s, %s)"
HISTORY = "select target_id, status, is_whole from rules.states_from_history(%s)"
STALE = {"message": "stale", "reason": "stale", "class": "VALIDATION"}
LOST = {"message": "no answer", "class": "TIMEOUT", "unknown": True}
FAULTS = ("throttled", "lost after", "lost before", "broken", "refused")
MOST = 9  # runs


class Undo(Rules):
    def __init__(self, database: Database, write: Write = compare_and_set, lease: Lease = own_lease) -> None:
        super().__init__(database, self._written, lease)
        self.inner = write
        self.newest: dict[str, int] = {}  # the target that changed an item last, by the ledger

    @invariant()
    def history_tells_the_states(self) -> None:
        """A-124"""
        for run_id, each in self.runs.items():
            told = {target: status for target, status, is_whole in self.db.execute(HISTORY, [run_id]) if is_whole}
            assert told == {None: each.state} | {target.id: target.state for target in each.targets}

    @invariant()
    def no_price_of_a_run_that_was_rolled_back_is_left(self) -> None:
        shown = {item: target for item, _, target in self.shop.log}
        for each in self.runs.values():
            if each.state == "ROLLED_BACK":
                left = [target for target in each.targets if shown.get(target.item) == target.id]
                assert left == []

    @rule(place=places, fault=st.sampled_from(FAULTS))
    @precondition(lambda self: self.calls)
    def call_a_failing_shop(self, place: int, fault: str) -> None:
        """The shop throttles, loses answers after and before the write, breaks or refuses one item."""
        steps = self.calls.pop(place % len(self.calls))
        targets = [self.targets[step.step_id] for step in steps]
        match fault:
            case "throttled":
                error = {"message": "429", "class": "RATE_LIMIT"}
                known: dict[int, Outcome] = {t.id: Retry({**error, **_carried(t)}) for t in targets}
            case "lost after":
                wrote = {target.id: self.write(self.shop, target) for target in targets}
                known = {number: Retry(LOST) if isinstance(o, Done) else o for number, o in wrote.items()}
            case "lost before":
                known = {target.id: Retry(LOST) for target in targets}
            case "broken":
                known = {target.id: Retry({"message": "500", "class": "SERVER_ERROR", **_carried(target)})
                         for target in targets}  # fmt: skip
            case _:
                target = targets[place % len(targets)]
                error = {"message": "422", "class": "VALIDATION", **_carried(target)}
                known = {target.id: Fail(error)} if self.shop.prices.get(target.item) == target.before else {}
        self._settle_call(steps, known)

    @rule(place=places, part=st.none() | some_items)
    @precondition(lambda self: self.runs and len(self.runs) < MOST)
    def rollback(self, place: int, part: set[str] | None) -> None:
        run_id, each = [*self.runs.items()][place % len(self.runs)]
        applied = [target for target in each.included if target.state == "APPLIED"]
        chosen = None if part is None else [target for target in applied if target.item in part]
        only = None if not chosen else [target.id for target in chosen]
        if self._refuses_rollback(run_id) or (only and each.state == "APPLIED"):
            assert refused(self.db, ROLLBACK, [run_id, only]) == "RN010"
            return
        if each.unknown:
            self._settle_unknown(run_id, only)
            return
        (answer,) = called(self.db, "rollback", run_id=run_id, only_ids=only)
        number = dict(self.db.execute("select item_id, id from rules.rule_targets where rule_run_id = %s",
                                      [answer["rollback_id"]]).fetchall())  # fmt: skip
        undone = chosen or applied
        assert set(number) == {target.item for target in undone}
        back = [Target(number[target.item], target.item, target.after, target.before) for target in undone]
        back.sort(key=lambda target: target.id)
        self.runs[answer["rollback_id"]] = Run(back, undoes=run_id, planned=each.progress)
        self.targets |= {target.id: target for target in back}

    @rule(place=places, only=st.none() | some_items, first=st.none() | st.integers(1, 3), leaves=st.booleans())
    @precondition(lambda self: self._in("PREVIEW"))
    def apply(self, place: int, only: set[str] | None, first: int | None, leaves: bool) -> None:
        run_id, each = self._pick(place, "PREVIEW")
        if each.undoes is not None and not self._is_undoable(each, is_first=True):
            assert refused(self.db, "select rules.apply(%s)", [run_id]) == "RN010"
            return
        super().apply(place, only, first, leaves)

    @rule(place=places)
    @precondition(lambda self: self.runs)
    def apply_again(self, place: int) -> None:
        run_id, each = [*self.runs.items()][place % len(self.runs)]
        if each.state == "ROLLED_BACK":
            assert refused(self.db, "select rules.apply(%s)", [run_id]) == "RN010"
        else:
            super().apply_again(place)

    @rule(place=places, everything=st.booleans())
    @precondition(lambda self: self._in("PARTIAL", "FAILED"))
    def retry(self, place: int, everything: bool) -> None:
        run_id, each = self._pick(place, "PARTIAL", "FAILED")
        is_barred = self._is_being_undone(run_id) or (
            each.undoes is not None and not self._is_undoable(each, is_first=False))  # fmt: skip
        states = ("FAILED", "PREVIEW", "QUEUED") if everything else ("FAILED",)
        wanted = [t for t in each.included if t.state in states and not (t.state == "FAILED" and t.reason == "stale")]
        if is_barred and wanted:
            function = "retry_all" if everything else "retry_failed"
            assert refused(self.db, f"select * from rules.{function}(%s)", [run_id]) == "RN010"
        else:
            super().retry(place, everything)

    @rule(place=places, corrects=st.booleans(), is_safe=st.booleans())
    @precondition(lambda self: self._in("APPLIED", "PARTIAL"))
    def reconcile(self, place: int, corrects: bool = False, is_safe: bool = True) -> None:
        """A pass finds each price that is not what was written last, and nothing else; it may plan their correction."""
        run_id, each = self._pick(place, "APPLIED", "PARTIAL")
        applied, undone = each.progress
        if applied == undone:
            return  # nothing is left to check
        expected = [target for target in each.included
                    if target.state == "APPLIED" and self.newest[target.item] == target.id]  # fmt: skip
        drift = {t.id: self.shop.prices[t.item] for t in expected if self.shop.prices.get(t.item, t.after) != t.after}
        call = reconcile_calls.reconcile(run_id, correct=corrects and len(self.runs) < MOST)
        (planned,) = run(self.db, call)
        while steps := run(self.db, calls.claim_steps("p", "rules:shop", [PASS], batch=1, lease=LEASE)):
            if "correct" in str(steps[0].input):
                self._correct(steps[0], drift, is_safe)
            else:
                self._check(steps[0])
        found = self.db.execute("select target_id, actual from rules.mismatches where rule_run_id = %s and is_current",
                                [run_id]).fetchall()  # fmt: skip
        assert (dict(found), planned.no >= 1) == (drift, True)

    def _correct(self, step: ClaimedStep, drift: dict[int, int], is_safe: bool) -> None:
        """The last step of a pass plans a run from what was found to what was written, and queues it if it is safe."""
        ((made,),) = self.db.execute(CORRECT, [step.step_id, step.lease_id, is_safe]).fetchall()
        run(self.db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done({"correction": None}))]))
        wrong = [self.targets[number] for number in sorted(drift)]
        assert (made is not None) == bool(wrong)
        if made is None:
            return
        number = dict(self.db.execute("select item_id, id from rules.rule_targets where rule_run_id = %s", [made]))
        back = Run([Target(number[t.item], t.item, drift[t.id], t.after) for t in wrong])
        back.targets.sort(key=lambda target: target.id)
        if is_safe and not set().union(*(other.items for other in self.runs.values() if other.is_open)) & back.items:
            back.state = "QUEUED"
            for target in back.targets:
                target.queue(self.now)
        self.runs[made] = back
        self.targets |= {target.id: target for target in back.targets}

    def _check(self, step: ClaimedStep) -> None:
        page = run(self.db, reconcile_calls.page_targets(step.step_id, step.lease_id, 100))
        findings = [_finding(self.shop, each) for each in page if each.standing != "superseded"]
        told = [finding for finding in findings if finding is not None]
        superseded = sum(each.standing == "superseded" for each in page)
        checked = sum(each.standing != "unknown" for each in page)
        if page:
            self.db.execute("select rules.record_page(%s, %s, %s, %s, %s, %s::jsonb)",
                            [step.step_id, step.lease_id, page[-1].target_id, checked, superseded,
                             json.dumps(told)])  # fmt: skip
        run(self.db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done({"pages": 1}))]))

    def _settle_unknown(self, run_id: UUID, only: list[int] | None) -> None:
        """A rollback reads first what nobody knows; the run is open meanwhile."""
        each = self.runs[run_id]
        others = [other.items for other in self.runs.values() if other.is_open]
        is_undoing = each.undoes is not None and not self._is_undoable(each, is_first=False)
        if is_undoing or set().union(*others) & each.items:
            assert refused(self.db, ROLLBACK, [run_id, only]) == "RN010"
            return
        (answer,) = called(self.db, "rollback", run_id=run_id, only_ids=only)
        assert (answer["rollback_id"], answer["unknown"]) == (None, len(each.unknown))
        for target in each.unknown:
            target.reopen(self.now) if target.state == "FAILED" else target.queue(self.now)
        each.state, each.halt, each.is_settling = "APPLYING", None, True

    def _refuses_rollback(self, run_id: UUID) -> bool:
        each = self.runs[run_id]
        applied, undone = each.progress
        is_left = applied > undone or bool(each.unknown)
        return each.state not in ("APPLIED", "PARTIAL") or self._is_being_undone(run_id) or not is_left

    def _is_undoable(self, each: Run, *, is_first: bool) -> bool:
        """Whether a rollback can open: what it undoes is over, and as it was planned."""
        assert each.undoes is not None
        original = self.runs[each.undoes]
        if self._refuses_rollback(each.undoes) or original.unknown:
            return False
        return not is_first or original.progress == each.planned

    def _is_being_undone(self, run_id: UUID) -> bool:
        return any(other.is_open for other in self.runs.values() if other.undoes == run_id)

    def _written(self, shop: Shop, target: Target) -> Outcome:
        """Write a price; only read it if the run is open for that; leave what somebody else has undone."""
        each = self._run_of(target.id)
        if each.is_settling:
            return _read(shop, target)
        original = self._undone_by(target)
        if original is not None and original.state != "APPLIED":
            return Fail({**STALE, "reason": "conflict"})
        return self.inner(shop, target)

    def _undone_by(self, target: Target) -> Target | None:
        each = self._run_of(target.id)
        if each.undoes is None:
            return None
        return next(other for other in self.runs[each.undoes].targets if other.item == target.item)

    def _settled(self, target: Target, outcome: Outcome) -> None:
        super()._settled(target, outcome)
        error = getattr(outcome, "error", None) or {}
        target.is_unknown = error.get("unknown") is True
        if target.state != "APPLIED":
            return
        self.newest[target.item] = target.id
        original = self._undone_by(target)
        if original is not None:
            original.state = "ROLLED_BACK"
            each = self._run_of(original.id)
            applied, undone = each.progress
            if applied == undone:
                each.state = "ROLLED_BACK"

    def _wait(self, span: int) -> None:
        held = {target.id for target in self.targets.values() if target.lease_until is not None}
        super()._wait(span)
        for target in self.targets.values():
            if target.id in held and target.lease_until is None:
                target.is_unknown = True  # its lease ran out


def _carried(target: Target) -> dict[str, bool]:
    """What nobody knew before this try, nobody knows after it."""
    return {"unknown": True} if target.is_unknown else {}


def _read(shop: Shop, target: Target) -> Outcome:
    shown = shop.prices.get(target.item)
    if shown == target.after:
        return Done({"effect": "found"})
    reason = "not_found" if shown is None else "not_applied" if shown == target.before else "stale"
    return Fail({"message": reason, "reason": reason, "class": "UNKNOWN"})


def _finding(shop: Shop, each: reconcile_calls.CheckedTarget) -> dict[str, object] | None:
    shown = shop.prices.get(each.item_id)
    about = {"target_id": each.target_id, "actual": shown, "actual_compare_at": None, "actual_currency": "EUR",
             "message": None}  # fmt: skip
    if each.standing == "unknown":
        return {**about, "finding": "unknown"}
    if shown is None:
        return {**about, "finding": "unverifiable"}
    return None if shown == each.expected else {**about, "finding": "mismatch"}
