"""Rule runs whose workers and previewers are killed: each price has at most one net effect, and nothing is stuck."""

from __future__ import annotations

import signal
import sys
from uuid import UUID

import pytest

from holdfast import Holdfast
from holdfast.errors import WrongState
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import drain
from scenarios.crew import HERE, Crew, Database, until
from scenarios.proof import Proof
from scenarios.sales_places import LOST, PLACES, READS, SHORT, Place

KILLED = -signal.SIGKILL
ITEMS = 12  # of each place: three calls
MADE = """
create schema sales;
create table sales.products (sku text primary key, price numeric);
create table sales.log (id bigint generated always as identity, sku text, price numeric);
create function sales.note() returns trigger language plpgsql as
  $$ begin insert into sales.log (sku, price) values (new.sku, new.price); return null; end $$;
create trigger note after update on sales.products for each row execute function sales.note();
"""
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
from sales import hf
from holdfast.rules.handle import by_id
getattr(by_id(hf._engine, sys.argv[2]), sys.argv[3])()
"""
CALLS = {  # each action of a person: the function that it calls, and how the run ends when workers have done the rest
    "apply": ("apply", "APPLIED"),
    "pause": ("pause_run", "APPLIED"),
    "resume": ("resume_run", "APPLIED"),
    "stop": ("stop_run", "PARTIAL"),
    "retry_failed": ("retry_failed", "PARTIAL"),
    "retry_all": ("retry_all", "APPLIED"),
}
FEW_CALLS = {"before_stop_run", "after_apply"}
PREVIEW = """
import sys
sys.path.insert(0, sys.argv[1])
from sales import hf
from holdfast.errors import WrongState
from holdfast.rules import Rule, everything, percent
hf.rules.preview(Rule("half", where=everything, change=percent(-50)), channel="own-before_commit", apply=True, key="k")
"""


def previewed(hf: Holdfast, place: Place) -> RuleRun:
    hf.rules.channel(place.channel, Table("sales.products", key="sku", price="price", currency="EUR", dsn=hf.dsn))
    items = [f"{place.channel}/{number}" for number in range(ITEMS)]
    return hf.rules.preview(Rule("tenth", where=everything, change=percent(-10)), channel=place.channel, items=items)


def made(database: Database, places: tuple[Place, ...]) -> None:
    with database.connection() as connection:
        connection.execute(MADE)
        for place in places:
            connection.execute(
                "insert into sales.products select %s || n, 10 from generate_series(0, %s) n",
                [f"{place.channel}/", ITEMS - 1],
            )


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(SHORT, id="some"),
        pytest.param(PLACES, id="all", marks=pytest.mark.long),
        pytest.param(READS, id="between claim and call", marks=pytest.mark.long),
    ],
)
def test_a_worker_killed_at_any_place_of_an_apply_leaves_one_effect_per_target(
    crew: Crew, database: Database, proof: Proof, places: tuple[Place, ...]
) -> None:
    """R2, R11, R12, A-89, A-121, C-15: of its claim, its call, its transaction and its settle."""
    made(database, places)
    hf = Holdfast(database.dsn)
    runs = {place: previewed(hf, place) for place in places}
    for run in runs.values():
        run.apply()
    armed = [
        crew.hire("--queue", f"rules:{place.channel}", app="sales", failpoint=f"{place.failpoint}:kill9")
        for place in places
    ]
    assert [member.exit_code() for member in armed] == [KILLED] * len(places)

    crew.hire(*(part for place in places for part in ("--queue", f"rules:{place.channel}")), app="sales")
    until(lambda: all(run.summary.status == "APPLIED" for run in runs.values()), "all runs were applied")

    twice = database.value("select coalesce(sum(n - 1), 0)::int from (select count(*) n from sales.log group by sku) c")
    lost = database.value("select count(*)::int from sales.products where price <> 9")
    proof.add(rounds=len(places), kills=len(places), lost=lost, twice=twice)
    assert (lost, twice) == (0, 0)
    assert [run.summary.counts["applied"] for run in runs.values()] == [ITEMS] * len(places)
    ledger = database.value("select count(*)::int from rules.price_changes")
    assert ledger == ITEMS * len(places)
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize("side", [pytest.param("before", marks=pytest.mark.long), "after"])
def test_a_worker_killed_while_it_reads_a_table_back_leaves_targets_that_a_retry_settles(
    crew: Crew, database: Database, side: str
) -> None:
    """A-33, A-67, R11: the kill uses up the last try, and nobody knows what was written until it is read."""
    made(database, (LOST,))
    hf = Holdfast(database.dsn)
    run = previewed(hf, LOST).apply()
    queue = ("--queue", f"rules:{LOST.channel}")
    killed = crew.hire(*queue, app="sales", failpoint=f"{side}_read_back:kill9")
    assert killed.exit_code() == KILLED

    crew.hire(*queue, app="sales")
    until(lambda: run.summary.status in {"PARTIAL", "FAILED"}, "the run ended without the targets of that call")
    unknown = [target.item_id for target in run.targets("FAILED")]
    assert 1 <= len(unknown) == run.summary.counts["unknown"]
    assert [each.outcome for each in run.retry_failed()] == ["queued"] * len(unknown)
    until(lambda: run.summary.status == "APPLIED", "the retry read what is there")

    assert run.summary.counts["applied"] == ITEMS
    assert database.value("select count(*)::int from sales.log") == ITEMS
    assert database.value("select count(*)::int from sales.products where price = 9") == ITEMS
    assert database.value("select count(*)::int from rules.price_changes") == ITEMS
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize(
    "failpoint",
    [
        *(pytest.param(name, marks=pytest.mark.long) for name in ("after_stage_targets", "before_take_preview")),
        pytest.param("after_take_preview", marks=pytest.mark.long),
        "before_preview_commit",
    ],
)
def test_a_preview_that_is_killed_leaves_nothing_and_can_be_repeated(
    crew: Crew, database: Database, failpoint: str
) -> None:
    """A preview is all or nothing; `apply=True` queues it in the same transaction (A-104, C-14)."""
    made(database, SHORT)
    command = (sys.executable, "-c", PREVIEW, str(HERE))

    assert crew.run("previewer", *command, failpoint=f"{failpoint}:kill9").exit_code() == KILLED
    assert database.value("select count(*)::int from rules.rule_runs") == 0
    assert database.value("select count(*)::int from holdfast.steps") == 0
    assert crew.run("again", *command, failpoint="after_preview_commit:kill9").exit_code() == KILLED
    assert crew.run("the same key", *command).exit_code() == 0

    ((run_id, status),) = database.rows("select id, status from rules.rule_runs")
    events = database.rows(
        "select event, to_state from holdfast.journal where run_id = %s and step_id is null order by id",
        UUID(str(run_id)),
    )
    assert status == "QUEUED"
    assert [to_state for _, to_state in events] == ["PREVIEW", "QUEUED"]
    assert database.value("select count(*)::int from sales.log") == 0


def prepared(hf: Holdfast, database: Database, action: str) -> RuleRun:
    """Make a run that the action fits: five of its targets are admitted at a time, and the first call was settled."""
    database.do("update holdfast.machines set window_size = 5 where machine = 'rules.run'")
    run = previewed(hf, PLACES[0])
    if action != "apply":
        run.apply(first=5)
        drain(hf)
        assert run.summary.counts["applied"] == 5
        if action != "resume":
            run.resume()
    if action in ("retry_failed", "retry_all"):
        run.stop()
    return run


@pytest.mark.parametrize("action", CALLS)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_client_killed_while_it_acts_on_a_run_leaves_it_as_it_was_or_as_it_asked(
    crew: Crew, database: Database, request: pytest.FixtureRequest, action: str, side: str
) -> None:
    """R2, R11: the action is repeated, lots are admitted by claims, and every target is written once at most."""
    function, ends = CALLS[action]
    if f"{side}_{function}" not in FEW_CALLS and not request.config.getoption("--faults"):
        pytest.skip("only with --faults")
    made(database, PLACES[:1])
    hf = Holdfast(database.dsn)
    run = prepared(hf, database, action)
    command = (sys.executable, "-c", CALL, str(HERE), str(run.id), action)

    assert crew.run("client", *command, failpoint=f"{side}_{function}:kill9").exit_code() == KILLED
    if (side, action) == ("after", "retry_all"):
        with pytest.raises(WrongState):  # it has been done: the run is open again
            run.retry_all()
    else:
        getattr(run, action)()
    if action == "pause":
        assert drain(hf) == 0
        run.resume()
    drain(hf)

    summary = run.summary
    done = {"APPLIED": ITEMS, "PARTIAL": 5}[ends]
    assert (summary.status, summary.counts["applied"], summary.counts["failed"]) == (ends, done, 0)
    assert database.value("select count(*)::int from sales.products where price = 9") == done
    assert database.value("select count(*)::int from sales.log") == done
    assert database.value("select count(*)::int from rules.price_changes") == done
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()
