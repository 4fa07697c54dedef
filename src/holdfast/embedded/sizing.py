"""The server's settings, sized to the machine that it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

MB = 1024 * 1024
GB = 1024 * MB
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Machine:
    """The machine's resources, in bytes."""

    memory: int
    free_disk: int


def machine(folder: Path) -> Machine:
    """Return the machine's resources, or the part that our control group may use."""
    own_groups = Path("/proc/self/cgroup")
    limits = memory_limits(own_groups.read_text() if own_groups.exists() else "", CGROUPS)
    return Machine(
        memory=min([psutil.virtual_memory().total, *limits]),
        free_disk=psutil.disk_usage(str(folder)).free,
    )


def memory_limits(own_groups: str, root: Path) -> list[int]:
    """Read the limits that apply to us: those of our control group and its ancestors."""
    sizes = []
    for line in own_groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", "memory"}:
            continue
        base, name = (root, "memory.max") if controllers == "" else (root / "memory", "memory.limit_in_bytes")
        group = Path(path.lstrip("/"))
        # In a container the path is the host's, and the folder at the root is ours.
        for folder in (group, *group.parents):
            limit = base / folder / name
            if limit.is_file() and (text := limit.read_text().strip()).isdigit():
                sizes.append(int(text))
    return sizes


def settings(machine: Machine) -> dict[str, str]:
    """Choose every setting that differs from PostgreSQL's own defaults."""
    return _sizes(machine) | BEHAVIOUR | LOGGING


def written(settings: dict[str, str]) -> str:
    """Format settings as PostgreSQL reads them."""
    head = (
        "# Rewritten at each start of the embedded PostgreSQL, sized to the machine.\n"
        "# Put your own settings in postgresql.conf, below its include, or use ALTER SYSTEM.\n"
    )
    return head + "".join(f"{name} = '{value}'\n" for name, value in settings.items())


def _sizes(machine: Machine) -> dict[str, str]:
    def share(part: int, low: int, high: int) -> str:
        return f"{min(max(machine.memory // part, low), high) // MB}MB"

    wal = min(max(machine.free_disk // 10, 256 * MB), 4 * GB)
    return {
        "shared_buffers": share(8, 128 * MB, 1 * GB),
        "effective_cache_size": share(2, 256 * MB, 1024 * GB),
        "work_mem": share(1024, 4 * MB, 32 * MB),
        "maintenance_work_mem": share(32, 64 * MB, 512 * MB),
        "max_wal_size": f"{wal // MB}MB",
        "min_wal_size": f"{min(wal, 512 * MB) // MB}MB",
    }


BEHAVIOUR = {
    "listen_addresses": "",  # the socket only
    "max_connections": "200",
    "fsync": "on",
    "synchronous_commit": "on",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    # The login has the same name as our schema: with the default, "$user" first, its own tables would land among ours.
    "search_path": "public",
    # Notice a lost worker, and do not let a forgotten transaction hold back vacuum forever.
    "client_connection_check_interval": "10s",
    "idle_in_transaction_session_timeout": "15min",
    # Queue tables change fast: vacuum little and often.
    "autovacuum_naptime": "15s",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_vacuum_cost_limit": "2000",
    "timezone": "UTC",
    "lc_messages": "C",
}

LOGGING = {
    "logging_collector": "on",
    "log_directory": "../log",
    "log_filename": "server-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",  # after a week each day's file is overwritten
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
    "log_lock_waits": "on",
    # Statements and details contain users' data, which must not be logged.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
