"""Answers and custom SQL as Arrow tables, for notebooks and scripts, with the API's names and parameters."""

import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from data import BadInput, Lake, check_organization
from data.links.index import LinkIndex
from queries.catalog import ENTRIES, Entry
from queries.hints import empty_scope_hint
from queries.locked_engine import QUERY_TIMEOUT_SECONDS
from queries.own_sql import OWN_SQL_MEMORY, OwnSql
from queries.parameters import parameters_of, scope_from, validate
from queries.scope import Scope
from queries.traffic_values import load_traffic_values
from queries.warehouse import Tables, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa


_ALL_PARAMETERS: Final = ENTRIES["bot-traffic"]
"""The entry that accepts every parameter, as custom SQL does."""


def open_lake(
    path: str | PathLike[str],
    values: Path | None = None,
    seconds: float = QUERY_TIMEOUT_SECONDS,
    memory: str = OWN_SQL_MEMORY,
) -> "Reader":
    """Open the lake in a folder for reading, while servers and imports may run. Raises BadInput if there is no lake.

    `values` is a file like traffic_values.toml. `seconds` limits each query; `memory` limits custom SQL and,
    separately, the rows that it returns.
    """
    return Reader(Lake(Path(path), must_write=False), values, seconds, memory)


class Reader:
    """An open lake. Safe to use from several threads. Close it, or use it in a `with` block."""

    def __init__(
        self,
        lake: Lake,
        values: Path | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
        memory: str = OWN_SQL_MEMORY,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start the engines; see open_lake. Ranges end on the organization's current day according to `clock`."""
        self._lake, self._targets, self._clock = lake, LinkIndex(lake), clock
        with_values = load_traffic_values(values)
        self._warehouse = Warehouse(lake, with_values, seconds=seconds)
        self._new_sql = partial(OwnSql, lake, values=with_values, memory=memory, seconds=seconds)
        self._own_sql: dict[str, OwnSql] = {}  # by organization: each engine can only open one organization's files

    @property
    def organizations(self) -> list[str]:
        """The names of the organizations that have visits, sorted."""
        return sorted(self._lake.manifest.organizations.names())

    def zone(self, organization: str) -> str:
        """Return the time zone of an organization's days and hours."""
        return self._lake.manifest.organizations.zone(organization)

    def today(self, organization: str) -> date:
        """Return the current day of an organization."""
        return self._lake.manifest.organizations.today(organization, self._clock())

    def query(self, name: str, *, organization: str, **parameters: str | int | date) -> Tables:
        """Return the report `name` as an Arrow table, which has its columns even without rows. The names are the keys
        of queries.ENTRIES; many are also routes, such as GET /analytics/devices.

        The parameters are the API's (queries.PARAMETERS); the default is the last 30 days. Days may be given as dates
        or strings. An answer with several parts is a dict of tables by part; a part may also be such a dict. Raises
        BadInput for an unknown name, organization or parameter or if only one of the two days is given,
        InvalidParameter for an invalid value, and the exceptions of take_snapshot and Warehouse.answer. Warns if the
        days have no visits at all, or if `path` is the path of a file and files are set aside.
        """
        if name not in ENTRIES:
            raise BadInput(f"unknown endpoint {name!r}; use one of {', '.join(ENTRIES)}.")
        entry = ENTRIES[name]
        scope = self._scope(entry, organization, parameters)
        return self._warehouse.tables(entry, self._warehouse.snapshot(scope))

    def sql(self, text: str, *, organization: str, **parameters: str | int | date) -> "pa.Table":
        """Return the rows of one SELECT from the relations that `traffic views --describe` lists, as an Arrow table.

        The SELECT can only open this organization's files. Raises the exceptions of `query` and OwnSql.sql.
        """
        scope = self._scope(_ALL_PARAMETERS, organization, parameters)
        own_sql = self._own_sql.get(organization) or self._own_sql.setdefault(organization, self._new_sql(organization))
        return own_sql.table(text, scope)

    def close(self) -> None:
        """Close the engines and the lake."""
        self._warehouse.close()
        for own_sql in self._own_sql.values():
            own_sql.close()
        self._lake.manifest.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scope(self, entry: Entry, organization: str, parameters: Mapping[str, object]) -> Scope:
        check_organization(organization)
        if organization not in self._lake.manifest.organizations.names():
            known = ", ".join(self.organizations) or "no organization"
            raise BadInput(f"the lake has no visits for {organization!r}; it has visits for {known}.")
        accepted = parameters_of(entry)
        for name in parameters:
            if name not in accepted:
                raise BadInput(f"{entry.name} does not take {name!r}; it takes {', '.join(accepted)}.")
        if ("start_date" in parameters) != ("end_date" in parameters):
            raise BadInput("give both start_date and end_date, or a range.")
        values = validate(((name, str(value)) for name, value in parameters.items()), entry)
        scope = scope_from(values, organization, self.today(organization), self._targets)
        if hint := empty_scope_hint(self._lake, scope):
            warnings.warn(hint, stacklevel=3)  # the caller of `query` or `sql`
        return scope
