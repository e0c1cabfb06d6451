"""Floor 1: SQL over visits and scopes. These are its public names."""

from queries.catalog import CACHE_STATS, CATALOG, ENDPOINTS, ENTRIES, JOBS, Entry, template, template_entries
from queries.fields import Field
from queries.rollups import RollupBuilder
from queries.scope import Scope
from queries.shell import script
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.warehouse import EngineLost, FilesGone, QueryFailed, QueryTimeout, Result, Warehouse

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
    "QueryFailed",
    "QueryTimeout",
    "Result",
    "RollupBuilder",
    "Scope",
    "TrafficValue",
    "Warehouse",
    "load_traffic_values",
    "script",
    "template",
    "template_entries",
]
