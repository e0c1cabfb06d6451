"""The SQL files that define the relations for templates, and functions that read relations' properties from the files.

To count visitors, a daily relation first groups visits by visitor, then counts the groups: this needs one hash table,
and is faster and takes less memory than count(DISTINCT visitor) in every group.
"""

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Final, Literal

from data.signals import BITS, CONVICTING, OWN, PROBING, SCANNED, SIGNALS, UNFOLLOWED
from data.sql import read_sql

FOLDERS: Final = ("prelude", "sources", "relations", "names")
"""The folders of SQL files, in order: macros and scope, source views of visits, relations of counts, and lookup tables
of names. A folder may use only the folders before it; stored rows do not depend on names."""

BASES: Final = {
    "visits_in_scope": "one row for each visit in scope",
    "visits_in_days": "one row for each visit on the days of the scope, without the scope's other filters",
    "visits_with_aside": "visits_in_scope plus visits that are set aside, with the reason in `aside` (`file` or `own`)",
    "links_in_scope": "one row for each link of the organization",
    "days_in_scope": "one row for each day of the scope, with or without visits",
    "weeks_in_scope": "one row for each week of the scope, with or without visits",
    "hours": "one row for each hour of the day",
    "weekdays": "one row for each weekday, with the number of times that it occurs in the scope",
    "countries": "one row for each country code, with its name",
    "traffic_values": "one row for each traffic category, with the value that you set for a visit",
}
"""The relations for users' SQL, apart from the relations of counts, with their meanings."""
_CONVICTING: Final = f"CREATE MACRO convicting_signals() AS {CONVICTING};"
_SCANNED: Final = f"CREATE MACRO scanned_signal() AS {SCANNED};"
_PROBING: Final = f"CREATE MACRO probing_signals() AS {PROBING};"
_UNFOLLOWED: Final = f"CREATE MACRO unfollowed_signal() AS {UNFOLLOWED};"
_OWN: Final = f"CREATE MACRO own_signals() AS {OWN};"
_FILE: Final = f"CREATE MACRO file_signal() AS {BITS['file']};"
_SIGNED: Final = f"CREATE MACRO signed_signal() AS {BITS['signed']};"
_LISTED: Final = f"CREATE MACRO listed_signals() AS {sum(signal.bit for signal in SIGNALS)};"
_SIGNALS: Final = "CREATE TABLE signals AS SELECT * FROM (VALUES {}) AS names(signal, bit);".format(
    ", ".join(f"('{signal.name}', {signal.bit})" for signal in SIGNALS)
)
"""The table that names the signal bits, for templates."""
_COMMENT: Final = re.compile(r"--.*")
_SERVES: Final = re.compile(r"^-- Serves: (.+)$", re.MULTILINE)


def prelude() -> list[str]:
    """Return the SQL that defines all relations, in the order in which it is run: the signals' macros, the SQL files,
    and the table of signals.
    """
    texts = [sql_text(f"{folder}/{name}") for folder in FOLDERS for name in _names(folder)]
    return [_CONVICTING, _SCANNED, _PROBING, _UNFOLLOWED, _OWN, _FILE, _SIGNED, _LISTED, *texts, _SIGNALS]


def sql_text(name: str) -> str:
    """Return the text of an SQL file; `name` is its path in queries/ without .sql."""
    return read_sql("queries", name)


@cache
def view_names() -> frozenset[str]:
    """Return the names of all relations in queries/relations, including those that rollups do not store."""
    return frozenset(_names("relations"))


def public_names() -> list[str]:
    """Return the names of the relations that users' SQL may read."""
    return [*BASES, *_names("relations")]


@cache
def relation_names(kind: Literal["daily", "monthly", ""] = "") -> tuple[str, ...]:
    """Return the names of the relations that rollups store: counts by day, values that occur in a month, or all."""
    kinds = (kind,) if kind else ("daily", "monthly")
    return tuple(name for name in _names("relations") if name.partition("_")[0] in kinds)


@cache
def served_filters(relation: str) -> frozenset[str]:
    """Return the filters of a Scope that the stored rows of a relation can serve, in addition to ROLLUP_FILTERS.

    The relation declares them in its SQL file, in a comment line such as "-- Serves: traffic_type".
    """
    declared = _SERVES.search(sql_text(f"relations/{relation}"))
    return frozenset(declared[1].split(", ")) if declared else frozenset()


@cache
def rollup_version(behaviour: bool, aside: int) -> str:
    """Return a hash of the SQL that counts rollups and of the settings that decide which visits count; each rollup
    stores this hash. Comments, white space and the lookup tables of names do not change it.

    `behaviour` and `aside` have the meanings of these fields of a Snapshot.
    """
    texts = [sql_text(f"{folder}/{name}") for folder in FOLDERS if folder != "names" for name in _names(folder)]
    words = _COMMENT.sub("", "\n".join([*texts, sql_text("rollups")])).split()
    counted = [_CONVICTING, _SCANNED, _UNFOLLOWED, _OWN, _LISTED, *words, str(behaviour), str(aside)]
    return hashlib.sha256(" ".join(counted).encode()).hexdigest()[:16]


@cache
def _names(folder: str) -> tuple[str, ...]:
    """Return the names, without extension, of the SQL files in a folder, in order."""
    names = (file.name for file in resources.files("queries").joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql")))
