"""Runs both trees on the same logs, as black boxes used only through their commands and over HTTP."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.importing import Ran, run
from benchmarks.made import ORGANIZATION
from benchmarks.paired.ratios import SLOWER, Comparison, comparison, is_slower
from benchmarks.servers import key_of, server

DOMAIN: Final = "go.example.com"
_FACTORS: Final = {"s": 1, "ms": 1000}


@dataclass(frozen=True)
class Side:
    """One of the two source trees, and a folder for its files."""

    name: str
    traffic: Path
    """The program in the environment of the tree."""
    home: Path

    def run(self, lake: Path, *words: str, until: str = "") -> Ran:
        """Run a command on a lake, to its end or until it writes a line that contains `until`.

        Raises CalledProcessError if it fails, or ends without such a line.
        """
        return run([str(self.traffic), *words, "--lake", str(lake)], until)

    def import_log(self, lake: Path, log: Path, organization: str = ORGANIZATION) -> Ran:
        """Import a log, and judge its days."""
        return self.run(lake, "import", str(log), "--org", organization, "--domain", DOMAIN)

    def lake(self, log: Path, organizations: Sequence[str] = (ORGANIZATION,)) -> Path:
        """Return a compacted lake with the log imported for each organization; it is built once, and must be copied
        before changes.
        """
        root = self.home / "-".join(["lake", log.stem, *organizations])
        if not root.exists():
            for organization in organizations:
                self.import_log(root, log, organization)
            self.run(root, "compact")
        return root

    def copy_of(self, lake: Path) -> Path:
        """Return a copy of a lake, which replaces the previous copy."""
        copy = self.fresh("copy")
        shutil.copytree(lake, copy)
        return copy

    def fresh(self, name: str) -> Path:
        """Delete the folder of this name, if it exists, and return its path."""
        path = self.home / name
        shutil.rmtree(path, ignore_errors=True)
        return path


@dataclass(frozen=True)
class Address:
    """A running server: its process, its port, and a key for requests."""

    pid: int
    port: int
    key: str


@dataclass(frozen=True)
class Trial:
    """The inputs of a case: both sides, the log to import, and the number of pairs that count."""

    ours: Side
    theirs: Side
    log: Path
    scratch: Path
    pairs: int
    progress: Callable[[str], None]

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides."""
        return self.ours, self.theirs

    def compare(
        self, note: str, unit: str, measure: Callable[[Side, int], Mapping[str, float]], times: int = 1
    ) -> Iterator[Comparison]:
        """Measure both sides in pairs; if a measure is slower, measure all again, and use the second comparison for it.

        `measure` is called with a side and the number of the pair, and returns seconds by name. For short cases,
        `times` multiplies the number of pairs, since a single short pair is noisy on a busy machine.
        """
        pairs = times * self.pairs
        found = self._round(note, unit, measure, range(pairs + 1))
        if is_slower(found.values()):
            again = self._round(f"{note}, again", unit, measure, range(pairs + 1, 2 * (pairs + 1)))
            found |= {name: one for name, one in again.items() if found[name].verdict == SLOWER}
        yield from found.values()

    def _round(
        self, note: str, unit: str, measure: Callable[[Side, int], Mapping[str, float]], numbers: range
    ) -> dict[str, Comparison]:
        """Measure the pairs with these numbers in alternating order; the first pair is a warm-up."""
        taken: dict[str, list[Mapping[str, float]]] = {side.name: [] for side in self.sides}
        for number in numbers:
            self.progress(f"{note}: pair {number - numbers.start} of {len(numbers) - 1}")
            for side in (self.theirs, self.ours) if number % 2 else self.sides:
                taken[side.name].append(measure(side, number))
        ours, theirs = taken[self.ours.name][1:], taken[self.theirs.name][1:]
        factor = _FACTORS[unit]
        return {
            name: comparison(name, unit, [factor * one[name] for one in ours], [factor * one[name] for one in theirs])
            for name in ours[0]
        }

    def compare_programs(self, name: str, program: Callable[[Side], Ran]) -> Iterator[Comparison]:
        """Compare whole processes by their duration and their processor time.

        Processor time depends less on the load of the machine, and excludes waiting.
        """

        def measure(side: Side, _: int) -> dict[str, float]:
            ran = program(side)
            return {name: ran.seconds, f"{name}, processors": ran.processor_seconds}

        yield from self.compare(name, "s", measure)

    @contextmanager
    def servers(self, lake_of: Callable[[Side], Path]) -> Iterator[dict[str, Address]]:
        """Run a server of each side on its lake, both at the same time; yield their addresses by side."""
        with ExitStack() as stack:
            addresses = {}
            for side in self.sides:
                lake = lake_of(side)
                key = key_of(lake, ORGANIZATION, side.traffic)
                port, process = stack.enter_context(server(lake, side.traffic))
                addresses[side.name] = Address(process.pid, port, key)
            yield addresses

    def halves(self) -> tuple[Path, Path]:
        """Return two logs with alternate lines of the log, so that both have visits on all days."""
        halves = self.scratch / "even.log", self.scratch / "odd.log"
        for first, half in enumerate(halves):
            if not half.exists():
                with self.log.open(encoding="utf-8") as lines:
                    half.write_text("".join(islice(lines, first, None, 2)), "utf-8")
        return halves
