"""Editors' choices in the API and on the page Left out of people: rules for the owner's visits, and whether files
count. All functions block.
"""

import hashlib
from typing import Final

from data import BadInput, Lake
from data.manifest.exclusions import ExclusionRecord
from data.rules.exclusions import Exclusion, ExclusionKind
from data.rules.own_rules import checked_exclusion
from data.store.status import marks_all_files
from service.core.http.errors import StateConflict

MAX_RULES: Final = 100
"""An organization with this many rules cannot add more here, since each new visit is compared with all of them."""
MAX_VALUE_LENGTH: Final = 500


def rule_id(rule: Exclusion) -> str:
    """Return the id that URLs use for a rule, since they cannot contain its value. An IP address can be guessed from
    the id.
    """
    return hashlib.sha256("\n".join(rule).encode()).hexdigest()[:16]


def add_rule(lake: Lake, organization: str, kind: ExclusionKind, value: str) -> tuple[ExclusionRecord, bool]:
    """Add a rule; return its record, and whether it is new. Raises BadInput for an invalid value, and StateConflict
    if the rule is new and there are already MAX_RULES.
    """
    if len(value) > MAX_VALUE_LENGTH:
        raise BadInput(f"the {kind} is longer than {MAX_VALUE_LENGTH} characters.")
    rule, exclusions = checked_exclusion(kind, value), lake.manifest.exclusions
    stored = exclusions.rules(organization)
    if rule not in stored and len(stored) >= MAX_RULES:
        raise StateConflict(f"There are already {MAX_RULES} rules.", "Remove a rule, or exclude a whole network.")
    is_new = exclusions.add(organization, rule)
    return next(record for record in exclusions.records(organization) if record.rule == rule), is_new


def remove_rule(lake: Lake, organization: str, wanted: str) -> ExclusionRecord | None:
    """Remove the rule with this id, and return its record; None if it does not exist."""
    exclusions = lake.manifest.exclusions
    for record in exclusions.records(organization):
        if rule_id(record.rule) == wanted and exclusions.remove(organization, record.rule):
            return record
    return None


def switch_files(lake: Lake, organization: str, *, aside: bool) -> None:
    """Set files aside or count them. Raises StateConflict if some visits must be reclassified first.

    The server's maintenance then updates the rollups of closed days.
    """
    exclusions = lake.manifest.exclusions
    if exclusions.are_files_aside(organization) == aside:
        return
    if aside and not marks_all_files(lake, organization):
        raise StateConflict(
            "Some stored visits have not been checked for files yet.",
            f"Run `traffic files aside --org {organization}` on the server; the command checks these visits first.",
        )
    exclusions.switch_files(organization, aside=aside)
