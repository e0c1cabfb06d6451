"""Floor 1: computes every report in SQL from the visits in a Scope. This module exports the public names."""

from queries.catalog import CACHE_STATS, CATALOG, ENDPOINTS, ENTRIES, Entry, template, template_entries
from queries.cluster_options import ClusterOptions, ClusterTimeout, ClusterUnavailable
from queries.detectors import CRAWLER_PLAN, DETECTORS, JOB_KINDS, Detector, JobKind
from queries.dictionary import describe, relations
from queries.engine import Engine, open_cluster
from queries.fields import Field
from queries.findings import (
    DETECTED_DAYS,
    Finding,
    days_before,
    detect,
    guess_targets,
    left_out,
    measure_all,
    redirected_days,
    share_detected,
)
from queries.hints import empty_scope_hint, file_hint
from queries.locked_engine import EngineLost, FilesGone, OutOfMemory, QueryFailed, QueryTimeout
from queries.notebook import Reader, open_lake
from queries.own_sql import OwnSql, Rows
from queries.parameters import (
    DEFAULT_RANGE,
    MAX_DAYS,
    MAX_VALUE_LENGTH,
    PARAMETERS,
    RANGES,
    RESOLVED,
    TRAFFIC_TYPES,
    InvalidParameter,
    Parameter,
    parameters_of,
    parse_day,
    scope_from,
    select_parameters,
    single_filters,
    unknown_value_hint,
    validate,
)
from queries.rollups import RelationCounter, RollupBuilder
from queries.scope import Scope
from queries.shared_visits import MAX_SHARED_VISITS
from queries.shell import script
from queries.snapshot import ClusterSnapshot, Snapshot
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.warehouse import Result, Tables, Warehouse
