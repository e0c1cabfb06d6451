"""A failure that may be temporary is a 500 with advice to retry, on every route and page, and the log has its cause."""

import io
import json
import sqlite3
from contextlib import closing, contextmanager
from datetime import date
from functools import partial

import duckdb
import pytest

import data.manifest.schema
import queries.warehouse
from data.errors import LakeDamaged
from queries import ClusterTimeout, Scope, Warehouse
from queries.locked_engine import LockedEngine
from service.access.sessions import SessionStore
from service.core.http.problems import TEMPORARY, problem_of
from service.core.logs import Log
from tests.support.control import open_store
from tests.support.manifests import database_of
from tests.support.visits import land, visit

WEEK = "start_date=2026-03-02&end_date=2026-03-08"
ENDLESS = "SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b WHERE a.range * b.range = 7"
HUGE = "SELECT max(a) FROM (SELECT row_number() OVER (ORDER BY hash(range)) AS a FROM range(3000000))"
DELETED = "SELECT count(*) FROM read_parquet('{lake}/visits/organization=acme/gone.parquet')"
BUSY = sqlite3.OperationalError("database is locked")
BUSY.sqlite_errorcode = sqlite3.SQLITE_BUSY


class Ended:
    """An engine after a fatal error."""

    def cursor(self):
        raise duckdb.FatalException("database has been invalidated because of a previous fatal error")


def lose_engine(monkeypatch):
    monkeypatch.setattr(LockedEngine, "_replace", lambda *_: None)
    monkeypatch.setattr(LockedEngine, "cursor", on_an_ended_engine(LockedEngine.cursor))


def on_an_ended_engine(cursor):
    @contextmanager
    def ended(engine, *arguments, **options):
        real, engine._duckdb = engine._duckdb, Ended()
        try:
            with cursor(engine, *arguments, **options) as own:
                yield own
        finally:
            engine._duckdb = real

    return ended


def fail_by(monkeypatch, lake, failure):
    """Make every answer fail as the real engine or manifest would."""
    if failure == "engine lost":
        lose_engine(monkeypatch)
    elif failure == "files replaced":
        stale = lake.manifest.files.live("acme")
        with database_of(lake.manifest).transaction() as db:
            db.execute("DELETE FROM files")
        (lake.root / stale[0].path).unlink()
        monkeypatch.setattr("data.Lake.live_files", lambda *_: stale)
    else:
        sql = {"too slow": ENDLESS, "too large": HUGE, "files deleted": DELETED.format(lake=lake.root)}[failure]
        monkeypatch.setattr(queries.warehouse, "template", lambda _: sql)


FAILURES = {
    "too slow": ("QueryTimeout", "The query took too long and was stopped."),
    "too large": ("OutOfMemory", "The query needs more memory than is free."),
    "files deleted": ("FilesGone", "The answer was interrupted."),
    "files replaced": ("Conflict", "The answer was interrupted."),
    "engine lost": ("EngineLost", "The answer was interrupted."),
}
"""For each failure: the error in the log, and the error of the response."""


@pytest.mark.parametrize("failure", FAILURES)
def test_a_temporary_failure_gets_advice_to_retry_and_is_logged(lake, opened, monkeypatch, failure):
    land(lake, "acme", [visit()])
    raised, error = FAILURES[failure]
    monkeypatch.setattr(
        "service.app.application.Warehouse", partial(Warehouse, seconds=1 if failure == "too slow" else 60)
    )
    lines = io.BytesIO()
    with closing(log := Log(lines)), opened(lake, memory="12MB", log=log) as client, monkeypatch.context() as patch:
        fail_by(patch, lake, failure)
        for name in ("dashboard", "devices"):
            response = client.get(f"/analytics/{name}?{WEEK}")
            assert response.status_code == 500, response.text
            assert response.json()["error"] == error
            assert "etry" in response.json()["message"]
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["error"] for line in told if line["event"] == "failure"] == [raised] * 2


def test_a_query_after_a_temporary_failure_is_answered(lake, client, monkeypatch):
    land(lake, "acme", [visit()])
    with monkeypatch.context() as patch:
        patch.setattr(queries.warehouse, "template", lambda _: DELETED.format(lake=lake.root))
        assert client.get(f"/analytics/devices?{WEEK}").status_code == 500
    assert client.get(f"/analytics/devices?{WEEK}").json()[0]["visits"] == 1


def test_a_page_reports_a_temporary_failure(lake, client, monkeypatch):
    land(lake, "acme", [visit()])
    with open_store(SessionStore, lake) as sessions:
        cookie = sessions.open_by_link(sessions.create_link("acme")).secret
    monkeypatch.setattr(queries.warehouse, "template", lambda _: DELETED.format(lake=lake.root))
    page = client.get(f"/app/?{WEEK}", headers={"Cookie": f"traffic={cookie}"})
    assert page.status_code == 500
    assert "The answer was interrupted." in page.text


def test_a_write_that_waits_too_long_is_a_temporary_failure(lake, opened, monkeypatch):
    monkeypatch.setattr(data.manifest.schema, "_MAX_WAIT_SECONDS", 0.1)
    with opened(lake) as client, closing(sqlite3.connect(lake.root / "control.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        hook = {"name": "x", "url": "https://203.0.113.7/"}
        response = client.post("/agent-hooks", json=hook)
        assert (response.status_code, response.json()["error"]) == (500, "The answer was interrupted.")
        other.rollback()
        assert client.post("/agent-hooks", json=hook).status_code == 201


@pytest.mark.parametrize(
    "error",
    [*(kind("x") for kind in TEMPORARY[:-1]), ClusterTimeout("x"), BUSY],
    ids=lambda error: type(error).__name__,
)
def test_the_message_of_every_temporary_failure_says_to_retry(error):
    problem = problem_of(error)
    assert problem.status == 500
    assert "etry" in problem.body["message"]


def test_a_permanent_database_error_is_an_internal_error():
    assert problem_of(sqlite3.OperationalError("no such table: x")).body["error"] == "The request failed."


# Files that are replaced while they are listed


DAYS = Scope("acme", date(2026, 3, 2), date(2026, 3, 8))


def test_an_answer_reads_the_files_that_replaced_deleted_ones(lake, client, monkeypatch):
    land(lake, "acme", [visit()])
    stale = lake.manifest.files.live("acme")
    with database_of(lake.manifest).transaction() as db:
        db.execute("DELETE FROM files")
    (lake.root / stale[0].path).unlink()
    land(lake, "acme", [visit(), visit()])
    listed = iter([stale])
    live_files = type(lake).live_files
    monkeypatch.setattr("data.Lake.live_files", lambda lake, *asked: next(listed, None) or live_files(lake, *asked))
    assert client.get(f"/analytics/devices?{WEEK}").json()[0]["visits"] == 2
    assert next(listed, None) is None


def test_a_file_that_is_missing_but_listed_is_damage(lake):
    land(lake, "acme", [visit()])
    (file,) = lake.manifest.files.live("acme")
    (lake.root / file.path).unlink()
    with closing(Warehouse(lake)) as warehouse, pytest.raises(LakeDamaged):
        warehouse.snapshot(DAYS)
