"""The tasks of pickup.py."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast import Ctx, Holdfast

hf = Holdfast()


@hf.task
def noop(x: int) -> None:
    """Do nothing."""


@hf.task
def tick(ctx: Ctx) -> None:
    """Write down when it began."""
    began = time.time()
    with Path(os.environ["HOLDFAST_TEST_TIMES"]).open("a") as times:
        times.write(f"{ctx.step_id} {began}\n")
