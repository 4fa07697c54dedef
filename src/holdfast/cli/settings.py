"""The settings as commands read them: what is odd about them is said on stderr."""

from __future__ import annotations

import warnings

from holdfast import config
from holdfast.cli.render import say


def load() -> config.Config:
    """Read HOLDFAST_*, and say which of them mean nothing."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        settings = config.load()
    for warning in found:
        say(f"warning: {warning.message}")
    return settings
