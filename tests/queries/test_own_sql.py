"""Custom SQL reads one organization's visits and links, writes nothing and keeps to its limits, whatever the query."""

import fcntl
import io
import os
import pickle
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import duckdb
import pytest

from data import BadInput, Lake
from queries import OwnSql, QueryFailed, QueryTimeout, RollupBuilder, Scope, Warehouse, relations, template
from queries.own_sql import PlainUnpickler
from queries.prelude import public_names
from tests.faults.trials import scaled
from tests.support.forks import ROOT
from tests.support.sql import LEAVES, answer
from tests.support.tables import examples, examples_at_once, tables
from tests.support.visits import land, links, visit

DAYS = (date(2026, 3, 2), date(2026, 3, 8))
SCOPE = Scope("ant", *DAYS)
SECRET = "canary-secret"
VISITS = "{lake}/visits/organization=ant/day=2026-03-04"
COUNT = "SELECT count(*) FROM visits_in_scope"


def opened(lake, **limits):
    """Return a context manager that opens custom SQL for the organization ant."""
    return closing(OwnSql(lake, "ant", **limits))


@pytest.fixture(scope="module")
def lake(tmp_path_factory, new_lake):
    """A lake with every kind of file, and with secrets beside its visits, outside it, and behind symbolic links."""
    lake = new_lake(tmp_path_factory.mktemp("lakes") / "lake")
    land(lake, "ant", [visit(short_code="sale"), visit(short_code="sale", bot_category="ai_training")])
    links(lake, "ant", [{"short_code": "sale", "target_url": "https://ant.example"}])
    for other in ("bee", "ant2"):  # a name that begins with ant
        land(lake, other, [visit(short_code=SECRET, path=SECRET, domain=SECRET)])
        links(lake, other, [{"short_code": SECRET, "target_url": f"https://{SECRET}.example"}])
    RollupBuilder(lake).run()
    (file,) = lake.root.glob("visits/organization=bee/*/*.parquet")
    shutil.copy(file, file.with_name("secret.parquet"))  # a name that tests can use
    own = lake.root / "visits" / "organization=ant"
    (own / "file.parquet").symlink_to(file)
    (own / "folder").symlink_to(lake.root / "visits" / "organization=bee")
    outside = lake.root.parent
    beside = Path(f"{lake.root}-beside")
    beside.mkdir()
    for path in (outside / "secret.csv", beside / "secret.csv", lake.root / "secret.csv", lake.root / "salts.sqlite",
                 lake.root / "control.sqlite", lake.rejects / "secret.csv", lake.ip_lists / "secret.csv",
                 lake.staging / "secret.csv", lake.root / "visits-beside.csv"):  # fmt: skip
        path.write_text(f"secret\n{SECRET}\n")
    (lake.root / "visits" / "out.csv").symlink_to(outside / "secret.csv")
    (lake.root / "visits" / "up").symlink_to(lake.root)
    (lake.root / "links" / "out.sqlite").symlink_to(lake.root / "salts.sqlite")
    yield lake
    lake.manifest.close()


@pytest.fixture(scope="module")
def warehouse(lake):
    with closing(Warehouse(lake)) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def own_sql(lake):
    with opened(lake) as own_sql:
        own_sql.sql("SELECT 1", SCOPE)  # its folder exists
        yield own_sql


@pytest.fixture
def untouched(lake):
    """Fail if a file in or around the lake appears, disappears or changes."""

    def seen():
        return {
            str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in lake.root.parent.rglob("*")
            if path.is_file() and not path.name.startswith("manifest.sqlite")
        }

    before = seen()
    yield
    assert seen() == before


READING, WRITING, SETTING, OTHERS = (tables(__file__)[name] for name in ("READING", "WRITING", "SETTING", "OTHERS"))


@pytest.mark.parametrize("sql", READING + WRITING + SETTING)
def test_forbidden_sql_is_rejected(lake, own_sql, untouched, sql):
    python_variable = [SECRET]  # noqa: F841  # a name that an engine open to Python would find
    outside = lake.root.parent
    text = sql.format(outside=outside, lake=lake.root, visits=VISITS.format(lake=lake.root))
    with pytest.raises(QueryFailed) as refused:
        own_sql.sql(text, SCOPE)
    assert SECRET not in str(refused.value)
    assert own_sql.sql("SELECT count(*) FROM countries", SCOPE).rows == [(250,)]


