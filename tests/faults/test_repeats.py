"""One log, imported again and again under several names, at once and by importers that are killed, counts once."""

import gzip
import json
import random
import shutil
import time
from contextlib import closing
from datetime import date

from queries import ENTRIES, Scope, Warehouse
from tests.faults.lakes import assert_no_address, assert_sound, log, strays, sweep
from tests.faults.trials import scaled
from tests.faults.victims import INTO, nothing
from tests.support.lakes import opened

LINES = 600
SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 1, 31))
AT_ONCE = 4


def words_of(path):
    return "traffic", "import", path, *INTO


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


def test_a_log_imported_by_several_at_once_that_are_killed_counts_once_whatever_its_name(program, tell, tmp_path):
    text, logs, once = log("a", LINES, days=3), tmp_path / "logs", tmp_path / "once"
    for folder in (logs, once):
        folder.mkdir()
    for name in ("access.log", "access.log.1"):
        (logs / name).write_text(text)
    with gzip.open(logs / "access.log.2.gz", "wt") as packed:
        packed.write(text)
    names = sorted(logs.iterdir())
    nothing(once)
    assert program.run(once, *words_of(names[0])).code == 0
    expected = answers_of(once)
    assert expected["traffic-overview"]["total_visits"] == LINES
    choice, kills, imports = random.Random(3), 0, 0
    for number in range(scaled(1, 30)):
        folder = tmp_path / str(number)
        folder.mkdir()
        nothing(folder)
        children = [program.start(folder, *words_of(choice.choice(names))) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            time.sleep(choice.uniform(0, 0.3))
            victim = choice.choice(children)
            victim.kill()
            kills += victim.wait().code < 0
            children[children.index(victim)] = program.start(folder, *words_of(choice.choice(names)))
        assert [child.wait().code for child in children] == [0] * AT_ONCE
        assert [program.run(folder, *words_of(path)).code for path in names] == [0] * len(names)
        imports += 2 * AT_ONCE + len(names)
        assert answers_of(folder) == expected
        assert_no_address(folder)
        shutil.rmtree(folder)
    tell(imports=imports, kills=kills, answers=len(expected), lost=0, doubled=0)
    assert kills
