"""Drains of several threads are quiet at once, and the loggers are then as they were."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from holdfast import log


def test_blocks_that_overlap_restore_the_level_that_was_set_before_the_first() -> None:
    ours = logging.getLogger("holdfast")
    before = ours.level
    first, second = ExitStack(), ExitStack()

    first.enter_context(log.only(None))
    second.enter_context(log.only("warning"))
    first.close()
    during = ours.level
    second.close()

    assert (during, ours.level) == (logging.WARNING, before)
