"""A lake that this program has written is opened by a program with one more column, then by this program again.

The newer program runs the tests that need the column, on a lake that this program wrote, and the tests for the lakes of
releases. With `TRAFFIC_FAULTS=all`, it answers every endpoint.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data import Lake
from data.disk.files import version_of
from data.errors import NewerVersion
from data.recovery.backup import back_up
from data.recovery.verification import verify_lake
from data.store import pending
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.visits import BOT_CATEGORIES, COLUMNS, SCHEMA_VERSION, VISITS
from queries import ENDPOINTS, ENTRIES, RollupBuilder, Scope, Warehouse
from service.core.control_database import ControlDatabase
from service.hooks.registry import Hooks
from tests.faults.trials import IS_LONG
from tests.support.lakes import opened, rebuilt
from tests.support.sql import answers as answers_of
from tests.support.sql import rows
from tests.support.visits import land, links, packed, visit

FILE = Path(__file__)
ROOT = FILE.parent.parent
OLDER, ANSWERS = "TRAFFIC_OLDER_LAKE", "answers.json"
"""The variable that tells the newer program where the older program's lake is, and the file next to it with the older
program's answers."""
HAS_COLUMN = any(column.name == "made_up" for column in COLUMNS)
NOW = datetime(2026, 5, 31, 9, tzinfo=UTC)
WHOLE = Scope("acme", date(2026, 3, 1), date(2026, 5, 31))
ASKED = [*ENDPOINTS] if IS_LONG else ["traffic-overview", "bot-traffic", "protocols"]

by_the_newer = pytest.mark.skipif(not HAS_COLUMN, reason="only the newer program has the column")
by_this = pytest.mark.skipif(HAS_COLUMN, reason="this is the newer program")


answers = partial(answers_of, scope=WHOLE, names=ASKED)


def visits_of(day, month=5):
    """Return one visit in each category."""
    return [
        visit(
            visited_at=datetime(2026, month, day, hour), bot_category=category, agent=category, visitor=hour,
            short_code="launch", path="/launch", protocol="HTTP/2", domain="go.example",
        )
        for hour, category in enumerate(BOT_CATEGORIES)
    ]  # fmt: skip


def versions(lake):
    """Return the schema versions of live files; check that the manifest and the files' footers agree."""
    files = lake.manifest.files.live("acme")
    found = [file.schema_version for file in files]
    assert [version_of(pq.read_metadata(lake.root / file.path)) for file in files] == found
    return set(found)


def written(root):
    """Write a lake with this program: closed days, one of them in two files, links, and pending visits."""
    lake = Lake(root, create=True)
    land(lake, "acme", [*visits_of(3, month=3), *visits_of(28), *visits_of(29)])
    land(lake, "acme", visits_of(29))
    links(lake, "acme", [{"short_code": "launch", "target_url": "https://shop.example"}])
    pending.enqueue(lake.manifest, [("acme", packed(visits_of(30)))], NOW)
    return lake


# By the newer program


@pytest.fixture
def lake(tmp_path):
    lake = Lake(shutil.copytree(os.environ[OLDER], tmp_path / "lake"))
    yield lake
    lake.manifest.close()
    with opened(lake.root) as after:
        assert verify_lake(after).findings == []


@pytest.fixture
def told():
    """The older program's answers."""
    return json.loads(Path(os.environ[OLDER]).with_name(ANSWERS).read_text())


@by_the_newer
@pytest.mark.parametrize("counted_ahead", [False, True])
def test_an_older_lake_with_new_seed_files_answers_as_before(lake, told, counted_ahead):
    assert versions(lake) == {SCHEMA_VERSION - 1}
    assert pq.read_schema(lake.seed_visits).equals(VISITS)
    assert version_of(pq.read_metadata(lake.seed_visits)) == SCHEMA_VERSION
    if counted_ahead:
        assert RollupBuilder(lake, lambda: NOW).run() > 0
    assert answers(lake) == told


@by_the_newer
def test_a_backup_answers_like_the_older_lake(lake, told, tmp_path):
    back_up(lake, tmp_path / "backup")
    with opened(tmp_path / "backup") as restored:
        assert answers(restored) == told
        assert pending.flush_all(restored) == len(BOT_CATEGORIES)


@by_the_newer
def test_an_older_lake_can_be_rebuilt(lake, told):
    with rebuilt(lake) as after:
        assert versions(after) == {SCHEMA_VERSION - 1}
        assert answers(after) == told


