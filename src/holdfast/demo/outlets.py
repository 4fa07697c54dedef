"""The demo's outlet: a simulated shop over HTTP as a channel, whose address a worker reads from its environment."""

from __future__ import annotations

import os

from holdfast.app import Holdfast
from holdfast.demo.tasks import hf
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.selectors import everything
from holdfast.rules.language.transforms import percent

CHANNEL, URL = "DEMO_OUTLET", "DEMO_OUTLET_URL"  # variables: the channel's name and the shop's address
BATCH = 10
SALE = Rule("demo-outlet", where=everything, change=percent(-20))


def register(app: Holdfast, channel: str, url: str) -> None:
    """Add the outlet to an app. One call at a time: no other call is under way when the shop answers 429."""
    from holdfast.rules.http import HttpChannel  # needs the extra `http`

    app.rules.channel(channel, HttpChannel(url), batch=BATCH, concurrency=1)


if URL in os.environ:
    register(hf, os.environ[CHANNEL], os.environ[URL])
