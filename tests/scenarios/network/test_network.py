"""The network fails between a worker and its server: answers are cut off, requests lost, connections reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing import Clock
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.proxy import FaultProxy

ROUNDS = 10
# Kinds that commit an effect, and the message that does: the settle goes with it, unless the result is large.
SETTLED = "settle_whole.*commit"
COMMITS = [("deposit", SETTLED), ("adeposit", SETTLED), ("deposit_apart", SETTLED), ("deposit_much", "^commit")]
LASTING = {"lease": "60s", "error_wait": "50ms"}  # nothing expires: what is told again is told under the same lease


def strike(proxy: FaultProxy, proof: Proof, statement: str) -> str:
    """Have the next statement fail on its way there or, more often, on its way back: its sender cannot tell which."""
    fault = proof.chance.choice(["cut", "cut", "lose"])
    proxy.lose(statement) if fault == "lose" else proxy.cut(statement)
    proof.add(rounds=1)
    return fault


@pytest.mark.timeout(300)
def test_an_outcome_whose_answer_was_cut_off_is_said_again_and_counts_once(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R11: successes and retries; no handler runs again for it."""
    worker = far_crew.hire_ready(**LASTING)
    for number in range(ROUNDS):
        strike(proxy, proof, "settle_")
        database.start("stumble", times=number % 2)
        until(lambda: not proxy.is_armed, "an answer was lost")
        until(lambda: database.count("succeeded") > number, "the worker said it again")  # noqa: B023

    proof.check(database, folder, started=ROUNDS)
    assert database.count("claimed") == len(lines(folder, "begin")) == ROUNDS + ROUNDS // 2
    assert database.count("retried") == ROUNDS // 2
    assert not worker.has_ended


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "commit"), [*COMMITS, ("deposit_once", SETTLED)])
def test_a_commit_whose_answer_was_cut_off_has_its_effect_once(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof, kind: str, commit: str
) -> None:
    """R11: the worker asks by its lease: what was committed is not done again, what was not is, policy or none."""
    worker = far_crew.hire_ready(**LASTING)
    lost = 0
    for number in range(ROUNDS):
        lost += strike(proxy, proof, commit) == "lose"
        step = database.start(kind)
        until(lambda: not proxy.is_armed, "the answer to a commit was lost")
        until(lambda: database.is_over(step), f"the step of round {number} was over")  # noqa: B023

    until(lambda: len(worker.said("step.outcome_not_accepted")) == ROUNDS - lost, "it learned what had been committed")
    proof.check(database, folder, started=ROUNDS)
    assert database.count("claimed") == len(lines(folder, "begin")) == ROUNDS + lost
    assert database.count("retried") == lost


@pytest.mark.parametrize("kind", ["deposit_once", "adeposit"])
def test_a_connection_that_breaks_inside_a_handlers_transaction_costs_a_try_and_no_more(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof, kind: str
) -> None:
    """R11: the handler raises what the driver raises, but it is not the handler that failed; policy or none."""
    far_crew.hire_ready(**LASTING)
    strike(proxy, proof, "insert into public.effects")

    step = database.start(kind)

    until(lambda: database.is_over(step), "it was done by another attempt")
    assert database.story(step) == ["claimed", "retried", "claimed", "succeeded"]
    proof.check(database, folder, started=1)


@pytest.mark.timeout(300)
def test_a_claim_whose_answer_was_cut_off_is_recovered_by_its_lease(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R11: held by a worker that does not know of it, until the lease has run out."""
    far_crew.hire_ready(**LASTING)
    for _ in range(ROUNDS // 2):
        proxy.cut("claim_steps", has_rows=True)
        proof.add(rounds=1)
        step = database.start("doze")
        until(lambda: not proxy.is_armed, "the answer to a claim was lost")
        until(database.held_by, "the claim was made")
        with database.connection() as connection:
            Clock(connection).advance(LASTING["lease"])
        until(lambda: database.is_over(step), "the step was over")  # noqa: B023
        assert database.story(step) == ["claimed", "expired", "claimed", "succeeded"]

    proof.check(database, folder, started=ROUNDS // 2)


@pytest.mark.timeout(300)
def test_a_renewal_whose_answer_was_cut_off_costs_nothing(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R11: unknown, not lost: the handler goes on, and the next renewal finds the lease where it was."""
    step = database.start("wait", gate="go")
    worker = far_crew.hire_ready(lease="6s")
    until(lambda: lines(folder, "begin"), "the handler began")
    for _ in range(3):
        strike(proxy, proof, "renew_leases")
        until(lambda: not proxy.is_armed, "the answer to a renewal was lost")
    worker.await_said("lease.renewal_failed")
    far_crew.open("go")

    until(lambda: database.is_over(step), "the step was over")
    assert database.story(step) == ["claimed", "succeeded"]
    proof.check(database, folder, started=1)


@pytest.mark.timeout(300)
def test_connections_that_are_reset_under_load_lose_nothing(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R10: a random share of them, again and again, while tasks with and without effects are done."""
    worker = far_crew.hire_ready(error_wait="50ms")
    kinds = ("doze", "deposit", "adeposit", "deposit_apart")
    started = 0
    for _ in range(ROUNDS):
        done = database.count("succeeded")
        started += sum(database.start_many(kind, 25) for kind in kinds)
        until(lambda: database.held_by() or database.count("succeeded") > done, "the worker worked")  # noqa: B023
        proxy.reset(proof.chance, share=proof.chance.random())
        proof.add(rounds=1)

    until(lambda: database.count("succeeded") >= started, "all were done")
    proof.check(database, folder, started=started)
    assert not worker.has_ended
