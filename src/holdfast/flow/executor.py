"""What flows need of the app: it runs their calls, serves their steps and tells subscribers."""

from __future__ import annotations

from typing import Protocol

from holdfast.flow.subscribers import Subscribers
from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Executor


class FlowExecutor(Executor, Protocol):
    """Runs calls, and holds the handlers of flows and the subscribers to their events."""

    registry: Registry
    subscribers: Subscribers
