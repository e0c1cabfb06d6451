"""`traffic jobs redirect`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from service.commands.answers import print_answer
from service.commands.job_options import JobArgument, NoteOption, opened_jobs, opened_warehouse
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import printable


def redirect(
    job_id: JobArgument,
    target_url: Annotated[str, typer.Argument(metavar="[URL]", help="where its path is to lead")] = "",
    note: NoteOption = None,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Redirect the path of an approved job to a URL; without one, print guesses: links and paths spelled like it.

    A short code becomes a link at once. `traffic links export` has any other path once the redirect is shipped.

    Example: traffic jobs redirect job_0123456789abcdef0123 https://example.com/guide
    """
    from msgspec import structs

    from service.jobs.implementations import Draft
    from service.jobs.records import COMMAND_LINE
    from service.jobs.redirects import redirect_guesses

    now = datetime.now(UTC)
    with opened_jobs(lake) as jobs:
        organization = jobs.organization_of(job_id)
        if target_url:
            draft = Draft("patch", redirect_to=target_url, note=note)
            added = jobs.attach(organization, job_id, draft, COMMAND_LINE, now)
            typer.echo(f"{job_id} has implementation {added.number}: {printable(added.content or '')}", err=True)
            return
        job = jobs.job(organization, job_id)
    with opened_warehouse(lake, organization) as (_, warehouse, opened):
        found = redirect_guesses(warehouse, job, opened.manifest.today(organization, now))
    if found:
        print_answer([structs.asdict(guess) for guess in found], "table")
    else:
        typer.echo("No link or path is spelled like it.", err=True)
