"""The backoff of a flow: what can be configured, what is refused, and that Python and the database wait alike."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest

from holdfast.errors import BadDefinition
from holdfast.flow.backoff import Backoff, ReenqueueDelays, StepRetry
from holdfast.kernel.db import run
from kernel.steps import DB, value

STEADY = Backoff(jitter_enabled=False)
CHANCES = [0.0, 1e-9, 0.05, 0.123456789012345678, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1 - 2**-53]
FAILURES = [-1, 0, *range(1, 40), 100, 1000, 99_999, 2**31 - 1]
TABLE = [
    Backoff(),
    STEADY,
    Backoff(jitter_max_percentage=0.35),
    Backoff(jitter_max_percentage=1),
    Backoff(jitter_max_percentage=0),
    Backoff(default_backoff_seconds=[0.1, 0.2, 0.5]),
    Backoff(default_backoff_seconds=[0.1, 0.2, 0.5], jitter_enabled=False, max_backoff_seconds=0.3),
    Backoff(default_backoff_seconds=[0, 1.05, 2.5, 5, 15, 25, 45], max_backoff_seconds=99.5, backoff_multiplier=2.5),
    Backoff(default_backoff_seconds=[], backoff_multiplier=1.5, max_backoff_seconds=86400),
    Backoff(default_backoff_seconds=[], backoff_multiplier=0.3010299956639812, max_backoff_seconds=10**9),
    Backoff(default_backoff_seconds=[], backoff_multiplier=0.5, jitter_max_percentage=0.015),
    Backoff(default_backoff_seconds=(1,), backoff_multiplier=100),
    Backoff(default_backoff_seconds=[2, 5, 10, 20, 40, 80], backoff_multiplier=1.5, monotonic=True),
    Backoff(default_backoff_seconds=[10, 3, 7.5], backoff_multiplier=0.7, max_backoff_seconds=9, monotonic=True),
    Backoff(enabled=False),
    Backoff(bypass=True),
]


def waits(backoff: Backoff, failures: Any) -> list[float]:
    return [backoff.calculate_backoff_seconds(n, 0.5) for n in failures]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("default_backoff_seconds", (1, 2, 4, 8, 16, 32)),
        ("max_backoff_seconds", 300),
        ("backoff_multiplier", 2.0),
        ("jitter_enabled", True),
        ("jitter_max_percentage", 0.1),
        ("reenqueue_delays", ReenqueueDelays(has_ready_steps=0, waiting_for_dependencies=45, processing=10)),
        ("default_reenqueue_delay", 30),
        ("buffer_seconds", 5),
        ("enabled", True),
        ("monotonic", False),
        ("bypass", False),
    ],
)
def test_each_attribute_has_its_default(name: str, given: object) -> None:
    """T-93, T-94 to T-103, T-123: and the bypass for tests is off"""
    assert getattr(Backoff(), name) == given


def test_the_basic_configuration_is_the_default() -> None:
    """T-116: as the guide writes it"""
    assert Backoff() == Backoff(
        default_backoff_seconds=[1, 2, 4, 8, 16, 32],
        max_backoff_seconds=300,
        jitter_enabled=True,
    )


def test_the_preset_of_a_step_is_the_default_configuration(db: DB) -> None:
    """T-93, C-30: a step that a plain INSERT starts waits as one of a flow in Python does"""
    run(db, StepRetry().definition("flow:a"))

    said, preset = (
        value(db, "select to_jsonb(p) - 'policy' from holdfast.policies p where policy = %s", policy)
        for policy in ("flow:a", "flow.step")
    )

    assert said == preset


def test_a_list_then_powers_up_to_the_cap() -> None:
    """T-104, T-105, T-106, T-107, C-45"""
    assert waits(STEADY, range(-1, 9)) == [0, 0, 1, 2, 4, 8, 16, 32, 49, 64]
    assert waits(STEADY, (16, 17, 18, 1000)) == [256, 289, 300, 300]


@pytest.mark.parametrize(
    ("base", "found"),
    [
        (8, {7, 8, 9}),
        (5, {4, 5, 6}),
        (32, set(range(29, 36))),
        (1, {1}),
        (2, {2}),
        (4, {4}),
        (300, set(range(270, 331))),
    ],
)
def test_jitter_is_in_whole_seconds_with_halves_away_from_zero(base: int, found: set[int]) -> None:
    """T-108, C-46: inclusive at both ends, at least a second"""
    backoff = Backoff(default_backoff_seconds=[base], monotonic=True)

    assert {backoff.calculate_backoff_seconds(1, n / 1000) for n in range(1000)} == found


def test_without_a_chance_one_is_drawn() -> None:
    """T-108"""
    drawn = {Backoff().calculate_backoff_seconds(18) for _ in range(1000)}

    assert len(drawn) > 30
    assert {270 <= wait <= 330 for wait in drawn} == {True}


def test_fractions_are_spread_continuously_and_have_no_floor_of_a_second() -> None:
    """T-121, C-46: from a second on the floor holds"""
    quick = Backoff(default_backoff_seconds=[0.1, 0.2, 0.5, 1.05])

    assert [quick.calculate_backoff_seconds(n, 0.5) for n in (1, 2, 3)] == [0.1, 0.2, 0.5]
    assert [quick.calculate_backoff_seconds(3, chance) for chance in (0, 0.25, 0.75)] == [0.45, 0.475, 0.525]
    assert quick.calculate_backoff_seconds(4, 0) == 1


def test_python_and_the_database_wait_alike(db: DB) -> None:
    """T-104 to T-109, T-118, C-43, C-45, C-46, C-58: over a table of configurations, failures and chances"""
    for backoff in TABLE:
        run(db, StepRetry(limit=40, backoff=backoff).definition("flow:a"))
        rows = db.execute(
            """select f, c, extract(epoch from holdfast.backoff('flow:a', f, c))::double precision
                 from unnest(%s::int[]) f, unnest(%s::double precision[]) c""",
            [[n for n in FAILURES if n < 40 or not backoff.monotonic], CHANCES],
        ).fetchall()

        found = {(failure, chance): wait for failure, chance, wait in rows}
        assert found == {at: backoff.calculate_backoff_seconds(*at) for at in found}, backoff


def test_a_progression_that_shrinks_is_warned_of_and_kept() -> None:
    """T-118, C-45: 7 ^ 1.5 is 18"""
    with pytest.warns(UserWarning, match=r"80(\.0)? s.*18 s.*monotonic"):
        slow = Backoff(
            default_backoff_seconds=[2, 5, 10, 20, 40, 80],
            backoff_multiplier=1.5,
            max_backoff_seconds=600,
            jitter_enabled=False,
        )

    assert waits(slow, range(1, 8)) == [2, 5, 10, 20, 40, 80, 18]


def test_with_monotonic_no_wait_is_shorter_than_the_one_before() -> None:
    """C-45: and nothing is warned of"""
    given = {"default_backoff_seconds": [2, 5, 10, 80, 40], "backoff_multiplier": 1.5, "jitter_enabled": False}
    rising = waits(Backoff(**given, monotonic=True), range(1, 40))

    assert all(earlier <= later for earlier, later in pairwise(rising))
    assert rising[:7] == [2, 5, 10, 80, 80, 80, 80]
    assert rising[-1] == math.floor(39**1.5)


def test_a_monotonic_list_ends_where_powers_overtake_it(db: DB) -> None:
    """C-45: a high limit makes no long list; one that would be is refused"""
    backoff = Backoff(default_backoff_seconds=[80], backoff_multiplier=1.5, monotonic=True)
    run(db, StepRetry(limit=10**6, backoff=backoff).definition("flow:a"))

    assert value(db, "select cardinality(waits) from holdfast.policies where policy = 'flow:a'") == 18
    with pytest.raises(BadDefinition, match=r"monotonic.*2000.*backoff_multiplier"):
        StepRetry(limit=2000, backoff=dataclasses.replace(backoff, backoff_multiplier=0.1))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("default_backoff_seconds", "123"),
        ("default_backoff_seconds", 5),
        ("default_backoff_seconds", [1, -2]),
        ("default_backoff_seconds", [1, "two"]),
        ("default_backoff_seconds", [True]),
        ("default_backoff_seconds", [math.nan]),
        ("default_backoff_seconds", [1] * 1001),
        ("max_backoff_seconds", 0),
        ("max_backoff_seconds", -1),
        ("max_backoff_seconds", math.inf),
        ("max_backoff_seconds", None),
        ("backoff_multiplier", -0.1),
        ("backoff_multiplier", 101),
        ("backoff_multiplier", "2"),
        ("jitter_enabled", 1),
        ("jitter_max_percentage", 1.01),
        ("jitter_max_percentage", -0.1),
        ("reenqueue_delays", {"processing": 5}),
        ("default_reenqueue_delay", -1),
        ("buffer_seconds", math.nan),
        ("enabled", None),
        ("monotonic", "yes"),
        ("bypass", 0),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(name: str, given: object) -> None:
    """T-93: with the way on behind the last semicolon"""
    with pytest.raises(BadDefinition, match=rf"^{name}"):
        Backoff(**{name: given})


@pytest.mark.parametrize("name", ["has_ready_steps", "waiting_for_dependencies", "processing"])
def test_a_delay_that_makes_no_sense_is_refused_by_its_name(name: str) -> None:
    """T-99, T-100, T-101"""
    with pytest.raises(BadDefinition, match=rf"^reenqueue_delays.{name}.*-1"):
        ReenqueueDelays(**{name: -1})


def test_a_configuration_is_frozen_and_can_be_shared() -> None:
    """T-119, T-120: the list that was given may change, the configuration does not"""
    given = [1, 2]
    backoff = Backoff(default_backoff_seconds=given)
    given.append(3)

    assert backoff.default_backoff_seconds == (1, 2)
    assert len({backoff, Backoff(default_backoff_seconds=(1, 2))}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        backoff.max_backoff_seconds = 5


def test_the_former_constants_are_gone() -> None:
    """T-119"""
    gone = {"max_server_backoff", "min_exponent", "base_delay", "max_delay"}

    assert gone.isdisjoint(dir(Backoff()))


@pytest.mark.parametrize(
    ("status", "earliest", "delay"),
    [
        ("has_ready_steps", None, 0),
        ("has_ready_steps", 20, 0),
        ("waiting_for_dependencies", None, 50),
        ("waiting_for_dependencies", 3, 8),
        ("waiting_for_dependencies", -4, 5),
        ("waiting_for_dependencies", 1000, 300),
        ("processing", None, 15),
        ("processing", 3, 15),
        ("all_complete", None, 30),
        ("no such status", None, 30),
    ],
)
def test_a_task_is_looked_at_again_by_its_status(status: str, earliest: float | None, delay: float) -> None:
    """T-102, T-110, T-111, T-126, C-48, C-49"""
    assert Backoff().reenqueue_delay(status, earliest) == delay


def test_delays_can_be_tuned() -> None:
    """T-117, T-121: 0, 15, 5 and a buffer of 10; fractions too"""
    tuned = Backoff(reenqueue_delays=ReenqueueDelays(0, 15, 5), buffer_seconds=10)
    quick = Backoff(reenqueue_delays=ReenqueueDelays(0, 0.1, 0.1), buffer_seconds=0)
    statuses = ("has_ready_steps", "waiting_for_dependencies", "processing")

    assert [tuned.reenqueue_delay(status) for status in statuses] == [0, 25, 15]
    assert [quick.reenqueue_delay(status) for status in statuses] == [0, 0.1, 0.1]


def test_no_delay_is_longer_than_the_longest_wait() -> None:
    """T-126, C-48"""
    short = Backoff(max_backoff_seconds=12, reenqueue_delays=ReenqueueDelays(has_ready_steps=60))
    statuses = ("has_ready_steps", "waiting_for_dependencies", "processing", "no such status")

    assert {short.reenqueue_delay(status) for status in statuses} == {12}


@pytest.mark.parametrize(("limit", "retryable", "tries"), [(3, True, 3), (0, True, 1), (5, False, 1), (1, True, 1)])
def test_what_is_planned_is_executed_at_least_once(limit: int, retryable: bool, tries: int) -> None:
    """C-51, T-37, T-43"""
    assert StepRetry(limit, retryable=retryable).tries == tries


def test_a_backoff_that_is_none_is_refused() -> None:
    """T-93"""
    with pytest.raises(BadDefinition, match=r"'max_backoff_seconds': 5"):
        StepRetry(3, {"max_backoff_seconds": 5})


@pytest.mark.parametrize("limit", [-1, 2.5, True, 2**31, None])
def test_a_limit_that_counts_nothing_is_refused(limit: Any) -> None:
    """C-51"""
    with pytest.raises(BadDefinition, match="retry must be"):
        StepRetry(limit)
