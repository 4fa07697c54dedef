"""Random flows under random trouble, held against the model after each event; engines that lack a guard fail.

HYPOTHESIS_PROFILE says how long to look, and whether at the same examples each time: tests/properties/conftest.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import Phase, given, settings

import properties.conftest  # noqa: F401 - its profiles
from flow.guards import GUARDS
from flow.parts import Node
from flow.stage import Stage
from flow.tales import Action, finish, flows, tales
from holdfast.errors import HoldfastError
from properties.mutants import Edited

SHARE = 2  # of the examples that the profile asks for: each of these is long
EXAMPLES = settings().max_examples // SHARE
CAUGHT_BY = (AssertionError, KeyError, psycopg.Error, HoldfastError)


@pytest.fixture
def stage(dsn: str) -> Iterator[Stage]:
    stage = Stage(dsn)
    yield stage
    stage.wipe()  # what a broken engine left
    stage.close()


def play(stage: Stage, nodes: tuple[Node, ...], tale: list[Action]) -> None:
    """Let a task of the flow go through what happens, and then to its end; all along it is as the model says."""
    stage.begin(nodes)
    stage.check()
    for action in tale:
        action.play(stage)
        stage.check()
    finish(stage)
    stage.check()
    assert stage.violations() == []


def look(stage: Stage, asked: settings) -> None:
    """Play examples until one of them goes wrong."""

    @asked
    @given(nodes=flows(), tale=tales())
    def example(nodes: tuple[Node, ...], tale: list[Action]) -> None:
        play(stage, nodes, tale)

    example()


@pytest.mark.timeout(1200)
def test_a_flow_does_what_the_model_says(stage: Stage) -> None:
    """T-06, T-26, T-29, T-31, T-33 to T-40, T-57, T-72, T-109, T-130, T-133, C-43, C-44, C-50 to C-53, C-55, C-59: no
    step runs before its parents are done, none again after its success, each join once and with what its parents gave
    """
    look(stage, settings(max_examples=EXAMPLES))


@pytest.mark.one_server
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", GUARDS, ids=lambda mutant: mutant.name)
def test_a_flow_without_a_guard_is_caught(stage: Stage, mutant: Edited) -> None:
    """T-140: what is random finds what is broken"""
    asked = settings(max_examples=100, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)

    with mutant.installed(stage.db), pytest.raises(CAUGHT_BY):
        look(stage, asked)
