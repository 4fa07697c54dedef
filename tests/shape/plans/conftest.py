"""Where the tests of plans run: some in one process, and those that count what is read in databases of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from shape.plans import reading


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not isinstance(item, pytest.Function) or item.path.parent != Path(__file__).parent:
            continue
        if item.path.name == "test_plans.py":  # its crowd takes long to load
            item.add_marker(pytest.mark.xdist_group(f"plans on {item.callspec.params['template']}"))
        if _counts(item):  # a wiped database has index entries of the rows of earlier tests, and they count too
            item.add_marker(pytest.mark.own_database)


def _counts(item: pytest.Function) -> bool:
    return any(vars(item.module).get(name) is getattr(reading, name) for name in ("reading", "counted"))
