"""`traffic verify`: checks a lake for damaged files."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import Lake, LakeDamaged
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OnlyOrganizationOption, existing_organization
from service.core.commands.printing import inform, pasteable, printable, progress_bar

if TYPE_CHECKING:
    from data.recovery.verification import VerificationResult


def verify(
    organization: OnlyOrganizationOption = "",
    is_published: Annotated[
        bool, typer.Option("--published", help="also read every object in the published copies")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Verify the checksum of every live file, and check links, the implementations of jobs, and databases.

    Each damaged file is printed on a line with its problem; if there is any, the exit code is 1. Imports and queries
    may continue during the check.

    Example: traffic verify --org acme
    """
    from data.publish.verification import verify_copies
    from data.recovery.verification import DamagedFile, verify_lake
    from service.core.control_database import CONTROL, read_control
    from service.jobs.implementation_tables import damaged_contents

    try:
        opened = Lake(lake, must_write=False)
    except LakeDamaged as error:  # reported like any damaged file
        typer.echo(pasteable(printable(str(error))))
        raise LakeDamaged(
            "without the manifest, nothing can be checked: run `traffic rebuild`, or restore the lake from a backup."
        ) from error
    with closing(opened.manifest):
        if organization:
            existing_organization(opened, organization)
        with progress_bar("Verifying", is_bytes=True) as progress:
            result = verify_lake(opened, organization, progress)
        if not any(finding.path == CONTROL for finding in result.findings):
            with read_control(opened) as control:
                damaged = damaged_contents(control) if control else []
            result.findings += [DamagedFile(CONTROL, reason) for reason in damaged]
        at_copies = [*verify_copies(opened, organization)] if is_published else []
    for path, reason in (*result.findings, *at_copies):
        typer.echo(pasteable(printable(f"{path}: {reason}")))
    _print_summary(result)
    if at_copies:
        inform(f"{plural(len(at_copies), 'problem')} with published copies; each line above ends with a remedy.")
    if result.findings or at_copies:
        raise typer.Exit(1)


_ABSENT: Final = {
    "control.sqlite": "control.sqlite is missing: if the lake had API keys, jobs or hooks, copy it from a backup.",
    "salts.sqlite": "salts.sqlite is missing: visitors of the last 48 hours count again, as after restoring a backup.",
}


def _print_summary(result: "VerificationResult") -> None:
    from rich.filesize import decimal

    summary = (
        f"{plural(result.files, 'file')} with {plural(result.visits, 'visit')} ({decimal(result.size)}) were checked"
    )
    if result.is_manifest_damaged:
        fix = "run `traffic rebuild`, or restore the whole lake from a backup"
        inform(f"{summary}; without its manifest the lake is unusable: {fix}.")
    elif result.findings:
        fix = "restore the files named above from a backup, each to the same path"
        inform(f"{summary}; {len(result.findings):,} are damaged: {fix}.")
    else:
        sound = "links and databases" if not result.absent else "links, and the databases that exist,"
        inform(f"{summary}: no damage found; {sound} are sound.")
        for name in result.absent:
            inform(_ABSENT[name])
    if result.unknown:
        inform(
            f"{plural(result.unknown, 'visit file')} not in the manifest, in visits/ or unknown/: no query reads them. "
            "`traffic rebuild` creates a manifest that counts them, `traffic rebuild --discard-unknown` lists and "
            "deletes them."
        )
