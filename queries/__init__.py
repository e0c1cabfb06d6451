"""Floor 1: SQL over visits and scopes. These are its public names."""

from queries.catalog import ANSWERS, CACHE_STATS, CATALOG, JOBS, Entry, template, templates
from queries.fields import Field
from queries.rollups import RollupBuilder
from queries.scope import Scope
from queries.shell import script
from queries.traffic_values import TrafficValue, load_values
from queries.warehouse import Answer, EngineLost, FilesGone, QueryFailed, QueryTimeout, Warehouse

__all__ = [
    "ANSWERS",
    "CACHE_STATS",
    "CATALOG",
    "JOBS",
    "Answer",
    "EngineLost",
    "Entry",
    "Field",
    "FilesGone",
    "QueryFailed",
    "QueryTimeout",
    "RollupBuilder",
    "Scope",
    "TrafficValue",
    "Warehouse",
    "load_values",
    "script",
    "template",
    "templates",
]
