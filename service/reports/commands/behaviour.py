"""`traffic behaviour`: shows the signals of judged days, and switches whether answers use them."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from data import Lake
from data.text import plural
from service.core.commands.answers import print_answer
from service.core.commands.filters import WithParameters
from service.core.commands.options import (
    DEFAULT_LAKE,
    FormatOption,
    LakeOption,
    OnlyOrganizationOption,
    OrganizationOption,
    chosen_organizations,
    open_lake,
)
from service.core.commands.printing import inform, print_rows, progress_bar

app = typer.Typer(help="Show bots in disguise, and choose whether they count as bots.", rich_markup_mode=None)


@app.command("on")
def switch_on(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Count visits as bot visits if the visitor's whole day shows that they are automated. This is the default.

    Example: traffic behaviour on --org acme
    """
    _switch(lake, organization, on=True)


@app.command("off")
def switch_off(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Classify each visit by its own request alone, ignoring the whole day. Stored visits do not change.

    Example: traffic behaviour off --org acme
    """
    _switch(lake, organization, on=False)


@app.command("rejudge")
def rejudge(
    organization: OnlyOrganizationOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would change, but change nothing")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Judge past days that an earlier version of this program judged, or that are not judged yet. A running server does
    this automatically.

    If the command is interrupted, run it again to continue. The answers for a day change once the day is judged.

    Example: traffic behaviour rejudge --dry-run
    """
    from data.tasks.compaction import COMMAND_THREADS, Compactor
    from data.tasks.rejudging import compare_judgements

    opened = Lake(lake, must_write=not dry_run)
    for name in chosen_organizations(opened, organization):
        if dry_run:
            with progress_bar(f"Judging {name}") as progress:
                found = compare_judgements(opened, name, progress=progress)
            inform(f"{name}: {plural(found.days, 'day')} would be judged again.")
            if found.days:
                rows = [(name, f"{before:,}", f"{after:,}") for name, before, after in found.by_signal()]
                print_rows(("signal", "visits before", "after"), rows)
            continue
        with progress_bar(f"Judging {name}") as progress:
            compactor = Compactor(opened, threads=COMMAND_THREADS)
            done = compactor.run(progress=progress, organization=name, are_past=True)
        inform(f"{name}: {plural(done.judged, 'past day')} judged.")


@app.command("explain", cls=WithParameters)
def explain(
    organization: OrganizationOption,
    context: typer.Context,
    output: FormatOption = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """For each signal, print how many visits imported as human have it, have only it, or have it and count as bots if
    behaviour is on.

    Example: traffic behaviour explain --org acme --range 7d
    """
    from data.manifest.behaviour import unjudged_days
    from data.signals import SIGNALS
    from data.sql import read_sql
    from queries import Reader

    parameters = {name: value for name, value in context.obj.items() if value}
    opened = open_lake(lake, organization)
    is_on = opened.manifest.behaviour.is_used(organization)
    unjudged = unjudged_days(opened.manifest.files.live(organization))
    with closing(Reader(opened)) as reader:
        rows = reader.sql(read_sql("service.reports", "behaviour"), organization=organization, **parameters).to_pylist()
    answer = []
    for signal in SIGNALS:
        having = [row for row in rows if row["signals"] & signal.bit]
        answer.append({
            "signal": signal.name,
            "visits": sum(row["visits"] for row in having),
            "alone": sum(row["visits"] for row in having if row["signals"] == signal.bit),
            "bots": sum(row["visits"] for row in having if row["is_convicted"]),
            "meaning": signal.meaning,
        })  # fmt: skip
    print_answer(answer, output)
    landed = sum(row["visits"] for row in rows)
    moved = sum(row["visits"] for row in rows if row["is_convicted"])
    waiting = sum(row["visits"] for row in rows if row["day"] in unjudged)
    verb, off = ("count", "") if is_on else ("would count", " Behaviour is off.")
    people = f"{plural(landed, 'visit')} imported as human; {moved:,} of them {verb} as bots"
    inform(f"{people}. On days that are not judged yet: {plural(waiting, 'visit')}.{off}")


def _switch(lake: Path, organization: str, *, on: bool) -> None:
    open_lake(lake, organization, must_write=True).manifest.behaviour.switch(organization, on=on)
    inform(f"Behaviour is {'on' if on else 'off'} for {organization}.")