@pytest.mark.parametrize("sql", OTHERS)
def test_files_of_other_organizations_cannot_be_opened(lake, own_sql, sql):
    with pytest.raises(QueryFailed, match=r"Permission Error: Cannot access file|is a symbolic link") as refused:
        own_sql.sql(sql.format(lake=lake.root), SCOPE)
    assert SECRET not in str(refused.value).replace(
        f"'{SECRET}'", ""
    )  # except for the query itself, which it may quote


@examples_at_once("table", "meant")
def test_an_error_about_an_unknown_table_suggests_a_known_one(own_sql, table, meant):
    with pytest.raises(QueryFailed, match=rf'name {table} does not exist! Did you mean "{meant}"\? In line 1: '):
        own_sql.sql(f"SELECT * FROM {table}", SCOPE)
    assert meant in relations()


def test_every_public_relation_is_described_and_can_be_read(own_sql):
    for name in public_names():
        own_sql.sql(f"SELECT * FROM {name} LIMIT 1", SCOPE)
        assert name in relations()


@examples_at_once("sql")
def test_read_only_statements_are_answered(lake, own_sql, sql):
    assert own_sql.sql(sql.format(lake=lake.root), SCOPE).rows


def test_a_rejection_does_not_reveal_which_organizations_exist(lake, own_sql):
    def refusal(organization):
        with pytest.raises(QueryFailed) as refused:
            own_sql.sql(f"FROM read_parquet('{lake.root}/visits/organization={organization}/*/*.parquet')", SCOPE)
        return str(refused.value).replace(organization, "")

    assert refusal("bee") == refusal("nobody")
    with pytest.raises(ValueError, match="bee"):
        own_sql.sql("FROM visits_in_scope", Scope("bee", *DAYS))
    with pytest.raises(BadInput, match="is not a valid organization name"):
        OwnSql(lake, "../bee")


def test_every_template_as_custom_sql_returns_the_same_rows(lake, warehouse, own_sql):
    snapshot = warehouse.snapshot(SCOPE)
    assert snapshot.closed_days  # rollups, too
    for entry in LEAVES.values():
        expected = warehouse.answer(entry, snapshot)
        found = own_sql.sql(template(entry.name), SCOPE)
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        assert rows == ([expected] if isinstance(expected, dict) else expected)


@pytest.mark.parametrize(("max_rows", "is_cut"), [(2, True), (3, False), (4, False), (None, False)])
def test_rows_past_the_limit_are_omitted_and_reported(own_sql, max_rows, is_cut):
    found = own_sql.sql("FROM range(3) AS numbers(number)", SCOPE, max_rows)
    assert found == (["number"], [(0,), (1,), (2,)][:max_rows], is_cut)


def test_rows_past_the_limit_are_never_computed(own_sql):
    assert own_sql.sql("FROM range(100000000000)", SCOPE, max_rows=1).rows == [(0,)]


def test_a_table_has_the_rows_of_all_batches(own_sql):
    assert own_sql.table("FROM range(70000) AS numbers(number)", SCOPE)["number"].to_pylist() == [*range(70_000)]


def test_custom_sql_is_stopped_at_its_time_limit(lake):
    with opened(lake, seconds=0.3) as own_sql:
        with pytest.raises(QueryTimeout):
            own_sql.sql("SELECT count(*) FROM range(10000000) AS a(x), range(10000000) AS b(y) WHERE x + y = 7", SCOPE)
        assert own_sql.sql(COUNT, SCOPE).rows == [(2,)]


def test_a_table_is_stopped_at_its_time_limit(lake):
    slow = "FROM range(100000000000) AS numbers(number) WHERE sin(number) > 0.999999"
    with opened(lake, seconds=0.3) as own_sql, pytest.raises(QueryTimeout):
        own_sql.table(slow, SCOPE)


def test_an_error_in_the_middle_of_a_table_is_reported(own_sql):
    text = "SELECT CAST(if(number = 60000, 'sixty', '1') AS INTEGER) FROM range(70000) AS numbers(number)"
    with pytest.raises(QueryFailed, match=r"^Conversion Error: Could not convert string 'sixty' to INT32") as failed:
        own_sql.table(text, SCOPE)
    assert "VARCHAR" not in str(failed.value)


@examples("sql", "told")
def test_custom_sql_too_large_for_memory_is_rejected_clearly(lake, sql, told):
    with opened(lake, memory="20MB") as own_sql:
        for read in (own_sql.sql, own_sql.table):
            with pytest.raises(QueryFailed, match=rf"^{told}: read fewer columns, rows or days, or shorter strings\.$"):
                read(sql, SCOPE)
        assert own_sql.sql(COUNT, SCOPE).rows == [(2,)]


