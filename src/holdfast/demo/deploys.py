"""The demo's deployment: a project of one page, built by a program whose output is watched while it runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from holdfast.demo.tasks import hf
from holdfast.ops.context import OpsCtx
from holdfast.ops.run import OpsRun

QUEUE = "demo-deploys"
KIND = "demo_deploy"
ENDLESS = "refs/heads/feature/endless"  # a branch whose build never ends
BUILD = """
echo "fetching $HOLDFAST_GIT_SHA"; sleep 0.4
for part in header body footer; do echo "rendering $part"; sleep 0.3; done
echo "<h1>$HOLDFAST_GIT_SHA</h1>" > index.html
while [ "$HOLDFAST_GIT_REF" = "$ENDLESS" ]; do echo "waiting for a mirror"; sleep 0.2; done
echo "pages=1" >> "$HOLDFAST_OUTPUT"
echo "published"
"""


@hf.ops(KIND, queue=QUEUE, timeout=60)
def deploy(ctx: OpsCtx, run: OpsRun) -> dict[str, Any]:
    """Build the page of a commit, and register it."""
    with TemporaryDirectory(prefix="holdfast-demo-") as folder:
        project = Path(folder)
        (project / "build.sh").write_text(BUILD)
        ctx.shell("sh", "build.sh", cwd=project, env={"ENDLESS": ENDLESS}, grace=1, step="build")
        ctx.artifact("page", f"https://pages.example/{run.git_sha}", size=(project / "index.html").stat().st_size)
    return {"deploy_url": f"https://{run.env}.example.com"}
