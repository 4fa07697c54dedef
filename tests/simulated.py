"""The simulated shop as a process of its own, on a free loopback port; it ends with the test that started it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.connectors import http

START = """
import os, signal, sys, threading
def leave_with_parent():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=leave_with_parent, daemon=True).start()
from holdfast.cli import main
main()
"""


class SimulatedShop:
    """A running shop: its address, its control and its log."""

    def __init__(self, url: str, log: Path, token: str | None = None) -> None:
        self.url = url
        self._log = log
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def fail(self, *faults: dict[str, Any]) -> None:
        """Replace its faults; without any it works well."""
        http.call("PUT", f"{self.url}/_sim/faults", json=list(faults))

    def edit(self, item_id: str, price: str) -> None:
        """Change a price as a third party does."""
        http.call("POST", f"{self.url}/_sim/edit", json={"id": item_id, "price": price})

    def state(self) -> dict[str, Any]:
        """Read the number of calls and values, and the faults."""
        found: dict[str, Any] = http.call("GET", f"{self.url}/_sim").json()
        return found

    def happened(self) -> dict[str, int]:
        """Count how often each fault happened."""
        return {fault["name"]: fault["happened"] for fault in self.state()["faults"]}

    def prices(self, ids: Iterable[str]) -> dict[str, str]:
        """Read what items show."""
        answer = http.call("POST", f"{self.url}/prices:read", json={"ids": list(ids)}, headers=self._headers).json()
        return {item_id: shown["price"] for item_id, shown in answer["prices"].items()}

    def entries(self, entry: str) -> list[dict[str, Any]]:
        """Read the log: its entries of one sort, `call` or `value`."""
        lines = (json.loads(line) for line in self._log.read_text("utf-8").splitlines())
        return [each for each in lines if each["entry"] == entry]

    def calls(self, place: str = "write") -> list[dict[str, Any]]:
        """Read the calls of one sort, in order."""
        return [each for each in self.entries("call") if each["place"] == place]

    def writes(self) -> Counter[str]:
        """Count how often a call wrote each item."""
        return Counter(each["item"] for each in self.entries("value") if each["by"] == "call")


@contextmanager
def simulated_shop(folder: Path, *options: str, items: int = 20) -> Iterator[SimulatedShop]:
    """Serve a shop; `options` are those of `holdfast sim shop`."""
    log = folder / "shop.jsonl"
    token = options[options.index("--token") + 1] if "--token" in options else None
    command = [sys.executable, "-c", START, "sim", "shop", "--items", str(items), "--port", "0", "--log", str(log)]
    with subprocess.Popen(
        [*command, "--json", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield SimulatedShop(json.loads(process.stdout.readline())["url"], log, token)
        finally:
            process.terminate()
            process.wait(30)