@examples_at_once("sql")
def test_values_of_every_type_equal_those_of_the_engine(own_sql, sql):
    with closing(duckdb.connect()) as engine:
        expected = engine.execute(sql).fetchall()
    assert repr(own_sql.sql(sql, SCOPE).rows) == repr(expected)


def test_a_hanging_process_is_killed_and_replaced(lake):
    with opened(lake, seconds=0.1) as own_sql:
        assert own_sql.sql("SELECT 1", SCOPE).rows == [(1,)]
        os.kill(own_sql._process.pid, signal.SIGSTOP)
        with pytest.raises(QueryTimeout, match=r"longer than 0\.1 seconds"):
            own_sql.sql("SELECT 1", SCOPE)
        assert own_sql.sql("SELECT 1", SCOPE).rows == [(1,)]


@pytest.mark.parametrize("seconds", [None, 0, 0.2], ids=["before its first query", "idle", "during a query"])
def test_a_killed_process_is_reported_clearly(lake, seconds):
    with opened(lake) as own_sql:
        if seconds is not None:
            own_sql.sql("SELECT 1", SCOPE)
        killing = threading.Timer(seconds or 0, os.kill, [own_sql._process.pid, signal.SIGKILL])
        killing.start()
        told = r"^its process ended, probably because it needed more memory than 300MB: read fewer .*\.$"
        with pytest.raises(QueryFailed, match=told) if seconds else suppress(QueryFailed):
            own_sql.sql("SELECT count(*) FROM range(100000000000)" if seconds else "SELECT 1", SCOPE)
        killing.join()
        assert own_sql.sql("SELECT 1", SCOPE).rows == [(1,)]


_ASKING = """
from datetime import date
from pathlib import Path
from data import Lake
from queries import OwnSql, Scope
own_sql = OwnSql(Lake(Path({root!r})), "ant")
scope = Scope("ant", date(2026, 3, 2), date(2026, 3, 8))
own_sql.sql("SELECT 1", scope)
print(own_sql._process.pid, flush=True)
own_sql.sql("SELECT count(*) FROM range(1000000000000)", scope)
"""


only_linux = pytest.mark.skipif(not Path("/proc").exists(), reason="only Linux has /proc")


@only_linux
def test_the_process_ends_with_its_parent_even_during_a_query(lake):
    command = [sys.executable, "-c", _ASKING.format(root=str(lake.root))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as asking:
        process = Path("/proc", asking.stdout.readline().strip())
        time.sleep(0.3)  # it is running its query, with a limit of ten seconds
        asking.kill()
    killed_at = time.monotonic()
    while process.exists() and "\nState:\tZ" not in (process / "status").read_text():
        assert time.monotonic() - killed_at < 8
        time.sleep(0.05)


@only_linux
def test_a_process_without_its_parent_leaves_no_spilled_files(lake):
    asking = _ASKING.replace(
        'OwnSql(Lake(Path({root!r})), "ant")', 'OwnSql(Lake(Path({root!r})), "ant", memory="60MB")'
    )
    sql = "SELECT max(a) FROM (SELECT hash(range)::VARCHAR || repeat('x', 60) AS a FROM range(100000000) ORDER BY 1)"
    script = asking.format(root=str(lake.root)).replace("SELECT count(*) FROM range(1000000000000)", sql)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT) as asked:
        process = int(asked.stdout.readline())
        while not list(lake.staging.glob(f"engine-{process}-*/*")):
            assert asked.poll() is None
            time.sleep(0.005)
        asked.kill()
    while (
        Path("/proc", str(process)).exists() and "\nState:\tZ" not in Path("/proc", str(process), "status").read_text()
    ):
        time.sleep(0.05)
    assert not list(lake.staging.glob(f"engine-{process}-*"))


