"""The process of the demo's outlet: serves a simulated shop, and ends with the demo that started it.

python -m holdfast.demo.outlet_shop ITEMS LOG
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from holdfast.sim.catalogue import ShopLog
from holdfast.sim.serve import serve
from holdfast.sim.shop import Shop


def main() -> None:
    """Serve until stdin closes: the demo holds its other end."""
    items, log = int(sys.argv[1]), ShopLog(Path(sys.argv[2]))
    threading.Thread(target=_leave_with_the_demo, daemon=True).start()
    serve(Shop(items, log), 0, _announce)


def _announce(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


def _leave_with_the_demo() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
