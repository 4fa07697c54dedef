"""Each guard of rules is taken away in turn, and the story that depends on it fails; untouched, every story holds."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.testing import Template
from properties.database import wipe
from properties.scenarios import DB
from rules.guards import GUARDS, STORIES, Edited, Story


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
    """A-85, A-86, A-112: each story names its own"""
    story(clean)


@pytest.mark.one_server
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", GUARDS, ids=lambda mutant: mutant.name)
def test_a_function_without_its_guard_is_caught(clean: DB, mutant: Edited) -> None:
    with mutant.installed(clean), pytest.raises(mutant.caught_by):
        mutant.story(clean)
