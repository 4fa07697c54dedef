"""A self-test that cannot fail is worth nothing: with a guard taken out of its copy of the engine it does."""

from __future__ import annotations

import tempfile
from typing import NamedTuple

import psycopg
import pytest

from holdfast.kernel import self_test_schema
from holdfast.selftest import play, stage
from holdfast.selftest.play import Fault, Row
from holdfast.selftest.stage import Sizes
from properties.mutants import Cut
from selftest.traces import alive

SMALL = Sizes(tasks=90, kills=2, cuts=6, freezes=1, keys=6)
KEYS, POINTS, FREEZES, LATE, KILLS, CUTS = play.FAULTS


class Mutant(NamedTuple):
    name: str
    fault: Fault
    cuts: tuple[Cut, ...]


STANDING = Cut("expire_leases", "lease", "where s.lease_until is not null")
MUTANTS = [
    Mutant("key for any input", KEYS, (Cut("id_of_key", "input", "if false then"),)),
    Mutant("nothing rescued", POINTS, (Cut("expire_leases", "lease", "where false"),)),
    Mutant("rescue of leases that stand", FREEZES, (STANDING,)),
    Mutant("done without the lease", LATE, (Cut("succeed_steps", "lease"),)),
    Mutant("renewed without the lease", LATE, (Cut("renew_leases", "lease"), Cut("renew_leases", "owner"))),
    Mutant("noted without the lease", LATE, (Cut("note", "lease"),)),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where self-tests of this test have their folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def maim(dsn: str, mutant: Mutant) -> None:
    """Take the guards out of the copy."""
    with psycopg.connect(dsn, autocommit=True) as db:
        for cut in mutant.cuts:
            named = [f"{self_test_schema.name()}.{cut.function}"]
            ((whole,),) = db.execute("select pg_get_functiondef(%s::regproc)", named).fetchall()
            db.execute(cut.made_in(whole))


def run(dsn: str, fault: Fault, monkeypatch: pytest.MonkeyPatch, mutant: Mutant | None = None) -> Row:
    """Run one fault of a self-test."""
    install = play.migrate.run

    def install_and_maim(address: str) -> None:
        install(address)
        if mutant is not None:
            maim(address, mutant)

    monkeypatch.setattr(play.migrate, "run", install_and_maim)
    monkeypatch.setattr(play, "FAULTS", (fault,))
    monkeypatch.setattr(stage, "PATIENCE", 20.0 if mutant is None else 4.0)
    [row] = play.run(dsn, SMALL, 7, lambda *_: None)
    return row


@pytest.mark.long
@pytest.mark.one_server
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_self_test_of_an_engine_without_a_guard_fails(dsn, folder, mutant, monkeypatch, proof):
    row = run(dsn, mutant.fault, monkeypatch, mutant)

    proof.add(rounds=1)
    assert not row.is_sound, row
    assert alive(dsn, folder) == []


SHOWN = {KEYS: "R22", POINTS: "R2", FREEZES: "R3", LATE: "R4", KILLS: "R1", CUTS: "R10"}
SHOWING = [pytest.param(fault, marks=pytest.mark.scenario(number), id=fault.name) for fault, number in SHOWN.items()]


@pytest.mark.long
@pytest.mark.one_server
@pytest.mark.parametrize("fault", SHOWING)
def test_each_fault_of_a_self_test_is_made_and_nothing_is_lost_or_accepted_twice(
    dsn, folder, fault, monkeypatch, proof
):
    row = run(dsn, fault, monkeypatch)

    proof.add(rounds=row.rounds, kills=row.kills, lost=row.lost, twice=row.twice)
    assert row.is_sound, row
    assert alive(dsn, folder) == []
