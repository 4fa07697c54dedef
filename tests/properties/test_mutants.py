"""Each guard is taken away in turn, and the story that depends on it must fail; untouched, every story holds."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.testing import Template
from properties.database import wipe
from properties.last_mutants import LAST
from properties.mutants import EDITED, MAIMED, Edited, Maimed, Story
from properties.scenarios import DB, value
from properties.window_mutants import WINDOW

pytestmark = pytest.mark.one_server

STORIES = dict.fromkeys(mutant.story for mutant in [*EDITED, *LAST, *WINDOW, *MAIMED])


@pytest.fixture(scope="module")
def stage(template: Template) -> Iterator[DB]:
    """One database for all that can be put back as it was."""
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def clean(stage: DB) -> DB:
    wipe(stage)
    stage.execute("update holdfast_test.dials set stands_at = null, ahead = '0'")
    return stage


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_holds(clean: DB, story: Story) -> None:
    story(clean)


@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", [*EDITED, *LAST, *WINDOW], ids=lambda mutant: mutant.name)
def test_a_function_without_its_guard_is_caught(clean: DB, mutant: Edited) -> None:
    with mutant.installed(clean), pytest.raises(mutant.caught_by):
        mutant.story(clean)


@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", MAIMED, ids=lambda mutant: mutant.name)
def test_a_schema_without_its_guard_is_caught(db: DB, mutant: Maimed) -> None:
    month = value(db, "select to_char(holdfast.clock() at time zone 'UTC', 'YYYYMM')")
    db.execute(mutant.statement.format(month=month))

    with pytest.raises(AssertionError):
        mutant.story(db)
