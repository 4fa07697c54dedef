"""Every pair of states of every machine, tried by a plain UPDATE: the listed pass and are journaled, no other does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import psycopg
import pytest
from psycopg import Connection

DB = Connection[Any]

INSERT = {
    "step": """insert into holdfast.steps (machine, state, kind, created_at, due_at, lease_id, lease_owner, lease_until,
                                           finished_at)
               values (%(machine)s, %(state)s, 'shape', holdfast.clock(), case when %(open)s then holdfast.clock() end,
                       case when %(held)s then nextval('holdfast.lease_ids') end, case when %(held)s then 'shape' end,
                       case when %(held)s then holdfast.clock() end, case when %(over)s then holdfast.clock() end)
               returning id""",
    "run": """insert into holdfast.runs (id, machine, name, state, created_at, finished_at)
              values (holdfast.uuid7(), %(machine)s, 'shape', %(state)s, holdfast.clock(),
                      case when %(over)s then holdfast.clock() end)
              returning id""",
}
UPDATE = {
    "step": """update holdfast.steps s
                  set state = %(state)s, last_event = coalesce(%(event)s, s.last_event),
                      lease_id = case when %(held)s then coalesce(s.lease_id, nextval('holdfast.lease_ids')) end,
                      lease_owner = case when %(held)s then 'shape' end,
                      lease_until = case when %(held)s then holdfast.clock() end,
                      due_at = case when %(open)s then holdfast.clock() end,
                      finished_at = case when %(over)s then holdfast.clock() end
                where s.id = %(id)s""",
    "run": """update holdfast.runs r
                 set state = %(state)s, last_event = coalesce(%(event)s, r.last_event),
                     finished_at = case when %(over)s then holdfast.clock() end
               where r.id = %(id)s""",
}
JOURNAL = """select j.from_state, j.event, j.to_state, j.actor_kind, j.actor from holdfast.journal j
              where j.id > %s and coalesce(j.step_id::text, j.run_id::text) = %s order by j.id"""
PHASES = {
    "shut": ["shut"],
    "open": ["open"],
    "held": ["held"],
    "over": ["over"],
    "open_or_over": ["over", "open"],
    "open_or_held": ["open", "held"],
}
A_MACHINE_OF_LATER = """
insert into holdfast.machines (machine, subject, policy, label) values ('late.step', 'step', 'work.task', 'step');
insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('late.step', 'PREVIEW', 'shut',         null,        true),
  ('late.step', 'QUEUED',  'open',         null,        false),
  ('late.step', 'AT IT',   'held',         null,        false),
  ('late.step', 'PAGES',   'open_or_held', null,        false),
  ('late.step', 'FAILED',  'open_or_over', 'failed',    false),
  ('late.step', 'APPLIED', 'over',         'succeeded', false);
insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('late.step', 'PREVIEW', 'queued',    'QUEUED',  '{user}'),
  ('late.step', 'QUEUED',  'claimed',   'AT IT',   '{worker}'),
  ('late.step', 'AT IT',   'continued', 'PAGES',   '{worker}'),
  ('late.step', 'PAGES',   'claimed',   'PAGES',   '{worker}'),
  ('late.step', 'PAGES',   'succeeded', 'APPLIED', '{worker}'),
  ('late.step', 'AT IT',   'succeeded', 'APPLIED', '{worker}'),
  ('late.step', 'AT IT',   'failed',    'FAILED',  '{worker}'),
  ('late.step', 'FAILED',  'reopened',  'QUEUED',  '{user}');
