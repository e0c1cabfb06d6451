"""Umami's tables and what its queries count, on a PostgreSQL of this machine."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import duckdb
import psycopg

from benchmarks.peers import Rows, World, filled, statements
from queries import ENTRIES, Scope, Warehouse

_ASKED: Final = {
    "traffic-overview": ("totals", ""),
    "time-series": ("days", ""),
    "paths": ("pages", "url_path"),
    "referrers": ("pages", "referrer_domain"),
    "geographic": ("sessions", "country"),
    "browsers": ("sessions", "browser"),
    "operating-systems": ("sessions", "os"),
    "devices": ("sessions", "device"),
}
"""Statements of umami.sql with the column that they count by, by the names of ours that count the same."""
_SCOPE: Final = (
    "website_event.website_id = %(website)s AND website_event.created_at BETWEEN %(start)s AND %(end)s "
    "AND website_event.event_type NOT IN (2, 5)"
)
_FROM_ELSEWHERE: Final = " AND referrer_domain <> '' AND referrer_domain <> regexp_replace(hostname, '^www.', '')"
Connection = psycopg.Connection[tuple[Any, ...]]

MEMBERS: Final = {name: ENTRIES[name] for name in _ASKED}
"""Answers of ours with a number that Umami gives, too: visits in all, by day, path and referrer, and visitors in all,
by country, browser, system and device."""
_LEFT_OUT: Final = ("unknown", "(direct)", "bot")
"""Rows of ours that Umami does not give: it leaves out what is not known, and automata have no device."""


def programs() -> str | None:
    """The folder of PostgreSQL's programs, which Debian keeps outside of PATH; None if it is not installed."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), os.environ.get("PATH", os.defpath)]
    found = shutil.which("initdb", path=os.pathsep.join(map(str, folders)))
    return found and str(Path(found).parent)


@contextmanager
def postgresql(folder: Path) -> Iterator[Path]:
    """A server with default settings over a folder that is kept, which listens on a socket in that folder only.

    PostgreSQL refuses to run as root, so root starts it as the user that Debian's package makes.
    """
    owner: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    def run(program: str, *words: str) -> None:
        command = [f"{programs()}/{program}", "-D", str(folder), *words]
        ran = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **owner)
        if ran.returncode:
            raise SystemExit(f"{program} failed in {folder}: {ran.stderr}")

    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if owner:
        shutil.chown(folder, "postgres", "postgres")
    if not (folder / "PG_VERSION").exists():
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
    run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", f"-c listen_addresses= -k '{folder}'", "restart")
    try:
        yield folder
    finally:
        run("pg_ctl", "-w", "-m", "fast", "stop")


class Umami:
    """The visits of one world in Umami's tables."""

    def __init__(self, socket: Path, world: World) -> None:
        self._socket, self._schema = socket, f"visits_{world.name}_{world.digest}".replace("-", "_")
        self._texts = statements("umami.sql")
        with self.connection() as connection:
            if connection.execute("SELECT to_regnamespace(%s) IS NULL", [self._schema]).fetchall() == [(True,)]:
                with connection.transaction():
                    self._load(connection, world)
            connection.execute("VACUUM ANALYZE website_event, session")

    def connection(self) -> Connection:
        """A new connection, for which nothing is prepared."""
        options = f"-c search_path={self._schema} -c timezone=UTC"
        return psycopg.connect(
            host=str(self._socket), user="postgres", options=options, autocommit=True, prepare_threshold=None
        )

    def ask(self, connection: Connection, member: str, scope: Scope) -> Rows:
        """Umami's answer for a member."""
        text, column = _ASKED[member]
        condition = _SCOPE + (_FROM_ELSEWHERE if member == "referrers" else "")
        asked = {
            "website": UUID(hashlib.md5(scope.organization.encode()).hexdigest()),
            "start": datetime.combine(scope.start_date, time.min, UTC),
            "end": datetime.combine(scope.end_date, time.max, UTC),
        }
        sql = filled(self._texts[text], {"column": column, "scope": condition})
        return connection.execute(sql.encode(), asked).fetchall()

    def check(self, warehouse: Warehouse, scope: Scope) -> None:
        """End the program unless Umami counts what we count."""
        ours = {name: warehouse.answer(entry, warehouse.snapshot(scope)) for name, entry in MEMBERS.items()}
        with self.connection() as connection:
            for member in MEMBERS:
                rows, numbers = self.ask(connection, member, scope), _numbers(member, ours)
                if member == "traffic-overview":
                    rows = [*zip(("visits", "visitors"), rows[0], strict=False)]
                theirs = {str(name): int(number) for name, number, *_ in rows}
                if member == "paths":  # ours are those with most visits, Umami's those with most visitors
                    theirs = {name: number for name, number in theirs.items() if name in numbers}
                if theirs != numbers:
                    differing = sorted(theirs.items() ^ numbers.items())
                    raise SystemExit(f"Umami answers {member} otherwise: {differing[:4]}")

    def bytes_on_disk(self) -> int:
        """Size of the tables and their indexes."""
        sql = "SELECT pg_total_relation_size('website_event') + pg_total_relation_size('session')"
        with self.connection() as connection:
            return int(connection.execute(sql).fetchall()[0][0])

    def _load(self, connection: Connection, world: World) -> None:
        """Make the tables from the visits of all organizations, in the order in which they came."""
        connection.execute(f"CREATE SCHEMA {self._schema};{self._texts['tables']}".encode())
        engine, manifest = duckdb.connect(), world.lake.manifest
        files = [file.path for name in manifest.organizations.names() for file in manifest.files.live(name)]
        paths = [f"{world.lake.root}/{path}" for path in files]
        engine.read_parquet(paths, hive_partitioning=True).create_view("files")
        engine.sql(statements("raw.sql")["visits"]).create_view("visits")
        with tempfile.TemporaryDirectory() as folder:
            for table in ("website_event", "session"):
                rows = engine.sql(self._texts[table])
                rows.write_csv(f"{folder}/{table}")
                copy = f"COPY {table} ({', '.join(rows.columns)}) FROM STDIN (FORMAT csv, HEADER)"
                with Path(folder, table).open("rb") as file, connection.cursor().copy(copy.encode()) as copied:
                    while part := file.read(1_000_000):
                        copied.write(part)
        connection.execute(self._texts["indexes"].encode())


def _numbers(member: str, answers: dict[str, Any]) -> dict[str, int]:
    """The numbers in our answers that Umami gives for a member, by name."""
    if member == "traffic-overview":
        visitors = sum(row["unique_visitors"] for row in answers["geographic"])  # each is in one country
        return {"visits": answers[member]["total_visits"], "visitors": visitors}
    name = MEMBERS[member].fields[0].name
    number = {"time-series": "total_visits", "paths": "visits", "referrers": "visits"}.get(member, "unique_visitors")
    numbers = {str(row[name]): row[number] for row in answers[member] if row[number]}
    return {name: number for name, number in numbers.items() if name not in _LEFT_OUT}
