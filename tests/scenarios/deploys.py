"""An app of ops handlers: each kind has a queue of its own, so that each run has its own worker.

A deploy writes the id of its program's process to a file, waits for the gate `go`, and writes down that it deployed.
"""

from __future__ import annotations

import os
from pathlib import Path

from deploys_places import CELLS

from holdfast import Holdfast
from holdfast.ops import OpsCtx, OpsRun

FOLDER = Path(os.environ["HOLDFAST_TEST_FOLDER"])
PLACES = (*(cell.kind for cell in CELLS), "frozen", "first", "second", "finisher")
DEPLOY = """
echo $$ >> "$FOLDER/pids"; echo begun
until [ -e "$FOLDER/go" ]; do sleep 0.02; done
echo "$HOLDFAST_RUN_ID" >> "$FOLDER/deployed"
"""

hf = Holdfast()


def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, object]:
    try:
        ctx.bash(DEPLOY, env={"FOLDER": str(FOLDER)}, grace=1)
        ctx.artifact("image", f"registry.example/app:{run.run_id}")
    except BaseException as error:
        with (FOLDER / "stopped").open("a") as file:
            file.write(f"{run.run_id} {type(error).__name__} {ctx.stop_reason}\n")
        raise
    return {"deployed": True}


for place in PLACES:
    hf.ops(place, queue=place)(deploy)
