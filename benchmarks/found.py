"""Measures the share of useful jobs among jobs from real logs: `uv run python -m benchmarks.found FOLDER`.

FOLDER contains clones of the repositories in found_logs.tsv, as FOLDER/owner/name. Their logs are read at the commits
listed there, and are imported, judged and searched for findings as of the day after their last day. A reader compared
findings with their logs: found_read.tsv records whether the site's owner would do something about each, and its cause.
Jobs are listed if their heaviest finding is not in that file.
"""

import csv
import gzip
import hashlib
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.figures import share_of
from data import Lake
from data.ingest.importer import Importer, Options
from data.tasks.compaction import Compactor
from queries import DETECTORS, Warehouse, days_before, detect, share_detected
from service.jobs.findings import Cause, causes_of

HERE: Final = Path(__file__).parent
LABELS: Final = ("useful", "doubtful", "misleading")
"""Useful: the finding is true, and the owner would do something about it. Misleading: the finding is false, or makes
the owner do something that does not help."""
UNREAD: Final = "unread"


class LogFile(NamedTuple):
    """A part of a log, in a repository."""

    log: str
    repository: str
    commit: str
    path: str
    domain: str  # the domain of all lines; "": each line names it
    sha256: str


class Reading(NamedTuple):
    """A reader's judgement of a finding."""

    log: str
    type: str
    subject: str
    label: str
    cause: str
    why: str


class FoundJob(NamedTuple):
    """A job created from a log, with the judgement of its heaviest finding."""

    log: str
    findings: int
    label: str
    cause: str
    title: str  # type and subject


def rows_of(name: str) -> Iterator[list[str]]:
    """Yield the rows of a table in this folder, without its header."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        yield from list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def content_of(file: LogFile, folder: Path) -> bytes | None:
    """Return the decompressed lines of a part of a log; None if the clone, its commit or the file is missing.

    Raises BadParameter if the file's SHA-256 differs from the recorded one.
    """
    clone = folder / file.repository
    if not clone.is_dir():
        return None
    shown = subprocess.run(["git", "-C", clone, "show", f"{file.commit}:{file.path}"], capture_output=True, check=False)
    if shown.returncode:
        return None
    if hashlib.sha256(shown.stdout).hexdigest() != file.sha256:
        raise typer.BadParameter(f"{clone}: {file.commit}:{file.path} does not match its recorded SHA-256.")
    return gzip.decompress(shown.stdout) if file.path.endswith(".gz") else shown.stdout


def causes_in(files: Mapping[LogFile, bytes], scratch: Path) -> list[Cause]:
    """Return the detectors' findings in a log as of the day after its last day, by cause."""
    with closing((lake := Lake(scratch / "lake", create=True)).manifest):
        importer = Importer(lake)
        for number, domain in enumerate(dict.fromkeys(file.domain for file in files)):  # faster than file by file
            parts = (content for file, content in files.items() if file.domain == domain)
            path = scratch / f"{number}.log"
            path.write_bytes(b"".join(parts))
            importer.run(path, Options("acme", domain=domain))
        Compactor(lake).run()
        as_of = max(file.day for file in lake.manifest.files.live("acme")) + timedelta(days=1)
        with closing(Warehouse(lake)) as warehouse:
            shared = share_detected(warehouse, "acme", as_of)
            return [
                cause
                for detector in DETECTORS.values()
                for cause in causes_of(
                    detector, detect(warehouse, detector, "acme", as_of, shared=shared), days_before(as_of)
                )
            ]


def subject_of(subject: Mapping[str, str | None]) -> str:
    """Return the subject of a finding in the form used in found_read.tsv."""
    return orjson.dumps([value for _, value in sorted(subject.items())]).decode()


def judged(log: str, causes: Sequence[Cause], readings: Mapping[tuple[str, str, str], Reading]) -> Iterator[FoundJob]:
    """Yield a job for each cause, with the judgement of its heaviest finding; an unread finding is its own cause."""
    for cause in causes:
        kind, subject = cause.kind.type, subject_of(cause.findings[0].subject)
        read = readings.get((log, kind, subject))
        title = f"{kind} {subject}"
        yield FoundJob(log, len(cause.findings), *((read.label, read.cause) if read else (UNREAD, title)), title)


def table_of(jobs: Sequence[FoundJob], logs: Sequence[str]) -> Table:
    """Return a table with one row for each log, and one row for all logs."""
    table = Table("log", "jobs", "findings", "causes", "useful", "doubtful", "misleading", UNREAD, "jobs per cause")
    for name in (*logs, "all"):
        mine = [job for job in jobs if name in {job.log, "all"}]
        labels, causes = Counter(job.label for job in mine), len({(job.log, job.cause) for job in mine})
        shares = [f"{share_of(labels[label], len(mine))[0]:.0f} %" if mine else "–" for label in LABELS]
        numbers = (len(mine), sum(job.findings for job in mine), causes)
        table.add_row(
            name, *map(str, numbers), *shares, str(labels[UNREAD]), f"{len(mine) / causes:.2f}" if causes else "–"
        )
    return table


def main(folder: Annotated[Path, typer.Argument(help="the folder of the clones")]) -> None:
    """Print the missing logs, a table of the jobs from all other logs, and the jobs that have not been read yet."""
    console, files = Console(width=140), [LogFile(*row) for row in rows_of("found_logs.tsv")]
    readings = {(one.log, one.type, one.subject): one for one in (Reading(*row) for row in rows_of("found_read.tsv"))}
    jobs: list[FoundJob] = []
    here: list[str] = []
    for log in dict.fromkeys(file.log for file in files):
        contents = {file: content_of(file, folder) for file in files if file.log == log}
        present = {file: content for file, content in contents.items() if content is not None}
        if len(present) < len(contents):
            file = next(iter(contents))
            console.print(f"missing: {log}; clone github.com/{file.repository} into {folder / file.repository}")
            continue
        here.append(log)
        with tempfile.TemporaryDirectory(prefix="traffic-found-") as scratch:
            jobs += judged(log, causes_in(present, Path(scratch)), readings)
    console.print(table_of(jobs, here))
    for job in jobs:
        if job.label == UNREAD:
            console.print(f"{UNREAD}: {job.log} {job.title}", markup=False)


if __name__ == "__main__":
    typer.run(main)
