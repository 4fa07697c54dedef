"""Every test of the face leaves a sound database behind."""

from __future__ import annotations

from kernel.conftest import pytest_configure, sound

__all__ = ["pytest_configure", "sound"]
