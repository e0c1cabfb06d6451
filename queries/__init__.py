"""Floor 1: computes every report with SQL over the visits in a Scope. These are its public names."""

from queries.catalog import CACHE_STATS, CATALOG, ENDPOINTS, ENTRIES, Entry, template, template_entries
from queries.cluster_options import ClusterOptions, ClusterTimeout, ClusterUnavailable
from queries.detectors import CRAWLER_PLAN, DETECTORS, JOB_KINDS, Detector, JobKind
from queries.dictionary import describe, meaning_of, relations
from queries.engine import Engine, open_cluster
from queries.fields import Field
from queries.findings import (
    DETECTED_DAYS,
    GUESSES,
    REDIRECTED,
    Finding,
    days_before,
    detect,
    guesses,
    measure,
    measure_all,
    redirected,
)
from queries.hints import no_visits
from queries.locked_engine import EngineLost, FilesGone, QueryFailed, QueryTimeout
from queries.notebook import Reader, open_lake
from queries.own_sql import OwnSql, Rows
from queries.parameters import (
    DEFAULT_RANGE,
    MAX_DAYS,
    MAX_VALUE_LENGTH,
    PARAMETERS,
    RANGES,
    TRAFFIC_TYPES,
    InvalidParameter,
    Parameter,
    parameters_of,
    parse_day,
    scope_from,
    select_parameters,
    validate,
)
from queries.rollups import RelationCounter, RollupBuilder
from queries.scope import Scope
from queries.shell import script
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.variables import Variables, is_for_cluster
from queries.warehouse import Result, Tables, Warehouse

__all__ = [
    "CACHE_STATS",
    "CATALOG",
    "CRAWLER_PLAN",
    "DEFAULT_RANGE",
    "DETECTED_DAYS",
    "DETECTORS",
    "ENDPOINTS",
    "ENTRIES",
    "GUESSES",
    "JOB_KINDS",
    "MAX_DAYS",
    "MAX_VALUE_LENGTH",
    "PARAMETERS",
    "RANGES",
    "REDIRECTED",
    "TRAFFIC_TYPES",
    "ClusterOptions",
    "ClusterTimeout",
    "ClusterUnavailable",
    "Detector",
    "Engine",
    "EngineLost",
    "Entry",
    "Field",
    "FilesGone",
    "Finding",
    "InvalidParameter",
    "JobKind",
    "OwnSql",
    "Parameter",
    "QueryFailed",
    "QueryTimeout",
    "Reader",
    "RelationCounter",
    "Result",
    "RollupBuilder",
    "Rows",
    "Scope",
    "Tables",
    "TrafficValue",
    "Variables",
    "Warehouse",
    "days_before",
    "describe",
    "detect",
    "guesses",
    "is_for_cluster",
    "load_traffic_values",
    "meaning_of",
    "measure",
    "measure_all",
    "no_visits",
    "open_cluster",
    "open_lake",
    "parameters_of",
    "parse_day",
    "redirected",
    "relations",
    "scope_from",
    "script",
    "select_parameters",
    "template",
    "template_entries",
    "validate",
]
