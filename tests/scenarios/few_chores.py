"""An app that has one handler, for workers that lack the others."""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast()


@hf.task
def smile() -> str:
    return "smiled"
