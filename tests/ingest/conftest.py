"""An app on a database of its own; every test of the face leaves a sound database behind."""

from __future__ import annotations

from kernel.conftest import pytest_configure, sound
from worker.conftest import hf, log_lines

__all__ = ["hf", "log_lines", "pytest_configure", "sound"]
