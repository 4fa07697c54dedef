"""An app with channels to one simulated shop, with all waits at a tenth of the usual ones."""

from __future__ import annotations

import os

from outlets_places import CHANNELS

from holdfast import Holdfast, RetryPolicy
from holdfast.rules.http import HttpChannel

hf = Holdfast()
for name in CHANNELS:
    hf.rules.channel(
        name,
        HttpChannel(os.environ["HOLDFAST_SHOP_URL"]),
        batch=10,
        request_timeout=1,
        target_timeout=20,
        retry=RetryPolicy(limit=4, base=0.2, growth=2, longest=6.4, jitter=0.2),
        rate_limit_retry=RetryPolicy(limit=4, base=1.6, growth=2, longest=6.4, jitter=0.2),
        breaker_for=6,
    )
