"""Rule runs at a shop that fails while workers are killed: at most one net effect per target, and exact counts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.http import HttpChannel
from scenarios.crew import Crew, Database, Member, until, while_moving
from scenarios.outlets_places import PLACES, SHORT
from scenarios.proof import Proof, seed
from simulated import SimulatedShop, simulated_shop

KILLED = -signal.SIGKILL
OVER = {"APPLIED", "PARTIAL", "FAILED"}
HALF = Rule("half", where=everything, change=percent(-50))
EACH = 10  # items of each place: one call


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SimulatedShop]:
    folder = tmp_path / "shop"
    folder.mkdir()
    with simulated_shop(folder, items=5000) as running:
        yield running


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()


def applied(hf: Holdfast, shop: SimulatedShop, channel: str, items: list[str]) -> RuleRun:
    hf.rules.channel(channel, HttpChannel(shop.url), batch=10)
    return hf.rules.preview(HALF, channel=channel, items=items, apply=True)


def is_over(runs: list[RuleRun]) -> bool:
    return all(run.summary.status in OVER for run in runs)


def judged(shop: SimulatedShop, run: RuleRun, proof: Proof) -> None:
    """Compare what a run says with the shop's own log: every value that each item held, and by which call."""
    began = {each["item"]: float(each["price"]) for each in shop.entries("value") if each["by"] == "start"}
    edited = {each["item"] for each in shop.entries("value") if each["by"] == "third party"}
    writes = shop.writes()
    targets = {target.item_id: target for target in run.targets()}
    shown = shop.prices(targets)
    written = {item for item in targets if writes[item]}
    believed = {item for item, target in targets.items() if target.status == "APPLIED"}
    unknown = {item for item, target in targets.items() if target.reason == "outcome_unknown"}
    twice = sum(writes[item] - 1 for item in written)
    lost = len(believed - {item for item in targets if float(shown[item]) * 2 == began[item]} - edited)
    proof.add(lost=lost, twice=twice)
    assert (lost, twice) == (0, 0)
    faults = {call["call"]: call["fault"] for call in shop.entries("call")}
    late = {each["item"] for each in shop.entries("value") if faults.get(each["call"]) == "late"}
    apart = edited | late  # written and then edited, or after its target was given up: the next pass finds them
    assert written - unknown - apart == believed - apart
    counts = run.summary.counts
    assert (counts["applied"], counts["unknown"]) == (len(believed), len(unknown))
    assert counts["applied"] + counts["failed"] == len(targets)


@pytest.mark.parametrize(
    "places", [pytest.param(SHORT, id="some"), pytest.param(tuple(PLACES), id="all", marks=pytest.mark.long)]
)
def test_a_worker_killed_at_any_place_of_a_call_writes_nothing_twice(
    crew: Crew, database: Database, hf: Holdfast, shop: SimulatedShop, proof: Proof, places: tuple[str, ...]
) -> None:
    """R2, R26: of the call, the halving, the last read and the stop of a run; a retry settles what is left."""
    items = {place: [f"item-{n * EACH + i}" for i in range(1, EACH + 1)] for n, place in enumerate(places)}
    shop.fail(*({**fault, "items": items[place][:1]} for place in places if (fault := PLACES[place]) is not None))
    runs = [applied(hf, shop, place, items[place]) for place in places]
    armed = [
        crew.hire("--queue", f"rules:{place}", app="outlets", shop_url=shop.url, failpoint=f"{place}:kill9")
        for place in places
    ]
    assert [member.exit_code() for member in armed] == [KILLED] * len(places)

    shop.fail()
    queues = [part for place in places for part in ("--queue", f"rules:{place}")]
    crew.hire(*queues, app="outlets", shop_url=shop.url)
    until(lambda: is_over(runs), "all runs ended")
    for run in runs:
        if run.summary.status != "APPLIED":
            run.retry_all()
    until(lambda: all(run.summary.status == "APPLIED" for run in runs), "all runs were applied")

    proof.add(rounds=len(places), kills=len(places))
    for run in runs:
        judged(shop, run, proof)
        assert run.summary.counts["applied"] == EACH
    assert database.rows("select * from holdfast.violations()") == []


def everything_fails(number: int) -> list[dict[str, object]]:
    shares = {
        "rate_limited": 0.05, "busy": 0.05, "error_before": 0.05, "error_after": 0.08, "reset": 0.05, "slow": 0.02,
        "lost_after": 0.08, "lost_before": 0.05, "late": 0.04, "short": 0.03, "foreign": 0.03, "not_json": 0.02,
        "cut_off": 0.02,
    }  # fmt: skip
    faults: list[dict[str, object]] = [{"name": name, "share": share, "seed": number} for name, share in shares.items()]
    more = {"rate_limited": {"retry_after": "1"}, "slow": {"seconds": 1.5}, "late": {"seconds": 1.5}}
    faults = [{**fault, **more.get(str(fault["name"]), {})} for fault in faults]
    refused = {"name": "refused", "share": 0.02, "seed": number}
    edited = {"name": "edited", "share": 0.02, "seed": number}
    return [*faults, refused, edited, {"name": "error_before", "on": "read", "share": 0.1, "seed": number}]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("targets", "kills"), [pytest.param(200, 3, id="some"), pytest.param(5000, 20, id="many", marks=pytest.mark.long)]
)
def test_a_bulk_change_at_a_shop_with_every_fault_has_one_effect_per_target(
    crew: Crew, database: Database, hf: Holdfast, shop: SimulatedShop, proof: Proof, targets: int, kills: int
) -> None:
    """R26: four workers, every fault at once and kills; counts are those of the shop's log, the unknown is listed."""
    run = applied(hf, shop, "outlet", [f"item-{n}" for n in range(1, targets + 1)])
    shop.fail(*everything_fails(seed()))

    def hire() -> Member:
        return crew.hire("--queue", "rules:outlet", "--concurrency", "3", app="outlets", shop_url=shop.url)

    members = [hire() for _ in range(4)]
    for round_ in range(kills):
        seen = shop.state()["calls"]
        until(lambda seen=seen: shop.state()["calls"] > seen + 2 or is_over([run]), "the shop was called")
        members[round_ % 4].kill()
        members[round_ % 4] = hire()
    while_moving(database, lambda: is_over([run]), "the run ended")
    until(lambda: shop.state()["late"] == 0, "late writes have landed")

    shop.fail()
    proof.add(rounds=1, kills=kills)
    judged(shop, run, proof)
    assert sum(shop.writes().values()) > targets // 2
    assert database.rows("select * from holdfast.violations()") == []
