"""Finds visits that are in a lake twice because an older manifest remained in use, and makes them count once.

A log that has grown is imported from the position recorded in the older manifest, so its newer visits land again, in
files with other names. These visits can be recognized only by comparing rows.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
from msgspec.structs import replace

from data.disk.files import ROW_GROUP
from data.sql import read_sql
from data.store.engines import limit_memory, rewriting_engine
from data.store.footers import VisitFile, read_visit_file
from data.store.landing import atomic_write, write_visits


class Repetition(NamedTuple):
    """A file with visits that are also in older files of its day."""

    file: VisitFile
    older: list[VisitFile]
    visits: int
    unfinished: Sequence[VisitFile] = ()
    """Files with the visit from an unfinished last line, including any in `older`; another file has the finished line.
    """


def repetitions(
    files: Collection[VisitFile], newer: Collection[str], doubtful: Collection[str], staging: Path
) -> Iterator[Repetition]:
    """Yield the files named in `newer` that repeat visits from older files named in `doubtful`."""
    days = defaultdict[tuple[str, date], list[VisitFile]](list)
    for file in files:
        if file.visits:
            days[file.footer.organization, file.footer.day].append(file)
    with rewriting_engine(staging) as engine:
        for there in days.values():
            suspects = [file for file in there if file.path.name in doubtful]
            for file in there:
                older = [one for one in suspects if one.footer.written_at < file.footer.written_at]
                if file.path.name in newer and older:
                    with suppress(duckdb.Error):  # the file is damaged, which its later check reports
                        if having := [one for one in older if _count_repeated(engine, file, [one])]:
                            yield Repetition(file, having, _count_repeated(engine, file, having))


def _count_repeated(engine: duckdb.DuckDBPyConnection, file: VisitFile, others: list[VisitFile]) -> int:
    """Count the visits in a file that are also in other files."""
    ((rest,),) = _not_in(engine, file, others).count("*").fetchall()
    return file.visits - int(rest)


def _not_in(engine: duckdb.DuckDBPyConnection, file: VisitFile, others: list[VisitFile]) -> duckdb.DuckDBPyRelation:
    limit_memory(engine, file.visits + sum(one.visits for one in others))
    parameters = {"files": [str(file.path)], "other_files": [str(one.path) for one in others]}
    return engine.sql(read_sql("data.recovery", "sql/visits_not_in"), params=parameters)


def without_repeated(repetition: Repetition, staging: Path) -> VisitFile:
    """Copy the repetition's file without the visits that are also in older files with finished lines; return the copy.

    The copy replaces the repetition's file and its `unfinished` files.
    """
    file, older = repetition.file, [one for one in repetition.older if one.footer.unfinished_of is None]
    names = {*file.footer.replaces, *(one.path.name for one in (file, *repetition.unfinished))}
    footer = replace(file.footer, replaces=tuple(sorted(names)), written_at=datetime.now(UTC), behaviour_version=0)
    path = file.path.with_name(f"{uuid.uuid4()}.parquet")
    with atomic_write(path, staging) as staged, rewriting_engine(staging) as engine:
        write_visits(_not_in(engine, file, older).to_arrow_reader(ROW_GROUP), staged, footer)
    return read_visit_file(path)
