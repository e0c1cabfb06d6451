"""The dictionary of the relations and columns that users' SQL can read."""

import re
from typing import Final

from data import visits
from data.visits import COLUMNS
from queries import fields
from queries.own_sql import OwnSql
from queries.prelude import BASES, sql_text, view_names
from queries.scope import Scope

RelationDescriptions = dict[str, list[dict[str, str]]]

_INTERNAL: Final = {
    "scope": "the organization and the days of the scope: one row",
    "subject": "the subjects of a job, while its measure runs; otherwise empty",
}
"""Meanings of relations that can be read, but contain nothing to count."""
_DERIVED: Final = {
    "organization": "the organization of these visits or links",
    "landed_category": "the category when the visit landed, before the whole day was judged",
    "aside": "why a visit is not counted: `file` while files are set aside, `own` if the owner excludes it; or NULL",
    "is_file": "whether the request is for a file that pages load (image, stylesheet, script or font), counted or not",
    "is_signed": "whether the request named its agent in `Signature-Agent` or was signed; this is not verified",
    "start_date": "first day of the scope",
    "end_date": "last day of the scope",
    "ten_thousandths": "value of one visit, in ten-thousandths of the currency unit",
    "is_referral": "whether the visit is by a person whom an AI product referred; otherwise it is by an agent",
    "ai_visitors": "visitors with at least one AI-related visit",
    "referred_visitors": "visitors referred by AI",
    "bot_visitors": "visitors with at least one visit by other automated traffic",
    "unidentified_referrals": "AI referrals without a visitor hash",
    "last_human": "time of the last visit by a person whom no AI product referred",
    "last_referral": "time of the last AI referral",
    "last_fetch": "time of the last fetch by an AI agent",
    "last_bot": "time of the last visit by other automated traffic",
    "utc_day": "day in UTC",
    "minute_of_day": "minute of the day in UTC, 0 to 1,439",
    "is_answered": "whether a request was answered with a status below 400, or has no status",
}
"""Meanings of columns that are neither columns of a visit nor fields of an answer."""
_BOOKKEEPING: Final = ("for_domain", "days")
"""Columns that only rollups use."""


def relations() -> dict[str, str]:
    """Return the meaning of each relation that users' SQL can read: for a relation of counts, the comment at the top of
    its file.
    """
    found = BASES | _INTERNAL
    for name in sorted(view_names()):
        lines = sql_text(f"relations/{name}").partition("CREATE ")[0].splitlines()
        found[name] = " ".join(line.removeprefix("--").strip() for line in lines if not line.startswith("-- Serves:"))
    return found


def describe(own_sql: OwnSql, scope: Scope) -> RelationDescriptions:
    """Return every relation with its meaning and columns, and every column with its type and meaning."""
    found = own_sql.sql(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index",
        scope,
    )
    columns: dict[str, dict[str, str]] = {name: {} for name in relations()}
    for relation, column, kind in found.rows:
        if relation in columns and column not in _BOOKKEEPING:
            columns[relation][column] = kind
    types = {name: kind for kinds in columns.values() for name, kind in kinds.items()}
    declared = {field.name: field.meaning for field in vars(fields).values() if isinstance(field, fields.Field)}
    meanings = _DERIVED | declared
    for one in COLUMNS:  # a constant named in a meaning is replaced by its values
        meaning = re.sub(r"\b[A-Z]+_[A-Z_]+\b", lambda name: ", ".join(getattr(visits, name[0])), one.meaning)
        meanings[one.name] = meaning
    return {
        "relations": [
            {"relation": name, "meaning": meaning, "columns": ", ".join(columns[name])}
            for name, meaning in relations().items()
        ],
        "columns": [{"column": name, "type": kind, "meaning": meanings[name]} for name, kind in types.items()],
    }
