"""One log, imported again and again, at once and by importers that are killed, counts once."""

import gzip
import json
import random
import shutil
import time
from contextlib import closing
from datetime import date

import pytest

from queries import ENTRIES, Scope, Warehouse
from tests.faults.lakes import assert_no_address, assert_sound, log, strays, sweep
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import opened

LINES = 600
SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 1, 31))
AT_ONCE = 4


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """One log under three names."""
    folder = tmp_path_factory.mktemp("logs")
    text = log("a", LINES, days=3)
    for name in ("access.log", "access.log.1"):
        (folder / name).write_text(text)
    with gzip.open(folder / "access.log.2.gz", "wt") as packed:
        packed.write(text)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def answers_of_one_import(program, logs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("once")
    nothing(folder)
    assert run(program, folder, logs[0]).code == 0
    answers = answers_of(folder)
    assert answers["traffic-overview"]["total_visits"] == LINES
    return answers


def words_of(path):
    return "traffic", "import", path, "--org", "acme", "--domain", "go.example", "--lake", "lake"


def run(program, folder, path):
    return program.run(folder, *words_of(path))


def answers_of(folder):
    """What every endpoint answers; and the lake is in order."""
    with opened(folder / "lake") as lake:
        assert_sound(lake)
        sweep(lake)
        assert strays(lake) == set()
        with closing(Warehouse(lake)) as warehouse:
            variables = warehouse.variables(SCOPE)
            told = {name: warehouse.answer(entry, variables) for name, entry in ENTRIES.items()}
    return json.loads(json.dumps(told, default=str))


def test_a_log_imported_three_times_counts_once_whatever_its_name(program, logs, answers_of_one_import, tell, tmp_path):
    nothing(tmp_path)
    for path in (*logs, *logs):
        assert run(program, tmp_path, path).code == 0
    assert answers_of(tmp_path) == answers_of_one_import
    tell(imports=2 * len(logs), answers=len(answers_of_one_import), lost=0, doubled=0)


def test_a_log_imported_by_several_at_once_that_are_killed_counts_once(
    program, logs, answers_of_one_import, tell, tmp_path
):
    choice, kills, imports = random.Random(3), 0, 0
    for number in range(scaled(1, 30)):
        folder = tmp_path / str(number)
        folder.mkdir()
        nothing(folder)
        children = [program.start(folder, *words_of(choice.choice(logs))) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            time.sleep(choice.uniform(0, 0.3))
            victim = choice.choice(children)
            victim.kill()
            kills += victim.wait().code < 0
            children[children.index(victim)] = program.start(folder, *words_of(choice.choice(logs)))
        imports += 2 * AT_ONCE
        assert [child.wait().code for child in children] == [0] * AT_ONCE
        assert answers_of(folder) == answers_of_one_import
        assert_no_address(folder)
        shutil.rmtree(folder)
    tell(imports=imports, kills=kills, answers=len(answers_of_one_import), lost=0, doubled=0)
    assert kills
