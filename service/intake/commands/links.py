"""`traffic links`: imports, changes, lists and exports the target URLs of short codes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import BadInput, Lake, check_organization
from data.hosts import check_host
from data.text import plural
from service.core.clock import to_text
from service.core.commands.answers import print_csv
from service.core.commands.confirmation import ask, check_can_ask
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, created_lake, is_new
from service.core.commands.printing import inform, printable

if TYPE_CHECKING:
    from data.links.exports import LinkExport
    from data.links.links import Link, LinkChanges

MAX_SHOWN: Final = 10
"""Maximum number of links that a message names."""

app = typer.Typer(help="Import, change, list and export target URLs.", rich_markup_mode=None)


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV with the columns short_code and target_url, and optionally domain, created_at and tags; or an "
            "export from another service"
        ),
    ],
    organization: OrganizationOption,
    format_name: Annotated[
        str,
        typer.Option("--format", help="format: auto, csv, shlink, yourls, bitly, dub, kutt or rebrandly"),
    ] = "auto",
    columns: Annotated[
        str, typer.Option(help="the columns to read from a CSV, such as short_code=Slug,target_url=Long URL")
    ] = "",
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="leave out invalid links, and list them")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option(help="a tag for each of these links; may be repeated")] = None,
    tags_from_utm: Annotated[
        bool, typer.Option("--tags-from-utm", help="tag each of these links with the utm_campaign of its target")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="remove all links that are not in the file")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would change, but change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="with --replace: remove without asking")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Add the links in a file, and update links with the same short code and domain. Other links stay.

    With --replace, all other links are removed, after confirmation. If the file has tags, they replace a link's tags;
    otherwise its tags stay. --tag and --tags-from-utm add tags. Exports from Shlink, YOURLS, Bitly, Dub, Kutt and
    Rebrandly are recognized; for any other CSV, --columns names the columns to read.

    Example: traffic links import links.csv --org acme
    """
    from data.links.exports import read_export
    from data.links.links import change_links
    from data.links.tags import check_tags

    now = datetime.now(UTC)
    check_organization(organization)
    export = read_export(file, now, format_name=format_name, columns=columns, skip_invalid=skip_invalid)
    links, tags = export.links, check_tags(tag or (), "--tag")
    _tell_of_the_rest(file, export, replace)
    opened = Lake(lake, must_write=False) if dry_run and not is_new(lake) else created_lake(lake)
    added_tags = _tags_to_add(links, tags, tags_from_utm)
    change = partial(change_links, opened, organization, links, now, replace=replace, added_tags=added_tags)
    planned = change(dry_run=True)
    if dry_run:
        inform(f"{organization} would have {_summary(planned)}.")
        return
    if planned.removed and not yes:
        check_can_ask(yes)
        inform(f"{organization} would have {_summary(planned)}: {_names(planned.removed)}.")
        ask("Remove them?")
    changes = change()
    inform(f"{organization} now has {_summary(changes)}.")


