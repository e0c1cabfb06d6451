"""Visits and links for tests: built from the columns that a test needs, and landed like an import."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from data.manifest.clock import format_time
from data.manifest.logs import Batch
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.layout import LINKS
from data.store.link_files import replace_links
from data.store.packing import PackedVisits, pack, table_of, unpack
from data.visits import VISITS, VISITS_OF_DAYS, columns_filled_by
from tests.recount import local_time

Visit = dict[str, Any]

PERSON: Final = dict.fromkeys(VISITS.names) | {
    "visited_at": datetime(2026, 3, 4, 12, 30),  # a Wednesday
    "domain": "go.example",
    "path": "/",
    "method": "GET",
    "status": 302,
    "bot_category": "human",
    "device_type": "desktop",
    "operating_system": "Windows",
    "browser": "Firefox",
    "user_agent": "Mozilla/5.0",
    "referrer_type": "direct",
    "is_malicious": False,
    "rules_version": "test",
}
"""Every column of a visit, here by a person who typed the address of a start page."""


def visit(**columns: Any) -> Visit:
    """Return a visit with these columns, and with PERSON's otherwise; its day follows from its time and offset."""
    unknown = columns.keys() - PERSON.keys()
    if unknown:
        raise TypeError(f"a visit has no {', '.join(sorted(unknown))}")
    whole = PERSON | columns
    return whole | {"day": local_time(whole).date()}


def land(lake: Lake, organization: str, visits: Iterable[Mapping[str, Any]]) -> None:
    """Land visits as a separate batch. Columns that the lake does not store are left out."""
    land_table(lake, organization, pa.Table.from_pylist(sorted(visits, key=_place), schema=VISITS_OF_DAYS))


def land_table(lake: Lake, organization: str, table: pa.Table) -> None:
    """Land a table with the columns of VISITS_OF_DAYS as a separate batch."""
    landing = Landing(lake, organization)
    landing.stage(table)
    imported_at = format_time(datetime.now(UTC))
    batch = Batch(landing.batch, sha256=uuid.uuid4().hex * 2, visits=len(table), imported_at=imported_at)
    landing.commit(batch, None)


def links(lake: Lake, organization: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace an organization's links; each row needs a short_code and a target_url."""
    usual = {"organization": organization, "domain": "", "created_at": datetime(2026, 1, 1)}
    table = pa.Table.from_pylist([usual | row for row in rows], schema=LINKS)
    replace_links(lake, organization, lake.manifest.links.live(organization), table)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    code = row["short_code"]
    return row["day"], code is None, code or "", row["visited_at"]


def packed(visits: Iterable[Visit]) -> PackedVisits:
    """Return visits in the form of pending visits."""
    rows = list(visits)
    shared = columns_filled_by("classification", "referrer", "campaign", "rules")
    columns = {name: [row[name] for row in rows] for name in VISITS.names}
    own = {name: values for name, values in columns.items() if name not in shared}
    return pack(own, list(range(len(rows))), {name: columns[name] for name in shared})


def unpacked(bodies: Iterable[bytes]) -> list[Visit]:
    """Return the visits in some bodies of the manifest's table `pending`."""
    return [row for body in bodies for row in table_of([unpack(body)]).to_pylist()]
