"""A lake's IP lists, one file per list: `ip-lists/<name>.json`, replaced atomically.

If a list cannot be downloaded or parsed, the old file stays.
"""

import ipaddress
import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from data.disk.files import write_bytes_durably
from data.errors import BadInput, LakeDamaged
from data.rules.ip_lists import FetchedList, parse_networks
from data.rules.tables import IpList
from data.store.lake import Lake

_LOG: Final = logging.getLogger(__name__)


class RefreshResult(NamedTuple):
    """The result of refreshing one list: its new snapshot, or an error."""

    row: IpList
    snapshot: FetchedList | None
    error: str


def snapshots(lake: Lake) -> dict[str, FetchedList]:
    """Return the stored snapshot of every list, by name. Raises LakeDamaged if a file cannot be read."""
    return {path.stem: _snapshot(path) for path in sorted(lake.ip_lists.glob("*.json"))}


def intact_snapshots(lake: Lake) -> dict[str, FetchedList]:
    """Return the stored snapshots; log and skip unreadable files, which must not block visits."""
    found = {}
    for path in sorted(lake.ip_lists.glob("*.json")):
        try:
            found[path.stem] = _snapshot(path)
        except LakeDamaged as error:
            _LOG.warning("%s Until then, this list verifies no visits.", error)
    return found


def _snapshot(path: Path) -> FetchedList:
    try:
        saved = json.loads(path.read_bytes())
        networks = [ipaddress.ip_network(network) for network in saved["networks"]]
        return FetchedList(path.stem, datetime.fromisoformat(saved["fetched_at"]), networks)
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise LakeDamaged(f"{path} cannot be read; delete it, or run `traffic agents refresh`.") from error


def changed_at(lake: Lake) -> int:
    """Return when a list was last replaced: the modification time of the lists' folder, in nanoseconds since 1970."""
    return lake.ip_lists.stat().st_mtime_ns


def refresh(
    lake: Lake, rows: Iterable[IpList], fetch: Callable[[IpList], bytes], now: datetime
) -> Iterable[RefreshResult]:
    """Fetch the lists into the lake one by one, yielding each result. A list that cannot be fetched or parsed keeps its
    old snapshot.
    """
    for row in rows:
        try:
            snapshot = FetchedList(row.name, now, parse_networks(fetch(row), row.format))
        except BadInput as error:
            yield RefreshResult(row, None, str(error))
        else:
            saved = {
                "url": row.url,
                "fetched_at": now.astimezone(UTC).isoformat(timespec="seconds"),
                "networks": [str(network) for network in snapshot.networks],
            }
            staged, target = lake.staging / f"{row.name}-{id(snapshot)}.json", lake.ip_lists / f"{row.name}.json"
            write_bytes_durably(json.dumps(saved, indent=1).encode(), staged, target)
            yield RefreshResult(row, snapshot, "")
