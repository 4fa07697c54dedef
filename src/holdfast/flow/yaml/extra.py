"""What flows need that is not installed with the core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import BadTask


@contextmanager
def needs_extra() -> Iterator[None]:
    """Say how to install what an import misses."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadTask(
            f"flows by YAML and contexts by JSON Schema need {error.name}",
            next="install it: pip install 'holdfast[yaml]'",
        ) from error
