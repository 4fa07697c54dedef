"""Flows in YAML. What they need beside the core is an extra, imported on use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import BadDefinition


@contextmanager
def needs_extra() -> Iterator[None]:
    """Raise an error that names the missing package and how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadDefinition(
            f"flows by YAML and contexts by JSON Schema need {error.name}",
            next="install it: pip install 'holdfast-pg[yaml]'",
        ) from error