@app.command("add")
def add(
    short_code: Annotated[str, typer.Argument(metavar="CODE", help="the short code")],
    target_url: Annotated[str, typer.Argument(metavar="URL", help="the target: an http or https URL")],
    organization: OrganizationOption,
    domain: Annotated[str, typer.Option(help="domain of the link; without it, the link is for every domain")] = "",
    tag: Annotated[
        list[str] | None, typer.Option(help="a tag; may be repeated; without any, the link keeps its tags")
    ] = None,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Add a link, or change its target or tags.

    Example: traffic links add launch https://example.com/launch --org acme --tag spring
    """
    from data.links.links import change_links, new_link

    now = datetime.now(UTC)
    link = new_link(short_code, domain, target_url, now, tag or None)
    check_organization(organization)
    changes = change_links(created_lake(lake), organization, [link], now)
    inform(f"{organization} now has {_summary(changes)}.")


@app.command("remove")
def remove(
    short_code: Annotated[str, typer.Argument(metavar="CODE", help="the short code")],
    organization: OrganizationOption,
    domain: Annotated[str, typer.Option(help="the domain of the link; without it, the link for every domain")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="remove without asking")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Remove a link, after confirmation. Its visits stay.

    Example: traffic links remove launch --org acme --yes
    """
    from data.links.links import link_of, remove_link

    opened, host = Lake(lake), check_host(domain, "--domain") if domain else ""
    link = link_of(opened, check_organization(organization), short_code, host)
    if link is None:
        where = f"on {host}" if host else "for every domain"
        command = f"`traffic links list --org {organization}`"
        raise BadInput(f"{organization} has no link {short_code!r} {where}; {command} prints all links.")
    if not yes:
        check_can_ask(yes)
        inform(f"{organization} has {_name(link)}, which redirects to {printable(link.target_url)}.")
        ask("Remove it?")
    if remove_link(opened, organization, short_code, host):
        inform(f"{organization} no longer has {_name(link)}.")


@app.command("list")
def list_links(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Print an organization's links as CSV, in the format of `traffic links import`.

    Example: traffic links list --org acme > links.csv
    """
    from data.links.links import links_of

    _print_csv(links_of(Lake(lake, must_write=False), check_organization(organization)))


@app.command("export")
def export(
    organization: OrganizationOption,
    format_name: Annotated[str, typer.Option("--format", help="csv, caddy or nginx")] = "csv",
    domain: Annotated[str, typer.Option(help="only the links for this domain")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print all links, or the links for a domain, with the redirects that jobs have shipped, as CSV or as configuration
    for Caddy or nginx.

    Links that the web server's configuration cannot express are left out, and listed on stderr.

    Example: traffic links export --org acme --domain go.example.com --format nginx > links.conf
    """
    from data.links.links import links_of
    from data.links.redirect_maps import caddy_map, links_on, nginx_map
    from service.core.control_database import opened_control
    from service.jobs.implementation_tables import read_redirects
    from service.jobs.redirects import with_redirects

    maps = {"caddy": caddy_map, "nginx": nginx_map}
    if format_name not in {"csv", *maps}:
        raise BadInput(f"--format {format_name!r} is not known; use csv, caddy or nginx.")
    host = check_host(domain, "--domain") if domain else ""
    with opened_control(lake) as control:
        links = links_of(control.lake, check_organization(organization))
        links = with_redirects(links, read_redirects(control, organization))
    if format_name == "csv":
        _print_csv(links_on(links, host) if host else links)
    else:
        redirects = maps[format_name](links_on(links, host))
        typer.echo(redirects.text, nl=False)
        for left_out in redirects.left_out:
            inform(f"Left out: {printable(str(left_out))}")
        if redirects.left_out:
            inform(redirects.summary())


def _print_csv(links: Iterable["Link"]) -> None:
    """Print links, unescaped, as the CSV that `traffic links import` reads."""
    from data.links.links import COLUMNS
    from data.links.tags import joined_tags

    rows = (
        vars(link) | {"created_at": to_text(link.created_at, "auto"), "tags": joined_tags(link.tags or ())}
        for link in links
    )
    print_csv(COLUMNS, rows, is_raw=True)


def _summary(changes: "LinkChanges") -> str:
    counts = ", ".join(f"{len(getattr(changes, name)):,} {name}" for name in changes._fields)
    return f"{plural(len(changes.links), 'link')}: {counts}"


def _tell_of_the_rest(file: Path, export: "LinkExport", replace: bool) -> None:
    """Report links that are missing because they are on other pages of the export, and links left out. Raises BadInput
    if replacing would remove the missing links.
    """
    if export.missing:
        pages = f"{file} does not contain all links: the service has {export.missing:,} more, on other pages"
        if replace:
            raise BadInput(f"{pages}; --replace would remove them. Put all pages into one file, one after another.")
        inform(f"{pages}.")
    for problem in export.left_out:
        inform(f"Left out: {printable(problem)}")


def _tags_to_add(links: Iterable["Link"], tags: Sequence[str], from_utm: bool) -> Callable[["Link"], Sequence[str]]:
    """Report campaigns that cannot be tags, and return a function that returns the tags to add to a link."""
    from data.links.tags import TAG_RULE, campaign_of, is_tag

    campaigns = {link: campaign_of(link.target_url) for link in links} if from_utm else {}
    if odd := [link for link, campaign in campaigns.items() if campaign and not is_tag(campaign)]:
        inform(f"The utm_campaign of {plural(len(odd), 'link')} cannot be a tag; use {TAG_RULE}: {_names(odd)}.")

    def to_add(link: "Link") -> Sequence[str]:
        campaign = campaigns.get(link, "")
        return [*tags, campaign] if is_tag(campaign) else tags

    return to_add


def _names(links: Sequence["Link"]) -> str:
    rest = f" and {len(links) - MAX_SHOWN:,} more" if len(links) > MAX_SHOWN else ""
    return f"{', '.join(map(_name, links[:MAX_SHOWN]))}{rest}"


def _name(link: "Link") -> str:
    return printable(f"{link.domain}/{link.short_code}".lstrip("/"))
