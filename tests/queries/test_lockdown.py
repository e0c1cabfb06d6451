"""The engine reads visits and links and nothing else, writes nothing, and keeps its limits, whatever it is asked."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from data import Lake
from queries import ENTRIES, QueryFailed, Scope, Warehouse, template_entries
from tests.faults.trials import scaled
from tests.tables import examples, tables
from tests.visits import land as landed
from tests.visits import links, visit

DAYS = (date(2026, 3, 2), date(2026, 3, 8))
SECRET = "canary-secret"
LEAVES = {leaf.name: leaf for entry in ENTRIES.values() for leaf in template_entries(entry)}
VISITS = "{lake}/visits/organization=ant/day=2026-03-04"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake with every kind of file; secrets lie beside its visits, around it, and behind links out of it."""
    lake = Lake(tmp_path_factory.mktemp("lakes") / "lake", create=True)
    landed(lake, "ant", [visit(short_code="sale"), visit(short_code="sale", bot_category="ai_training")])
    links(lake, "ant", [{"short_code": "sale", "target_url": "https://ant.example"}])
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


@pytest.fixture
def untouched(lake):
    """Fails when a file in or around the lake came, went or changed."""

    def seen():
        return {
            str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in lake.root.parent.rglob("*")
            if path.is_file() and not path.name.startswith("manifest.sqlite")
        }

    before = seen()
    yield
    assert seen() == before


READING = tables(__file__)["READING"]
WRITING = tables(__file__)["WRITING"]
SETTING = tables(__file__)["SETTING"]


@pytest.mark.parametrize("sql", READING + WRITING + SETTING)
def test_what_an_operators_own_template_may_not_do_is_refused(lake, warehouse, untouched, sql):
    python_variable = [SECRET]  # noqa: F841  # a name that an engine open to Python would find
    outside = lake.root.parent
    text = sql.format(outside=outside, lake=lake.root, visits=VISITS.format(lake=lake.root))
    with pytest.raises(QueryFailed) as refused:
        warehouse.rows(text, warehouse.variables(Scope("ant", *DAYS)))
    assert SECRET not in str(refused.value)
    assert warehouse.rows("SELECT count(*) FROM countries", {})[1] == [(250,)]


@examples("sql")
def test_what_only_reads_is_answered(warehouse, sql):
    assert warehouse.rows(sql, warehouse.variables(Scope("ant", *DAYS)))[1]


def hostile(many):
    """Texts that would do harm, were they ever taken for SQL, a path or a pattern."""
    actions = [sql.format(outside="/tmp", lake="/tmp", visits="/tmp") for sql in (*READING, *WRITING, *SETTING)]
    ends = ("'", "''", '"', "$$", ";", "--", "/*", "\\", "\0", "%", "$1", "$value", "{", "\u2019")
    choice = random.Random(32).choice
    for number in range(many):
        yield (
            choice(ends)
            + choice((") ", " ", "; ", "]) "))
            + actions[number % len(actions)]
            + choice(("", " --", *ends))
        )


def test_no_parameter_of_a_template_is_ever_taken_for_sql(warehouse, untouched):
    variables = warehouse.variables(Scope("ant", *DAYS))
    fields = ("organization", "short_code", "domain", "traffic_type")
    of_nothing = {
        (name, field): warehouse.answer(LEAVES[name], variables | {"scope": variables["scope"] | {field: "nothing"}})
        for name in LEAVES
        for field in fields
    }
    asked = list(of_nothing)
    texts = list(hostile(scaled(300, 20_000)))
    for number, text in enumerate(texts):
        name, field = asked[number % len(asked)]
        scope = variables["scope"] | {field: text}
        assert warehouse.answer(LEAVES[name], variables | {"scope": scope}) == of_nothing[name, field]
    assert warehouse.answer(ENTRIES["traffic-overview"], variables)["total_visits"] == 2
    print(f"hostile parameters: {len(texts)} in {len(LEAVES)} templates, 0 taken for SQL")


def test_the_limits_are_set_and_each_engine_spills_into_a_folder_of_its_own(lake):
    asked = ("memory_limit", "max_temp_directory_size", "temp_directory", "lock_configuration",
             "enable_external_access", "python_enable_replacements",
             "autoinstall_known_extensions", "autoload_known_extensions")  # fmt: skip
    settings = "SELECT " + ", ".join(f"current_setting('{name}')" for name in asked)
    found = []
    for _ in range(2):
        with closing(Warehouse(lake, memory="200MB", seconds=2)) as warehouse:
            found.append(warehouse.rows(settings, {})[1][0])
            limit = warehouse.rows("SELECT value FROM duckdb_settings() WHERE name = 'max_execution_time'", {})[1]
            assert limit in ([("2000",)], [])  # DuckDB 1.5 has none
    memory, spilled, folder, *locks = found[0]
    assert (memory, spilled) == ("190.7 MiB", "3.7 GiB")
    assert Path(folder).parent == lake.staging
    assert folder != found[1][2]
    assert locks == [True, False, False, False, False]


SPILLING = """
SELECT max(place) FROM (
    SELECT row_number() OVER (ORDER BY text) AS place
    FROM (SELECT CAST(hash(number) AS VARCHAR) || repeat('x', 60) AS text FROM range(800000) AS numbers(number))
)
"""


def test_a_query_too_large_for_its_memory_fails_alone_and_leaves_nothing(lake):
    with closing(Warehouse(lake, memory="8MB", seconds=60)) as warehouse:
        for _ in range(3):
            with pytest.raises(QueryFailed, match="Out of Memory"):
                warehouse.rows(SPILLING, {})
            overview = warehouse.answer(ENTRIES["traffic-overview"], warehouse.variables(Scope("ant", *DAYS)))
            assert overview["total_visits"] == 2
    assert not list(lake.staging.glob("engine*"))


def test_a_query_short_of_memory_spills_into_the_folder_of_its_engine(lake):
    spilled = set()
    with closing(Warehouse(lake, memory="60MB", seconds=60)) as warehouse, ThreadPoolExecutor(1) as pool:
        found = pool.submit(warehouse.rows, SPILLING, {})
        while not found.done():
            spilled |= set(lake.staging.glob("engine-*"))
            time.sleep(0.002)
        assert found.result()[1] == [(800_000,)]
    assert len(spilled) == 1
    assert not list(lake.staging.glob("engine*"))


def test_a_lake_or_its_visits_may_lie_behind_a_link(tmp_path):
    real = Lake(tmp_path / "real", create=True)
    landed(real, "ant", [visit()])
    real.manifest.close()
    (tmp_path / "disk").mkdir()
    (tmp_path / "real" / "visits").rename(tmp_path / "disk" / "visits")
    (tmp_path / "real" / "visits").symlink_to(tmp_path / "disk" / "visits")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    for name in ("real", "linked"):
        lake = Lake(tmp_path / name)
        with closing(Warehouse(lake)) as warehouse:
            overview = warehouse.answer(ENTRIES["traffic-overview"], warehouse.variables(Scope("ant", *DAYS)))
        lake.manifest.close()
        assert overview["total_visits"] == 1
