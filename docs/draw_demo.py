"""Draws docs/images/demo.svg from what a real run of `holdfast demo` prints at its end; run it after the demo changed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent / "images" / "demo.svg"
WIDTH = 110
_OUTSIDE = re.compile(r"<!-- Generated.*?-->\s*|@font-face\s*\{.*?\}\s*", re.DOTALL)  # web fonts, and where they come from


def main() -> None:
    """Run the demo as on a terminal, in a home of its own, and draw what it printed."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as folder:  # noqa: S108 - a short path, for the socket
        Path(folder).chmod(0o755)
        printed = _printed({"HOLDFAST_HOME": f"{folder}/home", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"})
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(printed.partition("\nLook further")[0].strip("\r\n")))
    drawn = _OUTSIDE.sub("", console.export_svg(title="make demo", unique_id="demo")).replace("Fira Code, ", "")
    PICTURE.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", "utf-8")


def _printed(settings: dict[str, str]) -> str:
    master, slave = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    demo = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "demo"], env=kept | settings, stdout=slave, stderr=subprocess.DEVNULL
    )
    os.close(slave)
    printed = b""
    with suppress(OSError):  # the end of a terminal is an error
        while part := os.read(master, 65536):
            printed += part
    os.close(master)
    if demo.wait() != 0:
        sys.exit("the demo failed; see it: holdfast demo")
    return printed.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
