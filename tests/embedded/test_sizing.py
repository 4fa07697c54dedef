"""Settings sized to the machine: by plain numbers, and by the control groups of made-up machines."""

from __future__ import annotations

import pytest

from holdfast.embedded.sizing import GB, MB, Machine, memory_limits, settings, written


@pytest.mark.parametrize(
    ("memory", "shared_buffers", "work_mem"),
    [(256 * MB, "128MB", "4MB"), (4 * GB, "512MB", "4MB"), (24 * GB, "1024MB", "24MB"), (512 * GB, "1024MB", "32MB")],
)
def test_memory_is_shared_out_within_bounds(memory, shared_buffers, work_mem):
    chosen = settings(Machine(memory=memory, free_disk=100 * GB))

    assert (chosen["shared_buffers"], chosen["work_mem"]) == (shared_buffers, work_mem)


@pytest.mark.parametrize(("free", "size"), [(1 * GB, "256MB"), (20 * GB, "2048MB"), (900 * GB, "4096MB")])
def test_the_log_takes_a_tenth_of_the_free_disk_within_bounds(free, size):
    assert settings(Machine(memory=4 * GB, free_disk=free))["max_wal_size"] == size


def test_settings_are_written_one_a_line_and_quoted():
    assert written({"listen_addresses": "", "jit": "off"}).splitlines()[-2:] == ["listen_addresses = ''", "jit = 'off'"]


def test_the_limits_of_our_group_and_of_those_above_count(tmp_path):
    (tmp_path / "system" / "unit").mkdir(parents=True)
    (tmp_path / "system" / "memory.max").write_text("2000\n")
    (tmp_path / "system" / "unit" / "memory.max").write_text("max\n")

    assert memory_limits("0::/system/unit\n", tmp_path) == [2000]


def test_in_a_container_the_limit_lies_at_the_root(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")

    assert memory_limits("0::/docker/3fa9\n", tmp_path) == [1000]


def test_the_older_control_groups_are_read_too(tmp_path):
    (tmp_path / "memory" / "job").mkdir(parents=True)
    (tmp_path / "memory" / "job" / "memory.limit_in_bytes").write_text("3000\n")

    assert memory_limits("4:cpu:/\n3:memory:/job\n", tmp_path) == [3000]


def test_a_system_without_control_groups_has_no_limits(tmp_path):
    assert memory_limits("", tmp_path) == []
