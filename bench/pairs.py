"""Compare this tree with an earlier commit: both measured in turns, and their ratios taken inside each pair.

    .venv/bin/python bench/pairs.py 8172e40                       drain, seven pairs
    .venv/bin/python bench/pairs.py HEAD~3 --only diamonds --pairs 5

The commit is checked out and installed in a folder of its own. Which of the two comes first alternates from pair to
pair, because a machine often slows down or speeds up during a pair.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import home

Figures = dict[str, float]  # by what was measured


def main() -> None:
    """Measure the pairs and print the median of each ratio, now to before, with its range."""
    options = arguments()
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    with checked_out(options.commit) as earlier:
        for number in range(options.pairs):
            trees = [home.ROOT, earlier] if number % 2 else [earlier, home.ROOT]
            measured = {tree: figures(tree, options.only, options.tasks) for tree in trees}
            for what, value in measured[home.ROOT].items():
                if what in measured[earlier]:
                    ratios[what].append(value / measured[earlier][what])
                    print(f"pair {number + 1}: {what}: {ratios[what][-1]:.3f}", file=sys.stderr, flush=True)
    print("\n".join(summary(options.only, options.commit, ratios)))


def summary(section: str, commit: str, ratios: Mapping[str, list[float]]) -> list[str]:
    """Return one line per reading: the median of its ratios, and their range."""
    return [
        f"{section}, {what}: median {statistics.median(values):.3f} of {commit} ({min(values):.3f} to {max(values):.3f})"
        for what, values in ratios.items()
    ]


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out in a folder of its own, and remove that afterwards."""
    with folder() as above:
        tree = above / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(tree), commit], cwd=home.ROOT, check=True)
        try:
            subprocess.run([".ci/venv", sys.executable], cwd=tree, check=True)
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=home.ROOT, check=True)


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder with a short path that the server's own user can reach."""
    with tempfile.TemporaryDirectory(prefix="hf-pairs-", dir="/tmp") as made:
        Path(made).chmod(0o711)
        yield Path(made)


def figures(tree: Path, section: str, tasks: int | None) -> Figures:
    """Run one section of one tree for one round, with its own code and bench."""
    with folder() as above:
        results = above / "results"
        results.mkdir()
        command = [str(tree / ".venv/bin/python"), str(tree / "bench/run.py"), "--only", section, "--rounds", "1"]
        command += ["--engines", "holdfast", "--results", str(results), *(["--tasks", str(tasks)] if tasks else [])]
        environment = {**os.environ, "BENCH_HOME": str(above)}
        ran = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"the bench of {tree} failed:\n{ran.stderr}")
        rows = json.loads((results / f"{section}.json").read_text())["readings"]
    return {row["what"]: row["value"] for row in rows if row["engine"] == "holdfast"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--only", default="drain", help="the section to measure (drain)")
    parser.add_argument("--pairs", type=int, default=7, help="how many pairs (7)")
    parser.add_argument("--tasks", type=int, help="tasks of a drain, in place of the section's own")
    return parser.parse_args()


if __name__ == "__main__":
    main()
