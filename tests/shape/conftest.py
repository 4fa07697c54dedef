"""The crowd of `test_plans.py` takes long to load: all tests of one server go to one process."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path == Path(__file__).with_name("test_plans.py") and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.xdist_group(f"plans on {item.callspec.params['template']}"))
