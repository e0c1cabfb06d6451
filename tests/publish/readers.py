"""Reads published tables with engines by other makers: delta-rs (DataFusion), ClickHouse, and Sail.

Each engine counts with the expressions in data/publish/README.md.
"""

import re
from pathlib import Path

README = Path(__file__).parent.parent.parent / "data/publish/README.md"


def expressions(engine):
    """Return the expressions for a visit's hour and class in an engine's SQL, from the table in the manual."""
    (row,) = re.findall(rf"^\| {re.escape(engine)} \|(.+)\|$", README.read_text("utf-8"), re.MULTILINE)
    return [cell.strip().strip("`") for cell in row.split(" | ")]


def counts(engine, source):
    """Return the query for an engine: visits, visitors and the sum of hashes, by day, local hour, and class."""
    hour, category = expressions(engine)
    text = {"ClickHouse": "String", "Spark": "STRING", "DataFusion": "VARCHAR"}[engine]
    return (
        f"SELECT CAST(day AS {text}) AS d, {hour} AS h, {category} AS c, count(*) AS n, count(DISTINCT visitor) AS v, "
        f"sum(visitor) AS s FROM {source} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )


def by_delta_rs(table):
    import deltalake  # noqa: PLC0415

    engine = deltalake.QueryBuilder().register("visits", deltalake.DeltaTable(table))
    import pyarrow as pa  # noqa: PLC0415

    return rows(pa.table(engine.execute(counts("DataFusion", "visits")).read_all()).to_pylist())


def by_clickhouse(table, bucket, key, secret):
    import json  # noqa: PLC0415

    import chdb  # noqa: PLC0415

    source = f"deltaLake('{table.replace('s3://', f'{bucket.address}/')}/', '{key}', '{secret}')"
    text = f"{counts('ClickHouse', source)} SETTINGS session_timezone = 'Asia/Tokyo'"
    return rows(map(json.loads, str(chdb.query(text, "JSONEachRow")).splitlines()))


def by_sail(table, session):
    session.read.format("delta").load(table).createOrReplaceTempView("published")
    return rows([row.asDict() for row in session.sql(counts("Spark", "published")).collect()])


def rows(found):
    """Return the rows with values of the same types for every engine."""
    return [(row["d"], int(row["h"]), row["c"], int(row["n"]), int(row["v"]), int(row["s"] or 0)) for row in found]
