"""`traffic erase`: deletes visits of one organization permanently."""

import re
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.clock import to_text
from service.core.commands.confirmation import ask, check_can_ask
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, day_of, open_lake
from service.core.commands.printing import inform, printable, progress_bar
from service.core.control_database import ControlDatabase

if TYPE_CHECKING:
    from data.manifest.files import LandedFile
    from data.publish.publisher import FollowedCopy
    from data.tasks.erasure import Criteria, Eraser, ErasureResult
    from service.jobs.erasure import ErasedEvidence

NOT_REACHED: Final = (
    "This covers the lake's folder, but not backups and snapshots of it, web server logs, imported log files, "
    "or answers already sent."
)
LOG_WAIT_SECONDS: Final = 600


def erase(
    organization: OrganizationOption,
    short_code: Annotated[str | None, typer.Option(help="only visits to this short code")] = None,
    domain: Annotated[str | None, typer.Option(help="only visits to this domain")] = None,
    no_domain: Annotated[bool, typer.Option("--no-domain", help="only visits without a domain")] = False,
    since: Annotated[str | None, typer.Option(help="only visits on this day and later, YYYY-MM-DD")] = None,
    before: Annotated[str | None, typer.Option(help="only visits before this day, YYYY-MM-DD")] = None,
    visitor: Annotated[str | None, typer.Option(help="only visits with this visitor hash, decimal or 0x…")] = None,
    everything: Annotated[bool, typer.Option("--all", help="every visit of the organization")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would be deleted, but change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="delete without asking")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Delete the visits that match all given criteria, and print a receipt as JSON.

    The visits stop counting immediately, even in a running server; seconds later, their files are deleted, too. Their
    logs still count as imported, so only `traffic import --again` restores the visits. The evidence for jobs about such
    visits is deleted with them, except with --visitor, because evidence names no visitors. Published copies are updated
    before the receipt is printed; if a copy cannot be reached, the receipt says so and the exit code is 1.

    Example: traffic erase --org acme --domain old.example --before 2026-01-01 --dry-run
    """
    from data.publish.publisher import follow_erasures
    from data.tasks.erasure import Eraser

    flags = {"--short-code": short_code, "--domain": domain, "--no-domain": "yes" if no_domain else None,
             "--since": since, "--before": before, "--visitor": visitor}  # fmt: skip
    criteria = _criteria(flags, everything)
    check_can_ask(yes, dry_run)
    opened = open_lake(lake, organization, must_write=not dry_run)
    eraser = Eraser(opened)
    if dry_run or not yes:
        planned = _run(eraser, organization, criteria, dry_run=True)
        files = plural(len(planned.before), "file")
        inform(f"{_summary(planned)} would be deleted, in {files}. This cannot be undone.")
        if dry_run:
            _print_receipt(planned, _erase_evidence(opened, organization, criteria, dry_run=True), None)
            return
        ask("Delete them?")
    erased = _run(eraser, organization, criteria)
    inform(f"Removed {_summary(erased)} from all answers.")
    evidence = _erase_evidence(opened, organization, criteria)
    followed = follow_erasures(opened, organization)
    finish(opened, erased.dead, erased.ended_at)
    _print_receipt(erased, evidence, datetime.now(UTC), followed)
    report_due(followed)


def report_due(followed: "Collection[FollowedCopy]") -> None:
    """Report copies that may still contain deleted visits, and exit with code 1 if there are any."""
    due = [copy for copy in followed if copy.problem]
    for copy in due:
        problem = printable(f"Visits not yet erased at {copy.target} for {copy.organization}: {copy.problem}")
        inform(f"{problem} A running server retries, and so does `traffic publish`.")
    if due:
        raise typer.Exit(1)


def finish(lake: Lake, dead: Collection[str], ended_at: datetime) -> None:
    """Delete replaced files once no query can be reading them, and truncate the manifest's WAL. Raises FilesInUse."""
    from data.tasks.erasure import GRACE, FilesInUse, delete_files

    if dead:
        seconds = round(GRACE.total_seconds())
        inform(f"Deleting the files in {seconds} s, once no query reads them.")
        with progress_bar("Waiting") as progress:
            for second in range(seconds):
                time.sleep(1)
                progress(second + 1, seconds)
    delete_files(lake, dead, ended_at)
    for second in range(LOG_WAIT_SECONDS):
        if lake.manifest.shrink():
            return
        if not second:
            inform("The files are deleted; waiting for a process that is reading manifest.sqlite, such as a backup.")
        time.sleep(1)
    raise FilesInUse(
        "the files are deleted, but a process is still reading manifest.sqlite, whose log may still contain erased "
        "data; stop that process, then run this command again."
    )


def _criteria(flags: Mapping[str, str | None], everything: bool) -> "Criteria":
    """Return the criteria given by the flags. Raises BadInput."""
    from data.tasks.erasure import Criteria

    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        if not value:  # such as from an unset shell variable: it would delete more than intended
            raise BadInput(f"{name} is empty.")
    if everything and given:
        raise BadInput(f"--all deletes every visit; remove --all or {' and '.join(given)}.")
    if not everything and not given:
        raise BadInput(f"choose what to delete: {', '.join(flags)}, or --all.")
    if {"--domain", "--no-domain"} <= given.keys():
        raise BadInput("--domain and --no-domain exclude each other.")
    visitor, text = None, given.get("--visitor", "")
    if re.fullmatch(r"0x[0-9a-f]{1,16}", text, re.IGNORECASE):  # its bits
        visitor = int.from_bytes(int(text, 16).to_bytes(8), signed=True)
    elif re.fullmatch(r"-?\d{1,19}", text, re.ASCII) and -(1 << 63) <= int(text) < 1 << 63:
        visitor = int(text)
    elif text:
        must = "it must be a signed 64-bit number, like -42, or its bits, like 0x2a"
        raise BadInput(f"--visitor is {text!r}; {must}.")
    since, before = (day_of(name, given[name]) if name in given else None for name in ("--since", "--before"))
    is_without = True if "--no-domain" in given else None
    return Criteria(given.get("--short-code"), given.get("--domain"), is_without, visitor, since, before)


def _run(eraser: "Eraser", organization: str, criteria: "Criteria", dry_run: bool = False) -> "ErasureResult":
    with progress_bar("Looking" if dry_run else "Erasing") as progress:
        return eraser.run(organization, criteria, dry_run, progress)


def _erase_evidence(lake: Lake, organization: str, criteria: "Criteria", dry_run: bool = False) -> "ErasedEvidence":
    from service.jobs.erasure import erase_evidence

    with closing(ControlDatabase(lake)) as control:
        return erase_evidence(control, organization, criteria, datetime.now(UTC), dry_run=dry_run)


def _summary(erased: "ErasureResult") -> str:
    return f"{plural(erased.visits, 'stored visit')} of {erased.organization} on {plural(erased.partitions, 'day')}"


def _print_receipt(
    erased: "ErasureResult",
    evidence: "ErasedEvidence",
    erased_at: datetime | None,
    followed: "Collection[FollowedCopy]" = (),
) -> None:
    import orjson

    given = {name: value for name, value in erased.criteria._asdict().items() if value is not None}
    if "visitor" in given:
        given["visitor"] = str(given["visitor"])  # many JSON readers do not support 64-bit integers
    copies = [
        {"target": one.target, "done": not one.problem} | ({"problem": one.problem} if one.problem else {})
        for one in followed
    ]
    receipt = {
        "organization": erased.organization,
        "criteria": given or {"all": True},
        "dry_run": erased_at is None,
        "erased_at": erased_at and to_text(erased_at),
        "visits": erased.visits,
        **({"unknown_visits": erased.unknown_visits} if erased.unknown_visits else {}),
        "partitions": erased.partitions,
        "files": {"before": _files_of(erased.before), "after": _files_of(erased.after)},
        "jobs": asdict(evidence),
        **({"copies": copies} if copies else {}),
        "not_reached": NOT_REACHED,
    }
    typer.echo(orjson.dumps(receipt))


def _files_of(files: list["LandedFile"]) -> list[dict[str, Any]]:
    return [{"path": file.path, "sha256": file.sha256, "visits": file.visits} for file in files]
