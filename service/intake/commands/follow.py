"""`traffic follow`: imports a growing log, or the objects of a folder or bucket, continuously."""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import SHORT_CODE_PATTERN, BadInput, Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, flag
from service.core.commands.printing import messages
from service.core.settings import setting
from service.intake.commands.importing import (
    CapturesOption,
    ColumnsOption,
    DomainOption,
    FormatOption,
    LayoutOption,
    existing_database,
    importer_of,
    judge_past_days,
    options_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from data.ingest.drop_follower import DropFollower
    from data.ingest.dropped import Drop
    from data.ingest.follower import Follower, FollowTotals

STATUS_INTERVAL_SECONDS: Final = 60
"""Minimum time between two status lines when stderr is not a terminal."""


def follow(
    log: Annotated[
        str, typer.Argument(help="an uncompressed log that a server writes to, a folder, or s3://bucket/prefix")
    ],
    organization: OrganizationOption,
    domain: DomainOption = "",
    log_format: FormatOption = "auto",
    layout: LayoutOption = "",
    columns: ColumnsOption = "",
    captures: CapturesOption = "",
    short_code_pattern: Annotated[str, flag("short_code_pattern")] = SHORT_CODE_PATTERN,
    skip_assets: Annotated[bool, flag("skip_assets")] = False,
    every: Annotated[
        float, typer.Option(min=0.01, help="seconds between reads; for a bucket, 60 means fewer requests")
    ] = 10,
    once: Annotated[bool, typer.Option("--once", help="for a folder or bucket: read all objects, then exit")] = False,
    geoip: Annotated[str, flag("geoip")] = setting("geoip").default,
    trusted_proxies: Annotated[str, flag("trusted_proxies")] = setting("trusted_proxies").default,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Import a log from its beginning, then each new line, until Ctrl-C or SIGTERM.

    Every complete line is imported exactly once, even if the command is killed and restarted or the log is also
    imported with `traffic import`. The log may be rotated, by renaming or by copying and truncating;
    data/ingest/README.md describes two kinds of rotation that can lose or repeat lines. Files that were rotated since
    the last run, such as access.log.1 or access.log.2.gz in the same folder, are imported first; older files are
    ignored. The first run over a long log takes a while: a bar shows progress, and imported visits count immediately.

    In a folder or bucket, the content of each object (plain, .gz, .zst or .parquet) is imported once; if an object has
    grown, its new lines are imported. Nothing there is changed or deleted. A bucket needs the usual AWS variables.

    Example: traffic follow /var/log/nginx/access.log --org acme --domain go.example.com
    """
    from data.ingest.drop_follower import DropFollower
    from data.ingest.follower import Follower

    drop, console = _drop_of(log, once), messages()
    options = options_of(organization, domain, log_format, layout, columns, captures, short_code_pattern, skip_assets)
    database, proxies = existing_database(geoip), setting("trusted_proxies").read(trusted_proxies)
    opened = Lake(lake, create=True)
    importer = importer_of(opened, proxies, database)
    console.print(f"Lake: {opened.root}")
    status = _Status(console, log)

    def show(done: int, total: int) -> None:
        status.show(follower.totals, done, total)
        if drop:  # a pass over many objects may take hours; for a log, a report after each pass is enough
            status.report(follower.totals)

    follower: Follower | DropFollower
    if drop:
        follower = DropFollower(opened, importer, drop, options, notify=console.print, progress=show)
    else:
        follower = Follower(opened, importer, Path(log), options, notify=console.print, progress=show)
    with closing(follower), status.bar:
        _follow(follower, status, every, once)
    console.print(f"{log}: {_summary(follower.totals)}")
    if once:
        judge_past_days(opened, organization)
        raise typer.Exit(isinstance(follower, DropFollower) and follower.has_failed)


def _drop_of(log: str, once: bool) -> "Drop | None":
    """Return the folder or bucket to follow; None for a single log. Raises BadInput for a single log with `once`."""
    from data.ingest.dropped import open_drop

    is_drop = "://" in log or Path(log).is_dir()
    if once and not is_drop:
        raise BadInput("--once is for a folder or s3://bucket/prefix; read a log once with `traffic import`.")
    return open_drop(log) if is_drop else None


def _follow(follower: "Follower | DropFollower", status: "_Status", every: float, once: bool) -> None:
    """Read the log every `every` seconds until a signal arrives; then once more, to import the last complete lines.
    With `once`, read it a single time.
    """
    with _stopping(follower) as wakeup_pipe:
        while True:
            is_last = follower.is_stopping  # a signal during a tick ends it early, so another tick follows
            follower.tick()
            status.show(follower.totals, follower.totals.position, follower.totals.size)
            status.report(follower.totals)
            if is_last or once:
                return
            select.select([wakeup_pipe], [], [], every)


@contextmanager
def _stopping(follower: "Follower | DropFollower") -> Iterator[int]:
    """Let a first SIGINT or SIGTERM stop the follower; a second signal of the same kind has its usual effect.

    Yields a file descriptor that becomes readable when a signal arrives.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # required by signal.set_wakeup_fd

    def stop(number: int, _: FrameType | None) -> None:
        follower.is_stopping = True
        signal.signal(number, before[signal.Signals(number)])

    wakeup = signal.set_wakeup_fd(writer)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


class _Status:
    """The display of progress: a bar on a terminal, otherwise a line from time to time."""

    def __init__(self, console: "Console", log: str) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn())
        is_seen = console.is_terminal
        self.bar = Progress(*columns, console=console, transient=True, auto_refresh=False, disable=not is_seen)
        self._task = self.bar.add_task(log, total=None)
        self._console = console
        self._log = log
        self._name = log if "://" in log else Path(log).name
        self._lines_reported = 0
        self._reported_at = -float(STATUS_INTERVAL_SECONDS)

    def show(self, landed: "FollowTotals", done: int, total: int) -> None:
        """Update the bar, on a terminal."""
        last = f", last {landed.last_visit_at:%Y-%m-%d %H:%M:%S}" if landed.last_visit_at else ""
        text = f"{self._name}: {plural(landed.visits, 'visit')}{last}"
        self.bar.update(self._task, completed=done, total=total, description=text, refresh=True)

    def report(self, landed: "FollowTotals") -> None:
        """Print the number of imported visits if stderr is not a terminal, there are new lines, and the last status
        line is old enough.
        """
        now = time.monotonic()
        if (
            not self._console.is_terminal
            and landed.lines > self._lines_reported
            and now - self._reported_at >= STATUS_INTERVAL_SECONDS
        ):
            self._lines_reported, self._reported_at = landed.lines, now
            self._console.print(f"{self._log}: {_summary(landed)}")


def _summary(landed: "FollowTotals") -> str:
    last = f", the last at {landed.last_visit_at:%Y-%m-%d %H:%M:%S} UTC" if landed.last_visit_at else ""
    text = f"{plural(landed.visits, 'visit')} imported{last}; {landed.read}"
    if landed.rejected:
        text += f"; {plural(landed.rejected, 'line')} not read, noted in {landed.rejects_file}"
    if landed.invalid_domains:
        text += f"; {plural(landed.invalid_domains, 'visit')} with an invalid host"
    if landed.assets:
        text += f"; {plural(landed.assets, 'request')} for assets left out"
    return f"{text}."
