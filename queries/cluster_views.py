"""Defines views in a cluster session for the relations that compiled queries read."""

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from data.store.layout import LINK_CHANGES, LINKS
from data.visits import VISITS
from queries.cluster_sources import ClusterSources
from queries.connect import ClusterSession, coalesce, col, lit, make_dt_interval
from queries.snapshot import ClusterSnapshot

_SPARK_TYPES: Final = {
    pa.string(): "STRING",
    pa.list_(pa.string()): "ARRAY<STRING>",
    pa.int16(): "SMALLINT",
    pa.bool_(): "BOOLEAN",
    pa.int64(): "BIGINT",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}
"""The Spark types for the columns of stored files."""
_SUBJECT: Final = ("domain", "path", "short_code", "agent", "operator", "ai_source")
"""The text fields of the SQL type `subjects` in prelude/7_jobs.sql."""


def make_views(session: ClusterSession, snapshot: ClusterSnapshot, sources: ClusterSources) -> None:
    """Define the views that compiled queries read (compiler.INPUTS) for a snapshot."""
    (owner,) = {file.organization for file in snapshot.landed} or {""}  # only one per query
    local_time = col("visited_at") + make_dt_interval(mins=coalesce(col("utc_offset"), lit(0)).cast("int"))
    day = local_time.cast("date")
    session.read_rows("visits", _VISITS, sources.visits, sources.sent_visits, organization=lit(owner), day=day)
    session.read_rows("links", _LINKS, sources.links, sources.sent_links)
    changes = [pq.read_table(path, schema=LINK_CHANGES, partitioning=None) for path in snapshot.link_changes]
    session.read_rows("link_changes", _ddl(LINK_CHANGES), [], pa.concat_tables(changes))  # there are few
    for name in ("high_cardinality_days", "days_without_domains"):
        session.put_rows(name, "day DATE", [(day,) for day in getattr(snapshot, name)])
    worth = "traffic_type STRING, ten_thousandths BIGINT, currency STRING"
    session.put_rows("traffic_values", worth, snapshot.traffic_values)
    subjects = [tuple(one[name] for name in ("number", *_SUBJECT)) for one in snapshot.subjects]
    session.put_rows("subject", ", ".join(["number BIGINT", *(f"{name} STRING" for name in _SUBJECT)]), subjects)


def _ddl(schema: pa.Schema) -> str:
    """Return a schema as a Spark DDL string."""
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in schema)


_VISITS: Final = _ddl(VISITS)
_LINKS: Final = _ddl(LINKS)
