"""The table of a visit's columns, and everything derived from it."""

import pyarrow as pa
import pytest

from data.errors import LakeDamaged, NewerVersion
from data.visits import (
    COLUMNS,
    SCHEMA_VERSION,
    VISITS,
    Classification,
    check_version,
    columns_filled_by,
    visits_schema,
)

OF_VERSION_1 = (
    "visited_at: timestamp[us], domain: string, short_code: string, path: string, method: string, status: int16, "
    "bot_category: string, agent_kind: string, ai_source: string, agent: string, operator: string, "
    "confidence: string, detection_method: string, device_type: string, operating_system: string, browser: string, "
    "user_agent: string, country: string, referrer: string, referrer_type: string, utm_source: string, "
    "utm_medium: string, utm_campaign: string, utm_term: string, utm_content: string, visitor: int64, "
    "is_malicious: bool, protocol: string, bytes_sent: int64, utc_offset: int16, signals: int64, rules_version: string"
)
"""The columns of existing files, which must not change."""


def test_the_columns_of_version_1_never_change():
    assert ", ".join(f"{field.name}: {field.type}" for field in visits_schema(1)) == OF_VERSION_1


def test_the_classifier_fills_its_columns_in_order():
    assert columns_filled_by("classification") == Classification._fields


def test_each_column_is_declared_once_with_its_version():
    assert len({column.name for column in COLUMNS}) == len(COLUMNS) == len(VISITS)
    assert visits_schema(0) == pa.schema([])
    assert visits_schema(SCHEMA_VERSION) == VISITS
    assert all(1 <= column.since <= SCHEMA_VERSION for column in COLUMNS)


def test_data_from_a_newer_version_is_rejected_clearly():
    for version in range(1, SCHEMA_VERSION + 1):
        check_version(version, "a file")
    newer = SCHEMA_VERSION + 2
    with pytest.raises(NewerVersion) as refused:
        check_version(newer, "visits/a.parquet")
    assert isinstance(refused.value, LakeDamaged)
    assert str(refused.value) == (
        f"visits/a.parquet was written by a newer version of this program (visit schema {newer}, this one reads up to "
        f"{SCHEMA_VERSION}); upgrade."
    )
