"""`traffic files` and `traffic exclude`: leave visits out of answers."""

from typing import Annotated, Final, get_args

import typer

from data import BadInput, check_organization
from data.rules.exclusions import Exclusion, ExclusionKind
from data.text import percentage, plural
from service.core.commands.answers import print_answer
from service.core.commands.confirmation import ask, check_can_ask
from service.core.commands.options import (
    DEFAULT_LAKE,
    CommandRow,
    FormatOption,
    LakeOption,
    OrganizationOption,
    created_lake,
    open_lake,
)
from service.core.commands.printing import inform, progress_bar

app = typer.Typer(help="Leave your own visits out of answers.", rich_markup_mode=None)

AddressArgument = Annotated[str, typer.Argument(help="an address or a network, such as 203.0.113.0/24")]
AgentOption = Annotated[str, typer.Option(help="a case-insensitive pattern (RE2) for user agents")]
PathOption = Annotated[str, typer.Option(help="a path, including everything below it, such as /admin")]
_DONE: Final = {"aside": "set aside", "counted": "counted"}


def files(
    choice: Annotated[str, typer.Argument(help="aside, or counted")],
    organization: OrganizationOption,
    yes: Annotated[bool, typer.Option("--yes", help="switch without asking")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Leave images, stylesheets, scripts and fonts out of answers, or count them like other visits. They stay stored.

    By default, they count. The command first shows how many there are. To recognize files among visits that an older
    version stored, it classifies those visits again.

    Example: traffic files aside --org acme
    """
    if choice not in {"aside", "counted"}:
        raise BadInput(f"{choice!r} is not a choice; write aside or counted.")
    from service.exclusions.files import plan_files, switch_files

    check_can_ask(yes, otherwise="continue")
    opened = open_lake(lake, organization, must_write=True)
    aside = choice == "aside"
    if opened.manifest.exclusions.are_files_aside(organization) == aside:
        inform(f"Files of {organization} are already {_DONE[choice]}.")
        return
    with progress_bar("Looking for files") as progress:
        plan = plan_files(opened, organization, progress)
    share = percentage(plan.files, plan.stored) if plan.stored else "none"
    verb, stored = "leave out" if aside else "count", plural(plan.stored, "stored visit")
    inform(f"Answers for {organization} will {verb} {plural(plan.files, 'request')} for files, {share} of {stored}.")
    if aside and plan.unmarked:
        older = f"{plural(plan.unmarked, 'visit')} that older rules classified"
        inform(f"First, the current rules are applied to {older}; {plan.changed:,} of them change.")
    if not yes:
        ask("Set them aside?" if aside else "Count them?")
    with progress_bar("Marking") as progress:
        switch_files(opened, organization, aside=aside, progress=progress)
    inform(f"Files of {organization} are now {_DONE[choice]}.")


@app.command("add")
def add(
    organization: OrganizationOption,
    address: AddressArgument = "",
    agent: AgentOption = "",
    path: PathOption = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Set aside visits from an address, by a user agent or to a path: they stay stored, but answers leave them out.

    Addresses are not stored, so a rule for an address applies only to new visits. `traffic reclassify` applies rules
    for user agents and paths to earlier visits.

    Example: traffic exclude add 203.0.113.0/24 --org acme
    """
    rule = _rule(address, agent, path)
    opened = created_lake(lake)
    is_new = opened.manifest.exclusions.add(check_organization(organization), rule)
    inform(f"{_KINDS[rule.kind]} {rule.value}: {'set aside from now on' if is_new else 'already excluded'}.")
    if rule.kind == "address":
        inform("Earlier visits still count: their addresses are not stored.")
    else:
        inform(f"For earlier visits, run `traffic reclassify --org {organization}`.")


@app.command("list")
def list_rules(
    organization: OrganizationOption, output: FormatOption = "table", lake: LakeOption = DEFAULT_LAKE
) -> None:
    """Print an organization's exclusion rules, when each was added, and how many visits the rule set aside as they
    landed.

    Example: traffic exclude list --org acme
    """
    opened = open_lake(lake, organization)
    rules = [
        {"kind": rule.kind, "value": rule.value, "since": since.isoformat(timespec="seconds"), "visits": visits}
        for rule, since, visits in opened.manifest.exclusions.records(organization)
    ]
    if rules or output != "table":
        print_answer(rules, output)
    if not rules:
        inform(f"{organization} has no exclusion rules.")


@app.command("remove")
def remove(
    organization: OrganizationOption,
    address: AddressArgument = "",
    agent: AgentOption = "",
    path: PathOption = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Remove a rule, so that new visits count. For earlier visits by an agent or to a path, run `traffic reclassify`.

    Example: traffic exclude remove --path /admin --org acme
    """
    rule = _rule(address, agent, path)
    opened = open_lake(lake, organization, must_write=True)
    if not opened.manifest.exclusions.remove(organization, rule):
        seen = f"see `traffic exclude list --org {organization}`"
        raise BadInput(f"{organization} does not exclude the {rule.kind} {rule.value}; {seen}.")
    inform(f"{_KINDS[rule.kind]} {rule.value}: counted from now on.")
    if rule.kind == "address":
        inform("Visits that the rule has already set aside stay aside: addresses are not stored.")
    else:
        inform(f"For earlier visits, run `traffic reclassify --org {organization}`.")


_KINDS: Final = {"address": "Visits from", "agent": "Visits by", "path": "Visits to"}


def _rule(address: str, agent: str, path: str) -> Exclusion:
    """Return the rule that the arguments give. Raises BadInput unless they give exactly one, and it is valid."""
    from data.rules.own_rules import checked_exclusion

    given = {"address": address, "agent": agent, "path": path}
    kinds = [kind for kind in get_args(ExclusionKind) if given[kind]]
    if len(kinds) != 1:
        raise BadInput("give exactly one of these: an address, --agent or --path.")
    return checked_exclusion(kinds[0], given[kinds[0]])


COMMANDS: Final = {"files": CommandRow(files), "exclude": app}
