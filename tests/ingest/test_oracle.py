"""Random changes of a source, kills, faults and decisions of people: what is in the table after each run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast import Holdfast
from holdfast.testing import Clock
from ingest.oracle import Oracle
from ingest.shop import DB

SHORT, LONG = 6, 40


@pytest.mark.one_server
@pytest.mark.timeout(900)
@pytest.mark.parametrize("examples", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_a_feed_has_what_its_source_had_at_the_bound(hf: Holdfast, db: DB, clock: Clock, examples: int) -> None:
    """P-39, P-81 to P-83, P-105, P-107, P-108, P-110, P-112, P-155, C-18, C-21, C-23, C-25, R29: whatever is killed"""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: Oracle(hf, db, clock),
        settings=settings(
            max_examples=examples,
            stateful_step_count=30 if examples == SHORT else 60,
            deadline=None,
            derandomize=examples == SHORT,
            phases=[Phase.explicit, Phase.generate, Phase.shrink] if examples == LONG else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