@only_linux
def test_the_next_engine_deletes_spills_of_killed_processes(lake):
    sql = "SELECT max(a) FROM (SELECT hash(range)::VARCHAR || repeat('x', 60) AS a FROM range(100000000) ORDER BY 1)"
    script = _ASKING.format(root=str(lake.root)).replace('"ant")', '"ant", memory="60MB")')
    script = script.replace("SELECT count(*) FROM range(1000000000000)", sql)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT) as asked:
        process = int(asked.stdout.readline())
        while not list(lake.staging.glob(f"engine-{process}-*/*")):
            assert asked.poll() is None
            time.sleep(0.005)
        os.kill(process, signal.SIGSTOP)  # so that it cannot clean up, whichever is killed first
        try:
            with closing(Warehouse(lake)):
                assert list(lake.staging.glob(f"engine-{process}-*/*"))  # of a living process
        finally:
            asked.kill()
            os.kill(process, signal.SIGKILL)
    (lock,) = lake.staging.glob(f"spilling-{process}-*")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # when all threads of the process have ended
    assert list(lake.staging.glob(f"engine-{process}-*/*"))
    with closing(Warehouse(lake)):
        assert not list(lake.staging.glob(f"*-{process}-*"))


def test_running_engines_keep_their_spilled_files(lake):
    """Processes in other containers may have the same process ID."""
    own_sql = OwnSql(lake, "acme")
    name = f"{own_sql._process.pid}-other"
    (lake.staging / f"engine-{name}").mkdir()
    with (lake.staging / f"spilling-{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        own_sql.close()
        assert (lake.staging / f"engine-{name}").exists()


def test_an_engine_that_ends_leaves_no_lock(lake):
    before = set(lake.staging.glob("spilling-*"))  # of other engines
    warehouse = Warehouse(lake)
    assert len(set(lake.staging.glob("spilling-*")) - before) == 1
    warehouse.close()
    assert set(lake.staging.glob("spilling-*")) <= before


@only_linux
def test_four_gigabytes_of_text_take_less_than_a_gigabyte(lake):
    peak = []

    def watch(pid):
        with suppress(OSError):
            while True:
                found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc", str(pid), "status").read_text())
                if found is None:  # the process has ended
                    return
                peak.append(int(found[1]))
                time.sleep(0.02)

    with opened(lake) as own_sql:
        own_sql.sql("SELECT 1", SCOPE)
        watching = threading.Thread(target=watch, args=(own_sql._process.pid,))
        watching.start()
        with pytest.raises(QueryFailed, match=r"^it needs more memory than 300MB: read fewer .*\.$"):
            own_sql.sql("SELECT repeat('x', 100000000) FROM range(40)", SCOPE)
        watching.join()
    assert 100_000 < max(peak) < 1_000_000


def test_queries_from_several_threads_get_the_right_answers(own_sql):
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda number: own_sql.sql(f"SELECT {number}", SCOPE).rows, range(40))
        assert [*answers] == [[(number,)] for number in range(40)]


@only_linux
def test_the_process_has_no_secrets_and_no_open_database(lake, monkeypatch):
    monkeypatch.setenv("TRAFFIC_SECRET", SECRET)
    with opened(lake) as own_sql, sqlite3.connect(lake.root / "manifest.sqlite"):
        assert own_sql.sql(COUNT, SCOPE).rows == [(2,)]
        process = Path("/proc", str(own_sql._process.pid))
        assert SECRET not in (process / "environ").read_text()
        files = {str(file.readlink()) for file in (process / "fd").iterdir()}
    lock = f"{lake.staging}/spilling-"  # an empty file
    assert {path for path in files if not path.startswith(("/dev/null", "socket:", lock))} == set()


def test_only_plain_values_are_unpickled():
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.system is not an SQL value"):
        PlainUnpickler(io.BytesIO(pickle.dumps(("rows", [(os.system,)])))).load()


def test_links_imported_after_the_engine_started_are_read(lake):
    scope = Scope("new", *DAYS)
    with closing(OwnSql(lake, "new")) as own_sql:
        assert own_sql.sql("FROM links_in_scope", scope).rows == []
        land(lake, "new", [visit()])
        links(lake, "new", [{"short_code": "sale", "target_url": "https://new.example"}])
        assert own_sql.sql("SELECT short_code FROM links_in_scope", scope).rows == [("sale",)]
        assert own_sql.sql(COUNT, scope).rows == [(1,)]


def hostile(many):
    """Yield strings that would do harm as SQL, a path or a pattern."""
    actions = [sql.format(outside="/tmp", lake="/tmp", visits="/tmp") for sql in (*READING, *WRITING, *SETTING)]
    ends = ("'", "''", '"', "$$", ";", "--", "/*", "\\", "\0", "%", "$1", "$value", "{", "\u2019")
    choice = random.Random(32).choice
    for number in range(many):
        action = actions[number % len(actions)]
        yield choice(ends) + choice((") ", " ", "; ", "]) ")) + action + choice(("", " --", *ends))


