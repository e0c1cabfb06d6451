"""`traffic reclassify`: classifies stored visits again with the current rules."""

from typing import Annotated, Final

import typer

from data import Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OnlyOrganizationOption, chosen_organizations
from service.core.commands.printing import inform, print_rows, progress_bar
from service.intake.commands.importing import judge_past_days

_REASONS: Final = {"file": "file", "own_rule": "excluded"}
"""Labels for visits that are set aside, by the name of the reason."""


def reclassify(
    organization: OnlyOrganizationOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would change, but change nothing")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Classify stored visits again, day by day, if the rules have changed since, and show how many visits changed.

    The rules are those of this version or of newer tables in the lake, the lake's own agents, and the exclusions of
    user agents and paths. Results of IP verification are kept, because addresses are not stored. Finally, past days are
    judged again, as by `traffic compact`. If the command is interrupted, run it again to continue.

    Example: traffic reclassify --dry-run
    """
    from data.tasks.reclassification import Reclassifier

    opened = Lake(lake, must_write=not dry_run)
    chosen = chosen_organizations(opened, organization)
    with progress_bar("Reclassifying") as progress:
        result = Reclassifier(opened).run(chosen, dry_run, progress)
    rows = []
    for change, agents in sorted(result.changes.items(), key=lambda change: (-change[1].total(), change[0])):
        after = change.after if change.after != change.before else "(other details)"
        ((example, _),) = agents.most_common(1)
        rows.append((change.before, after, f"{agents.total():,}", example or "(none)"))
    for (name, is_set), count in sorted(result.reasons.items()):
        before, after = ("counted", _REASONS[name]) if is_set else (_REASONS[name], "counted")
        rows.append((before, after, f"{count:,}", ""))
    if not dry_run:
        judge_past_days(opened, organization or None)
    if rows:
        print_rows(("from", "to", "visits", "most frequent user agent"), rows)
    verb = "would be reclassified" if dry_run else "reclassified"
    inform(
        f"{result.rewritten:,} of {plural(result.visits, 'visit')} in {plural(result.partitions, 'day')} {verb}; "
        f"{result.changed:,} of them with a different result."
    )
