"""`holdfast sim`: simulated outside systems, to try channels without an account."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson, data, data_line

app = typer.Typer(help="Simulated outside systems, with faults on demand.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Simulated outside systems, with faults on demand."""


@app.command()
@output_options
def shop(
    *,
    items: Annotated[int, typer.Option("--items", min=0, max=1_000_000, help="How many items it has.")] = 1000,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Its port; 0 takes a free one.")] = 8900,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="A fault, as in rate_limited:share=0.1,count=5,seed=7.")
    ] = None,
    log: Annotated[Path, typer.Option("--log", help="The file that gets every call and value.")] = Path("shop.jsonl"),
    rate: Annotated[float | None, typer.Option("--rate", min=0.1, help="Calls per second; more get 429.")] = None,
    is_blind: Annotated[
        bool, typer.Option("--no-compare", help="Write without comparing with what the call expects.")
    ] = False,
    token: Annotated[str | None, typer.Option("--token", help="The bearer token that calls must carry.")] = None,
    as_json: AsJson = False,
) -> None:
    """Serve a simulated shop that speaks the protocol of the HTTP channel, until it is interrupted.

    Faults are chosen by name, share, count and seed, here or later over /_sim. The log has every price of every item.

    Examples:

        holdfast sim shop --items 10000 --rate 50

        holdfast sim shop --fault lost_after:share=0.05,seed=7 --fault rate_limited:count=3,retry_after=2
    """
    from holdfast.sim.catalogue import ShopLog
    from holdfast.sim.faults import Faults, read_fault
    from holdfast.sim.serve import serve
    from holdfast.sim.shop import Shop

    faults = Faults(read_fault(each) for each in fault or ())
    written = ShopLog(log)

    def announce(url: str) -> None:
        if as_json:
            data_line({"url": url, "items": items, "log": str(log)})
        else:
            data(f"simulated shop with {items} items at {url}; it logs to {log}")
            sys.stdout.flush()  # somebody may wait for the address

    try:
        serve(Shop(items, written, faults=faults, compares=not is_blind, rate=rate, token=token), port, announce)
    finally:
        written.close()
