"""Every test of the face leaves a sound database behind."""

from __future__ import annotations

from kernel.conftest import sound

__all__ = ["sound"]