"""


@dataclass(frozen=True)
class Move:
    before: str
    event: str
    after: str
    actors: list[str]


@dataclass(frozen=True)
class Machine:
    name: str
    subject: str
    phases: dict[str, str]
    initial: list[str]
    moves: list[Move]

    def way_to(self, state: str) -> list[Move]:
        """The shortest way there from an initial state."""
        ways: dict[str, list[Move]] = {begin: [] for begin in self.initial}
        while state not in ways:
            longer = {m.after: [*ways[m.before], m] for m in self.moves if m.before in ways and m.after not in ways}
            assert longer, f"{self.name} never comes to {state}"
            ways |= longer
        return ways[state]


def machines(db: DB) -> list[Machine]:
    def rows(query: str, name: str) -> list[Any]:
        return db.execute(query, [name]).fetchall()

    return [
        Machine(
            name,
            subject,
            dict(rows("select state, phase from holdfast.machine_states where machine = %s", name)),
            [s for (s,) in rows("select state from holdfast.machine_states where machine = %s and is_initial", name)],
            [
                Move(*m)
                for m in rows(
                    "select from_state, event, to_state, actors from holdfast.machine_moves where machine = %s", name
                )
            ],
        )
        for name, subject in db.execute("select machine, subject from holdfast.machines order by machine").fetchall()
    ]


def columns(machine: Machine, state: str, rest: str, **others: Any) -> dict[str, Any]:
    """What a row in a state needs: a lease, an end, a due time or nothing."""
    flags = {phase: phase == rest for phase in ("open", "held", "over")}
    return {"machine": machine.name, "state": state, "event": None, **flags, **others}


def row_in(db: DB, machine: Machine, state: str, *, as_the_kernel: bool) -> Any:
    """Bring a row into a state by legal moves: by hand, or announced as the kernel's functions do."""
    way = machine.way_to(state)
    begin = way[0].before if way else state
    ((row_id,),) = db.execute(INSERT[machine.subject], columns(machine, begin, machine.phases[begin]))
    for move in way:
        rest = PHASES[machine.phases[move.after]][0]
        with db.transaction():
            if as_the_kernel:
                db.execute("select holdfast.set_actor(%s, 'shape')", [move.actors[0]])
            event = move.event if as_the_kernel else None
            db.execute(UPDATE[machine.subject], columns(machine, move.after, rest, id=row_id, event=event))
    return row_id


def hold(db: DB, machine: Machine, row_id: Any, state: str) -> None:
    """Claim a row whose state does not tell whether it is held."""
    with db.transaction():
        db.execute("select holdfast.set_actor('worker', 'shape')")
        db.execute(UPDATE[machine.subject], columns(machine, state, "held", id=row_id, event="claimed"))


def tried(db: DB, machine: Machine, row_id: Any, changes: dict[str, Any], *, actor: str | None = None) -> Any:
    """Give what a change leaves in the journal, or the SQLSTATE that it is refused with; the row stays as it was."""
    ((last,),) = db.execute("select coalesce(max(id), 0) from holdfast.journal")
    try:
        with db.transaction(force_rollback=True):
            if actor is not None:
                db.execute("select holdfast.set_actor(%s, 'shape')", [actor])
            db.execute(UPDATE[machine.subject], {**changes, "id": row_id})
            return db.execute(JOURNAL, [last, str(row_id)]).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def wrong_pairs(db: DB, machine: Machine, *, as_the_kernel: bool) -> Iterator[tuple[Any, ...]]:
    """Try all pairs of states of a machine, and give those that went otherwise than it says."""
    legal = {(move.before, move.after) for move in machine.moves}
    rows = {state: row_in(db, machine, state, as_the_kernel=as_the_kernel) for state in machine.phases}
    for before, after in permutations(machine.phases, 2):
        for rest in PHASES[machine.phases[after]]:
            left = tried(db, machine, rows[before], columns(machine, after, rest))
            expected = [(before, "by_hand", after, "user", db.info.user)] if (before, after) in legal else "RN001"
            if left != expected:
                yield machine.name, before, after, rest, left


