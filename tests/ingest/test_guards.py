"""Each guard of ingest is taken away in turn, and its story must fail; untouched, every story holds."""

from __future__ import annotations

import pytest

from ingest.guards import GUARDS, STORIES, Edited, Story
from ingest.races import partitions_that_end_together_decide_once
from ingest.runs import DB, define


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_holds(db: DB, story: Story) -> None:
    """P-29, P-63 to P-65, P-82, P-99, P-112, P-154, C-19, C-23 to C-25, C-80, C-81: each story names its own"""
    define(db)
    story(db)


@pytest.mark.one_server
@pytest.mark.unsound
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", GUARDS, ids=lambda mutant: mutant.name)
def test_a_function_without_its_guard_is_caught(db: DB, mutant: Edited) -> None:
    define(db)
    with mutant.installed(db), pytest.raises(mutant.caught_by):
        mutant.story(db)


def test_thirty_partitions_that_end_together_decide_once(db: DB) -> None:
    """P-09, P-73, P-76, P-77, P-123, C-17"""
    define(db)
    partitions_that_end_together_decide_once(db, 30)