def test_no_template_parameter_is_interpreted_as_sql(warehouse, untouched):
    snapshot = warehouse.snapshot(SCOPE)
    fields = ("organization", "short_code", "domain", "traffic_type")

    @cache
    def asked_about(name, field, text):
        changed = replace(snapshot, scope=replace(snapshot.scope, **{field: text}))
        return warehouse.answer(LEAVES[name], changed)

    asked = [(name, fields[(place + turn) % 4]) for turn in (0, 2, 1, 3) for place, name in enumerate(LEAVES)]
    texts = list(hostile(scaled(2 * len(LEAVES), 20_000)))  # each template with two of the fields
    for number, text in enumerate(texts):
        name, field = asked[number % len(asked)]
        assert asked_about.__wrapped__(name, field, text) == asked_about(name, field, "nothing")
    assert answer(warehouse, "traffic-overview", SCOPE)["total_visits"] == 2
    print(f"hostile parameters: {len(texts)} in {len(LEAVES)} templates, none interpreted as SQL")


@pytest.fixture(scope="module")
def limited(lake):
    """A function that runs custom SQL with limits, in a new process each time."""

    def limited(text):
        with opened(lake, memory="200MB", seconds=2) as own_sql:
            return own_sql.sql(text, SCOPE).rows

    return limited


def test_an_engine_has_limits_on_memory_and_disk(limited):
    limits = limited("SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')")
    assert limits == [("190.7 MiB", "3.7 GiB")]


def test_an_engine_has_a_time_limit(limited):
    limit = limited("SELECT value FROM duckdb_settings() WHERE name = 'max_execution_time'")
    assert limit in ([("2000",)], [])  # DuckDB 1.5 has no time limit


def test_each_engine_spills_into_its_own_folder(lake, limited):
    folders = {limited("SELECT current_setting('temp_directory')")[0] for _ in range(2)}
    assert [Path(folder).parent for (folder,) in folders] == [lake.staging] * 2


def test_the_configuration_of_an_engine_is_locked(limited):
    closed = ("enable_external_access", "python_enable_replacements", "autoinstall_known_extensions",
              "autoload_known_extensions")  # fmt: skip
    assert limited("SELECT current_setting('lock_configuration')") == [(True,)]
    assert limited("SELECT " + ", ".join(f"current_setting('{name}')" for name in closed)) == [(False,) * 4]


SPILLING = """
SELECT max(place) FROM (
    SELECT row_number() OVER (ORDER BY text) AS place
    FROM (SELECT CAST(hash(number) AS VARCHAR) || repeat('x', 60) AS text FROM range(800000) AS numbers(number))
)
"""


def test_a_query_too_large_for_its_memory_leaves_no_files(lake):
    with opened(lake, memory="8MB", seconds=60) as own_sql:
        for _ in range(2):
            with pytest.raises(QueryFailed, match=r"^it needs more memory than 8MB: "):
                own_sql.sql(SPILLING, SCOPE)
            assert own_sql.sql(template("traffic-overview"), SCOPE).rows[0][0] == 2
    assert not list(lake.staging.glob("engine*"))


def test_a_query_short_of_memory_spills_into_its_folder(lake):
    spilled = set()
    with opened(lake, memory="60MB", seconds=60) as own_sql, ThreadPoolExecutor(1) as pool:
        found = pool.submit(own_sql.sql, SPILLING, SCOPE)
        while not found.done():
            spilled |= set(lake.staging.glob("engine-*"))
            time.sleep(0.002)
        assert found.result().rows == [(800_000,)]
    assert len(spilled) == 1
    assert not list(lake.staging.glob("engine*"))


def test_a_lake_or_its_visits_may_be_behind_a_symbolic_link(tmp_path):
    real = Lake(tmp_path / "real", create=True)
    land(real, "ant", [visit()])
    real.manifest.close()
    (tmp_path / "disk").mkdir()
    (tmp_path / "real" / "visits").rename(tmp_path / "disk" / "visits")
    (tmp_path / "real" / "visits").symlink_to(tmp_path / "disk" / "visits")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    for name in ("real", "linked"):
        lake = Lake(tmp_path / name)
        with closing(Warehouse(lake)) as warehouse:
            assert answer(warehouse, "traffic-overview", SCOPE)["total_visits"] == 1
        lake.manifest.close()
