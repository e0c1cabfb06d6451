"""The lakes of earlier releases in tests/fixtures: what the program answers and its stores read from them, and a
recount."""

from contextlib import closing
from datetime import UTC, date, datetime

import msgspec
import orjson
import pyarrow.parquet as pq

from queries import ENDPOINTS, ENTRIES, Scope
from service.access.api_keys import ApiKeys
from service.core.control_database import ControlDatabase
from service.core.encoding import encode
from service.dashboard.shares import ShareStore
from service.hooks.registry import Hooks
from service.jobs.store import Jobs
from tests.recount import local_time, recount
from tests.support.lakes import opened
from tests.support.sql import answers as answers_in

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
"""The time when the lakes were made."""
ORGANIZATIONS = {"1.0.0": ["acme", "berlin"], "1.1.0": ["acme", "berlin", "cargo"]}
"""The organizations of each release's lake: judging is off for berlin; cargo sets files and its own visits aside."""
PARTS = {entry.name for _, entry in ENTRIES["dashboard"].members}
NAMES = [name for name in ENDPOINTS if name not in PARTS]
"""The endpoints to compare; the reports in the dashboard are compared as its members."""
DAYS = date(2026, 3, 10), date(2026, 3, 15)


def answers(lake, organization):
    return answers_in(lake, Scope(organization, *DAYS), NAMES)


def answers_of(root):
    """Return the program's answers for each organization of a lake."""
    with opened(root) as lake:
        return {name: answers(lake, name) for name in lake.manifest.organizations.names()}


def control_of(root):
    """Return the content of control.sqlite as the program's stores read it."""
    with opened(root) as lake, closing(ControlDatabase(lake)) as control:
        jobs, hooks, keys = Jobs(control), Hooks(control), ApiKeys(control, lambda: NOW)
        shares = ShareStore(control, lambda: NOW)
        stores = {
            "jobs": [jobs.record("acme", job.id) for job in jobs.of("acme")],
            "hooks": hooks.of("acme"),
            "deliveries": [hooks.deliveries("acme", hook.id) for hook in hooks.of("acme")],
            "keys": keys.all_keys(),
            "shares": shares.shares_of("berlin"),
        }
        return msgspec.json.decode(msgspec.json.encode(stores))


def visits_of(lake, organization):
    """Return the visits in an organization's live files, in the form of tests/recount.py."""
    rows = [
        row
        for file in lake.manifest.files.live(organization)
        for row in pq.read_table(lake.root / file.path, partitioning=None).to_pylist()
    ]
    return [row | {"organization": organization, "day": local_time(row).date()} for row in rows]


def stored_links(lake, organization):
    """Return the links in the live files; a row in the file of changes replaces or removes one in the base file."""
    rows = {}
    for file in filter(None, lake.manifest.links.live(organization)):
        for row in pq.read_table(lake.root / file.path, partitioning=None).to_pylist():
            rows[row["short_code"], row["domain"]] = row
    return [row | {"organization": organization} for row in rows.values() if not row.get("removed")]


def recounted(lake, organization, files_aside=None):
    """Return recounted answers; by default, files are set aside only for cargo, as when the lake was made."""
    is_aside = organization == "cargo" if files_aside is None else files_aside
    visits, links = visits_of(lake, organization), stored_links(lake, organization)
    countries, behaviour = {"DE": "Germany", "US": "United States"}, organization != "berlin"
    asked = (visits, Scope(organization, *DAYS), links, None, countries, behaviour)
    return {name: orjson.loads(encode(recount(name, *asked, files_aside=is_aside))) for name in NAMES}
