"""The app, as flows and what users hold of their tasks see it."""

from __future__ import annotations

from typing import Protocol

from holdfast.handlers.registry import Registry
from holdfast.kernel.door import Door
from holdfast.notify import Subscribers


class Hub(Door, Protocol):
    """A door to the database, what serves flows, and who is told of what happens to them."""

    registry: Registry
    subscribers: Subscribers