@pytest.mark.parametrize("as_the_kernel", [False, True], ids=["row moved by hand", "row moved by the kernel"])
def test_a_plain_update_makes_the_moves_of_the_machine_and_no_other(db: DB, as_the_kernel: bool) -> None:
    wrong = [pair for machine in machines(db) for pair in wrong_pairs(db, machine, as_the_kernel=as_the_kernel)]

    assert wrong == []
    known = {machine.name for machine in machines(db)}
    assert {"work.task", "flow.task", "flow.step", "ops.run", "rules.run", "rules.target"} <= known
    assert {"ingest.run", "ingest.partition", "ingest.consolidation"} <= known


@pytest.mark.parametrize("as_the_kernel", [False, True], ids=["row moved by hand", "row moved by the kernel"])
def test_a_machine_added_later_is_guarded_as_the_others_are(db: DB, as_the_kernel: bool) -> None:
    db.execute(A_MACHINE_OF_LATER)
    (late,) = [machine for machine in machines(db) if machine.name == "late.step"]

    assert [*wrong_pairs(db, late, as_the_kernel=as_the_kernel)] == []


def test_a_state_is_taken_only_with_the_columns_that_go_with_it(db: DB) -> None:
    """A held step has a lease, what is over has an end, all else has neither."""
    marks = {"step": {"held", "over", "open"}, "run": {"over", "open"}}
    for machine in machines(db):
        for move in machine.moves:
            row_id = row_in(db, machine, move.before, as_the_kernel=False)
            fitting = {"open" if rest == "shut" else rest for rest in PHASES[machine.phases[move.after]]}
            if machine.subject == "run":
                fitting = {"over" if rest == "over" else "open" for rest in fitting}
            for rest in marks[machine.subject] - fitting:
                left = tried(db, machine, row_id, columns(machine, move.after, rest))
                assert left == "RN001", (machine.name, move, rest)


def test_only_the_actors_of_a_move_make_it_and_only_by_its_event(db: DB) -> None:
    for machine in machines(db):
        for move in machine.moves:
            row_id = row_in(db, machine, move.before, as_the_kernel=True)
            rest = PHASES[machine.phases[move.after]][0]
            if move.before == move.after:  # a claim takes the lease, and the others return it
                rest = "held" if move.event == "claimed" else "open"
                if rest == "open":
                    hold(db, machine, row_id, move.before)
            for actor in ("worker", "api", "user", "scheduler", "system"):
                changes = columns(machine, move.after, rest, event=move.event)
                expected = [(move.before, move.event, move.after, actor, "shape")] if actor in move.actors else "RN001"
                assert tried(db, machine, row_id, changes, actor=actor) == expected, (machine.name, move, actor)
            other = "snoozed" if move.event == "rolled_back" else "rolled_back"
            astray = columns(machine, move.after, rest, event=other)
            assert tried(db, machine, row_id, astray, actor=move.actors[0]) == "RN001", (machine.name, move)


def test_a_row_begins_in_an_initial_state_and_in_no_other(db: DB) -> None:
    for machine in machines(db):
        for state, phase in machine.phases.items():
            for rest in PHASES[phase]:
                begun = inserted(db, machine, columns(machine, state, rest))
                assert begun == (None if state in machine.initial else "RN007"), (machine.name, state)
        assert inserted(db, machine, columns(machine, "no such state", "open")) == "RN007"


def test_a_row_of_an_unknown_machine_is_refused(db: DB) -> None:
    for subject in ("step", "run"):
        unknown = Machine("no.such", subject, {}, [], [])
        assert inserted(db, unknown, columns(unknown, "pending", "open")) == "RN007"


def inserted(db: DB, machine: Machine, values: dict[str, Any]) -> str | None:
    """Give the SQLSTATE that a new row is refused with; none is left behind."""
    try:
        with db.transaction(force_rollback=True):
            db.execute(INSERT[machine.subject], values)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def test_only_a_run_ends_in_part(db: DB) -> None:
    """A step has one outcome; its run would count one that is partial nowhere."""
    odd = db.execute(
        """select machine, state from holdfast.machine_states join holdfast.machines using (machine)
            where subject = 'step' and outcome = 'partial'"""
    )

    assert odd.fetchall() == []
