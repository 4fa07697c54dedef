"""The database and the model side by side: each call is made on the one, foretold by the other, and compared."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast.errors import RefusedError
from holdfast.kernel import calls, outcomes
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Level, SettledStep, Settlement
from properties.claims import Asked, Claims
from properties.database import Database
from properties.model import Model


class Held(NamedTuple):
    """A lease that a worker got, and that may be lost by now."""

    step_id: int
    lease_id: int
    worker: str


class Both:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.model = Model(database.wipe(), database.login)
        self.leases: list[Held] = []  # all that were ever given out
        self._claims = Claims()

    def lost(self) -> list[Held]:
        """List the leases whose step is another's by now."""
        now = {step.id: step.lease.id for step in self.model.held() if step.lease}
        return [held for held in self.leases if now.get(held.step_id, held.lease_id) != held.lease_id]

    def wait(self, span: timedelta) -> None:
        self.model.now += span
        self.database.set_clock(self.model.now)

    def wait_until(self, moment: datetime) -> None:
        self.wait(max(timedelta(0), moment - self.model.now))

    def agree(self, call: Call[Any], foretold: Callable[[Any], Any], *, by: Connection[Any] | None = None) -> None:
        """Make a call, and let the model say what it gives or how it is refused."""
        try:
            (answer,) = run(by or self.database.person, call)
        except RefusedError as refusal:
            with pytest.raises(type(refusal)):
                foretold(None)
        else:
            assert foretold(answer) == answer

    def claim(self, asked: Asked, *, lease: timedelta | None = None, commits: bool = True) -> list[Held]:
        connection = self.database.workers[asked.worker]
        due = self.model.due_for(asked.queue, asked.kinds)
        parked = self.database.parked()
        with connection.transaction(force_rollback=not commits):
            claimed = run(connection, calls.claim_steps(*asked[:3], batch=asked.batch, lease=lease))
        self._claims.check(asked, due, [self.model.steps[c.step_id] for c in claimed], now=self.model.now)
        if not commits:
            return []
        self._claims.remember(asked, now=self.model.now)
        self._claims.check_parked([self.model.steps[i] for i in self.database.parked() - parked], now=self.model.now)
        for c in sorted(claimed, key=lambda c: c.lease_id):
            step = self.model.steps[c.step_id]
            self.model.claim(step, c.lease_id, asked.worker, lease)
            assert (c.run_id, c.kind, c.attempt, c.cursor) == (step.run, step.kind, step.attempt, step.cursor)
        held = [Held(c.step_id, c.lease_id, asked.worker) for c in claimed]
        self.leases += held
        return held

    def renew(self, worker: str, held: list[Held], *, lease: timedelta | None = None, by_id: bool = True) -> None:
        lease_ids = [h.lease_id for h in held]
        step_ids = [h.step_id for h in held] if by_id else None
        call = calls.renew_leases(worker, lease_ids, lease=lease, step_ids=step_ids)
        assert set(run(self.database.workers[worker], call)) == self.model.renew(worker, lease_ids, lease)

    def note(self, held: Held, level: Level) -> None:
        self.agree(
            calls.note(held.step_id, held.lease_id, level, "a word"),
            lambda number: self.model.note(held.step_id, held.lease_id, level) or number,
            by=self.database.workers[held.worker],
        )

    def settle(self, settlements: list[Settlement], *, as_json: bool = False, commits: bool = True) -> None:
        call = calls.settle_steps(settlements)
        if as_json:
            call = Call("settle_steps", SettledStep, {"outcomes": Jsonb([outcomes.as_json(s) for s in settlements])})
        with self.database.person.transaction(force_rollback=not commits):
            settled = run(self.database.person, call)
        if commits:
            assert {(s.step_id, s.event, s.state) for s in settled} == self.model.settle(settlements)

    def rescue(self, batch: int) -> None:
        silent = self.model.silent()
        rescued = run(self.database.person, calls.rescue_steps(batch=batch))
        untils = [lease.until for r in rescued if (lease := self.model.steps[r.step_id].lease)]
        assert sorted(untils) == [s.lease.until for s in silent[:batch] if s.lease]
        for r in rescued:
            assert (r.step_id, r.event, r.state) == self.model.rescue(self.model.steps[r.step_id])