@by_the_newer
def test_the_new_column_works_on_old_and_new_visits(lake):
    """New visits are landed both directly and as pending visits, then merged, reclassified and partly erased."""

    def counts():
        sql = "SELECT made_up, count(*) FROM visits_in_scope GROUP BY made_up ORDER BY made_up NULLS FIRST"
        return dict(rows(warehouse, sql, warehouse.snapshot(WHOLE)))

    warehouse = Warehouse(lake)
    (old,) = counts().values()
    moment = datetime(2026, 5, 29, 12)
    land(lake, "acme", [visit(visited_at=moment, made_up=word, path="/new") for word in ("a", "a", "b")])
    pending.enqueue(
        lake.manifest, [("acme", packed([visit(visited_at=moment, made_up="c", domain="gone.example")]))], NOW
    )
    waited = pending.flush_all(lake) - 1
    assert waited == len(BOT_CATEGORIES)
    assert counts() == {None: old + waited, "a": 2, "b": 1, "c": 1}
    Compactor(lake, lambda: NOW).run()
    (merged,) = lake.manifest.files.live("acme", moment.date(), moment.date())
    assert merged.schema_version == SCHEMA_VERSION
    Reclassifier(lake, lambda: NOW).run(["acme"])
    assert counts() == {None: old + waited, "a": 2, "b": 1, "c": 1}
    Eraser(lake, lambda: NOW).run("acme", Criteria(domain="gone.example"))
    assert counts() == {None: old + waited, "a": 2, "b": 1}
    warehouse.close()


# By this program


def run_by_the_newer(*arguments, **environment):
    """Run tests with a program that has one more column; return the last line of the output."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "tests.support.newer_schema",
        "-p",
        "no:cacheprovider",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1]


@by_this
def test_a_program_with_one_more_column_can_use_the_lake(tmp_path):
    lake = written(tmp_path / "lake")
    (tmp_path / ANSWERS).write_text(json.dumps(answers(lake)))
    lake.manifest.close()
    assert run_by_the_newer(FILE, **{OLDER: str(lake.root)}).startswith("5 passed, 5 skipped")


@by_this
@pytest.mark.parametrize(("release", "tests"), [("1.0.0", 17), ("1.1.0", 18)])
def test_a_newer_program_opens_a_lake_from_a_release(release, tests):
    assert run_by_the_newer(FILE.with_name("test_release_lake.py"), "-k", release).startswith(f"{tests} passed")


WRITER = """
import sys
import tests.support.newer_schema
from datetime import UTC, datetime
from pathlib import Path
from data import Lake
from data.store import pending
from tests.support.visits import land, packed, visit
lake = Lake(Path(sys.argv[1]))
moment = datetime(2026, 5, 20, 12)
land(lake, "acme", [visit(visited_at=moment, made_up="newer")])
pending.enqueue(lake.manifest, [("acme", packed([visit(visited_at=moment, made_up="newer")]))], datetime.now(UTC))
lake.manifest.close()
"""


@by_this
def test_data_from_a_newer_program_is_rejected_but_not_lost(tmp_path):
    written(tmp_path / "lake").manifest.close()
    subprocess.run([sys.executable, "-c", WRITER, tmp_path / "lake"], cwd=ROOT, check=True)
    lake = Lake(tmp_path / "lake")
    refusal = (
        f"was written by a newer version of this program (visit schema {SCHEMA_VERSION + 1}, this one reads up to "
        f"{SCHEMA_VERSION}); upgrade"
    )
    newer = next(file for file in lake.manifest.files.live("acme") if file.schema_version > SCHEMA_VERSION)
    with pytest.raises(NewerVersion) as refused:
        answers(lake)
    assert str(refused.value) == f"{lake.root / newer.path} {refusal}."
    with closing(Warehouse(lake)) as warehouse:
        march = warehouse.snapshot(Scope("acme", date(2026, 3, 1), date(2026, 3, 31)))
        assert warehouse.answer(ENTRIES["traffic-overview"], march)["total_visits"] == len(BOT_CATEGORIES)
    waiting = f"a batch of pending visits {refusal}."
    assert verify_lake(lake).findings == [(newer.path, refusal), ("manifest.sqlite", waiting)]
    with pytest.raises(NewerVersion) as refused:
        pending.flush_all(lake)
    assert str(refused.value) == waiting
    assert lake.manifest.pending.backlog().visits == 1
    lake.manifest.close()


@by_this
def test_a_hook_for_an_unknown_event_is_rejected_clearly(tmp_path):
    with closing(ControlDatabase(Lake(tmp_path / "lake", create=True))) as control:
        hooks = Hooks(control)
        hook, _ = hooks.create("acme", "Ours", "https://example.com/", ["job.created"])
        control.rows("UPDATE hooks SET events = replace(events, 'job.', 'report.') RETURNING id")
        with pytest.raises(NewerVersion) as refused:
            hooks.hook("acme", hook.id)
    assert str(refused.value) == (
        "a Hook in control.sqlite was written by a newer version of this program (Invalid enum value "
        "'report.created' - at `$.events[0]`); upgrade."
    )
