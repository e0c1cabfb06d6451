"""Have two revisions live the same life at the same time, and print how they differ.

uv run python -m tests.twin --with REVISION

The other revision gets a git worktree with a separate environment. Both are used as black boxes: through commands,
HTTP and the files in a lake. The exit code is 1 if they differ, or if an entry in differences.toml matches nothing.
"""

import argparse
import difflib
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Barrier
from typing import Final

from tests.support.forks import ROOT
from tests.support.worktrees import worktree
from tests.twin.differences import Differences
from tests.twin.inputs import Inputs
from tests.twin.life import Life, Step
from tests.twin.masks import Clock, Masks
from tests.twin.script import CHAPTERS, chapters_to_live, live

MAX_SHOWN: Final = 20
"""Maximum number of steps whose differences are printed, and of lines printed for each step."""
MAX_LINES: Final = 40


def main() -> int:
    """Run the twin; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.twin", description=__doc__.split("\n")[0])
    parser.add_argument("--with", dest="revision", required=True, help="the other revision, such as main~3 or v1.0.0")
    parser.add_argument("--only", nargs="+", choices=CHAPTERS, default=[*CHAPTERS], help="chapters of the life")
    parser.add_argument("--keep", type=Path, help="folder that keeps both records and lakes, to look at later")
    chosen = parser.parse_args()
    clock = Clock.now()
    with tempfile.TemporaryDirectory(prefix="twin-") as scratch, worktree(chosen.revision, Path(scratch)) as other:
        home = chosen.keep or Path(scratch)
        logs = Inputs(home / "logs", clock)
        started = time.monotonic()
        streams = [stream for stream in chapters_to_live(chosen.only) if stream]
        meetings = [Barrier(2, until_early_in_a_minute) for _ in streams]
        lives = [
            (Life(tree, home / f"{name}-{stream[0]}", logs, clock, meeting), stream)
            for name, tree in (("life-a", other), ("life-b", ROOT))
            for stream, meeting in zip(streams, meetings, strict=True)
        ]
        with ThreadPoolExecutor(len(lives)) as pool:
            recorded = [*pool.map(lambda life: record(*life, Masks(clock)), lives)]
        records = [[*chain.from_iterable(part)] for part in (recorded[: len(streams)], recorded[len(streams) :])]
        print(f"{len(records[1])} steps in {time.monotonic() - started:.0f} s.")
        if chosen.keep:
            for name, steps in zip(("life-a", "life-b"), records, strict=True):
                (home / f"{name}.txt").write_text("".join(f"=== {step.label}\n{step.text}\n" for step in steps))
        return compare(*records)


def until_early_in_a_minute() -> None:
    """Sleep until the next minute, unless this minute has at least 15 seconds left."""
    if (second := time.time() % 60) > 45:
        time.sleep(60 - second)


def record(life: Life, chapters: Sequence[str], masks: Masks) -> list[Step]:
    """Live these chapters; return the masked steps."""
    live(life, chapters)
    return masks.record(life)


def compare(theirs: list[Step], ours: list[Step]) -> int:
    """Print the first differences in the order of the life; return the exit code."""
    differences = Differences.read()
    before, after = ({step.label: step.text for step in steps} for steps in (theirs, ours))
    labels = [step.label for step in ours] + [step.label for step in theirs if step.label not in after]
    found = [label for label in labels if differences.unexpected(label, before.get(label), after.get(label))]
    for label in found[:MAX_SHOWN]:
        print(f"\n=== {label}")
        lines = (before.get(label, "(no such step)"), after.get(label, "(no such step)"))
        shown = [*difflib.unified_diff(*(text.splitlines() for text in lines), "theirs", "ours", n=1, lineterm="")]
        print("\n".join(line[:400] for line in shown[:MAX_LINES]))
    unused = differences.unused()
    for entry in unused:
        print(f"\ndifferences.toml: {entry} matches nothing; remove it.")
    print(f"\n{len(found)} of {len(labels)} steps differ." if found else f"\nNo difference in {len(labels)} steps.")
    return 1 if found or unused else 0


if __name__ == "__main__":
    sys.exit(main())
