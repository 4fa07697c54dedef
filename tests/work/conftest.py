"""Every test of the face leaves a sound database, as the kernel's do."""

from kernel.conftest import sound

__all__ = ["sound"]
