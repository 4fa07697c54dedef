"""A DSN as it may be shown, and as it is handed to psql."""

from __future__ import annotations

import re

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SECRETS = ("password", "sslpassword")
IN_URL = re.compile(r"(?<=:)[^:/?#]*(?=@)|(?<=[?&]password=)[^&]*|(?<=[?&]sslpassword=)[^&]*")


def masked(address: str) -> str:
    """Hide the passwords in a DSN, and leave all else as it was written."""
    hidden = dict.fromkeys((name for name in SECRETS if conninfo_to_dict(address).get(name)), "***")
    if not hidden:
        return address
    shown = IN_URL.sub("***", address) if "://" in address else ""
    found = conninfo_to_dict(shown)
    return shown if all(found.get(name) == "***" for name in hidden) else make_conninfo(address, **hidden)


def psql_call(address: str) -> tuple[list[str], dict[str, str]]:
    """Give psql's arguments and environment: all users see the first, so a password goes into the second."""
    parts = conninfo_to_dict(address)
    password = parts.pop("password", None)
    return [make_conninfo("", **parts)], {} if password is None else {"PGPASSWORD": str(password)}
