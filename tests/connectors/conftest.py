"""A server to call, and an app whose handlers call it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.stub import Stub, stub_server
from worker.conftest import hf

__all__ = ["hf", "stub"]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with stub_server() as server:
        yield server
