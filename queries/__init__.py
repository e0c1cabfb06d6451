"""Floor 1: computes every report with SQL over the visits in a Scope. These are its public names."""

from queries.catalog import CACHE_STATS, CATALOG, ENDPOINTS, ENTRIES, JOBS, Entry, template, template_entries
from queries.fields import Field
from queries.locked_engine import EngineLost, FilesGone, QueryFailed, QueryTimeout
from queries.own_sql import OwnSql, Rows
from queries.rollups import RollupBuilder
from queries.scope import Scope
from queries.shell import script
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.warehouse import Result, Warehouse

__all__ = [
    "CACHE_STATS",
    "CATALOG",
    "ENDPOINTS",
    "ENTRIES",
    "JOBS",
    "EngineLost",
    "Entry",
    "Field",
    "FilesGone",
    "OwnSql",
    "QueryFailed",
    "QueryTimeout",
    "Result",
    "RollupBuilder",
    "Rows",
    "Scope",
    "TrafficValue",
    "Warehouse",
    "load_traffic_values",
    "script",
    "template",
    "template_entries",
]
