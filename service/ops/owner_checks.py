"""Checks the lake's own agents, its tables of names, and the rules that exclude the owner's visits."""

from datetime import datetime, timedelta
from typing import Final

from data import BadInput, Lake
from data.store.agents_file import own_agents
from data.store.lake_tables import names_in_use
from data.text import plural
from service.ops.check import Check

MAX_IDLE: Final = timedelta(days=7)
"""Age at which a rule that has never matched a visit is reported."""


def check_own_agents(lake: Lake) -> Check:
    """Check whether the lake's own table of agents is valid."""
    try:
        own = own_agents(lake)
    except BadInput as error:
        return Check("broken", "own agents", str(error))
    return Check("ok", "own agents", f"{lake.own_agents} has {plural(len(own), 'row')}." if own else "none.")


def check_names_in_use(lake: Lake) -> Check:
    """Check which tables of agents and referrers are in use, and whether this version has newer tables."""
    try:
        names = names_in_use(lake)
    except BadInput as error:
        return Check("broken", "names", str(error))
    if names.is_outdated:
        text = f"the tables of this version are newer than {lake.released}; set TRAFFIC_RULES to a newer release, or"
        return Check("warning", "names", f"{text} delete that file.")
    return Check("ok", "names", f"{names}.")


def check_exclusions(lake: Lake, now: datetime) -> Check:
    """Check whether each rule older than MAX_IDLE that excludes the owner's visits has matched a visit."""
    exclusions = lake.manifest.exclusions
    records = [(name, record) for name in lake.manifest.organizations.names() for record in exclusions.records(name)]
    for name, (rule, since, visits) in records:
        if not visits and now - since > MAX_IDLE:
            text = f"no visit since {since:%Y-%m-%d} matches the rule {rule.kind} {rule.value}"
            return Check("warning", "own visits", f"{text}; see `traffic exclude list --org {name}`.")
    rules, visits = plural(len(records), "rule"), sum(record.visits for _, record in records)
    text = f"{rules} set aside {plural(visits, 'visit')}." if records else "no rule sets visits aside."
    return Check("ok", "own visits", text)
