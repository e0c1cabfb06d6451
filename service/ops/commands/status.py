"""`traffic status`: prints the contents and the state of a lake."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from data import Lake
from data.text import plural
from service.core.clock import to_text
from service.core.commands.answers import check_format
from service.core.commands.options import DEFAULT_LAKE, LakeOption
from service.core.commands.printing import console, pasteable, printable

if TYPE_CHECKING:
    from data.manifest.copies import Copy
    from data.manifest.statistics import OrganizationStatus
    from data.store.status import LakeStatus

    JobCounts = dict[str, dict[str, int]]


class SetAside(NamedTuple):
    """The reasons why an organization's answers leave visits out."""

    files_aside: bool  # whether requests for files are left out
    exclusions: int  # rules of `traffic exclude`

    @property
    def reasons(self) -> str:
        """The reasons in words; "" if nothing is set aside."""
        rules = plural(self.exclusions, "rule") if self.exclusions else ""
        return " and ".join(filter(None, ("files" if self.files_aside else "", rules)))


_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def status(
    output: Annotated[str, typer.Option("--format", help="table or json")] = "table", lake: LakeOption = DEFAULT_LAKE
) -> None:
    """Print the files and stored visits of each organization, pending visits, and when files were last checked.

    If an organization sets visits aside, its answers count fewer visits than are stored; the line "set aside" says why.

    Example: traffic status --format json
    """
    from data.store.status import status_of
    from service.core.control_database import read_control
    from service.jobs.tables import count_by_status

    check_format(output, ("table", "json"))
    opened, now = Lake(lake, must_write=False), datetime.now(UTC)
    with closing(opened.manifest), read_control(opened) as control:
        lake_status, jobs = status_of(opened, now), count_by_status(control) if control else {}
        published = opened.manifest.copies.find()
        aside = {name: _choices_of(opened, name) for name in lake_status.organizations}
    if output == "json":
        from service.core.encoding import encode

        organizations = [
            {"organization": name, **asdict(data), **aside[name]._asdict()}
            for name, data in lake_status.organizations.items()
        ]
        members = {"organizations": organizations, "copies": [copy._asdict() for copy in published], "jobs": jobs}
        typer.echo(encode({"lake": str(opened.root), **asdict(lake_status), **members}))
    else:
        from rich.filesize import decimal
        from rich.table import Table

        texts = ("organization", "first visit", "last visit")
        table = Table(box=None)
        for name in (
            "organization", "files", "stored visits", "counted", "bytes", "first visit", "last visit", "open",
            "unmerged", "unjudged", "pending",
        ):  # fmt: skip
            table.add_column(name, justify="left" if name in texts else "right")
        for name, data in (*lake_status.organizations.items(), ("(total)", lake_status.total)):
            since = f" ({_age(data.oldest_pending_at, now)})" if data.oldest_pending_at else ""
            table.add_row(
                printable(name), f"{data.files:,}", f"{data.visits:,}", _counted(data), decimal(data.bytes),
                _moment(data.first_visit_at, data.first_day), _moment(data.last_visit_at, data.last_day),
                f"{data.open_files:,}", f"{data.unmerged_days:,}", f"{data.unjudged_days:,}",
                f"{data.pending_visits:,}{since}",
            )  # fmt: skip
        console().print(table)
        _print_lake(opened, lake_status, aside, jobs, published, now)


def _choices_of(lake: Lake, organization: str) -> SetAside:
    exclusions = lake.manifest.exclusions
    return SetAside(exclusions.are_files_aside(organization), len(exclusions.rules(organization)))


def _print_lake(
    lake: Lake,
    status: "LakeStatus",
    aside: Mapping[str, SetAside],
    jobs: "JobCounts",
    published: "Sequence[Copy]",
    now: datetime,
) -> None:
    from rich.filesize import decimal
    from rich.table import Table

    totals = sum(map(Counter, jobs.values()), Counter[str]())
    by_status = ", ".join(f"{count:,} {status}" for status, count in sorted(totals.items()))
    copies = []
    for target, found in groupby(published, lambda copy: copy.target):
        each = list(found)
        oldest = min((copy.published_at for copy in each if copy.published_at), default=None)
        erased = [copy.due_since for copy in each if copy.due_since]
        warning = f"; may hold visits erased {_age(min(erased), now)}: run `traffic publish`" if erased else ""
        until = max((copy.settles_at for copy in each if copy.settles_at), default=None)
        warning += f"; an interrupted upload may still appear until {to_text(until)}" if until else ""
        problem = next((printable(copy.problem) for copy in each if copy.problem), "")
        warning += f"; last publication failed: {problem}" if problem else ""
        whole = f"{plural(len(each), 'organization')}, last complete copy: {_age(oldest, now)}{warning}"
        copies.append((f"copy at {printable(target)}", pasteable(whole)))
    due = "; older rules classified some visits: run `traffic reclassify`" if status.reclassify_due else ""
    set_aside = ", ".join(f"{name}: {reasons}" for name, of_name in aside.items() if (reasons := of_name.reasons))
    table = Table(box=None, show_header=False)
    for row in (
        ("lake", printable(str(lake.root))),
        ("manifest", pasteable(printable(status.manifest_problem)) or f"version {status.manifest_version}"),
        ("to be deleted", f"{plural(status.dead_files, 'file')} ({decimal(status.dead_bytes)})"),
        ("set aside", printable(set_aside) or "nothing"),
        ("oldest check of a file", _age(status.oldest_check_at, now)),
        ("oldest salt", _age(status.oldest_salt_at, now) if status.oldest_salt_at else "none"),
        ("agents refreshed", _age(status.agents_refreshed_at, now)),
        *copies,
        ("jobs", printable(by_status) or "none"),
        ("names", printable(status.names)),
        ("rules", pasteable(f"{status.rules_version}{due}")),
    ):
        table.add_row(*row)
    if outdated := status.total.outdated_days:
        judged = f"{plural(outdated, 'day')} judged by an earlier version; a server judges them again, or "
        table.add_row("signals", pasteable(f"{judged}`traffic behaviour rejudge`"))
    if status.clock_was_at:
        was = f"was ahead: times up to {_moment(status.clock_was_at, None)} were recorded; they count as old"
        table.add_row("clock", was)
    console().print(table)


def _counted(data: "OrganizationStatus") -> str:
    return "unknown" if data.counted_visits is None else f"{data.counted_visits:,}"


def _moment(moment: datetime | None, day: object) -> str:
    return to_text(moment) if moment else str(day or "")


def _age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a time was, in seconds or the largest unit with a count of at least 2; "never" for None."""
    if moment is None:
        return "never"
    seconds = max(0, int((now - moment).total_seconds()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 2 * size), _UNITS[-1])
    return f"{plural(seconds // size, unit)} ago"
