"""A file that is not what was written is never answered from: an answer is right, or an error that names the file."""

import os
import random
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import LakeDamaged
from data.ingest.importer import Importer, Options
from data.maintenance.verification import verify_lake
from data.store.link_files import link_files
from data.store.link_index import LinkIndex
from data.visits import VISITS
from queries import ENTRIES, Scope, Warehouse
from service.control_database import ControlDatabase
from service.maintenance import Maintenance
from tests.faults.lakes import log
from tests.faults.trials import IS_LONG, scaled
from tests.support.lakes import links_path, rot
from tests.support.visits import links

COPIES = scaled(24, 1_000)
SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 1, 31))


@pytest.fixture
def filled(lake, tmp_path):
    """A lake of several files, some of equal size."""
    importer = Importer(lake)
    for name in ("a", "b", "c"):
        path = tmp_path / f"{name}.log"
        path.write_text(log(name, 90, days=3))
        importer.run(path, Options("acme"))
    return lake


class Corruption:
    """Ways to change files of a lake."""

    def __init__(self, lake, choice):
        self._choice = choice
        files = [lake.root / file.path for file in lake.manifest.live_files("acme")]
        self.changed = choice.sample(files, 2)
        self._whole = {path: path.read_bytes() for path in self.changed}
        self._stats = {path: path.stat() for path in self.changed}
        self.first, self.second = self.changed

    def flip_bits(self):
        content = bytearray(self._whole[self.first])
        for _ in range(self._choice.randint(1, 64)):
            place = self._choice.randrange(len(content) * 8)
            content[place // 8] ^= 1 << place % 8
        self._write(content)

    def truncate(self):
        os.truncate(self.first, self._choice.randrange(len(self._whole[self.first])))

    def lengthen(self):
        self._write(self._whole[self.first] + self._choice.randbytes(self._choice.randint(1, 4096)))

    def zero_a_page(self):
        content = bytearray(self._whole[self.first])
        start = self._choice.randrange(len(content)) & -512
        content[start : start + 512] = bytes(len(content[start : start + 512]))
        self._write(content)

    def swap_names(self):
        aside = self.first.with_suffix(".aside")
        self.first.rename(aside)
        self.second.rename(self.first)
        aside.rename(self.second)
        self._both()

    def swap_contents(self):
        self._write(self._whole[self.second])
        self.second.write_bytes(self._whole[self.first])
        self._both()

    def write_other_columns(self):
        name = self._choice.choice(VISITS.names)
        self._write_table(self._table().drop_columns([name]))

    def write_other_types(self):
        table = self._table()
        self._write_table(table.set_column(5, "status", table["status"].cast(pa.string())))

    def write_other_visits(self):
        self._write_table(self._table().slice(1))

    def repeat_visits(self):
        self._write_table(pa.concat_tables([self._table()] * 2))

    def empty(self):
        self._write(b"")

    def remove(self):
        self.first.unlink()

    def set_time_back(self):
        """Let the files look as if nobody had written into them."""
        for path in self.changed:
            if path.exists():
                os.utime(path, ns=(self._stats[path].st_atime_ns, self._stats[path].st_mtime_ns))

    def repair(self):
        for path, content in self._whole.items():
            path.write_bytes(content)

    def is_named_by(self, error):
        return any(path.name in str(error) for path in self.changed)

    @property
    def names(self):
        return {path.name for path in self.changed[: 1 + self._is_of_both]}

    _is_of_both = False

    def _both(self):
        self._is_of_both = True

    def _table(self):
        return pq.read_table(pa.BufferReader(self._whole[self.first]))

    def _write(self, content):
        self.first.write_bytes(content)

    def _write_table(self, table):
        pq.write_table(table, self.first)


WAYS = ("flip_bits", "truncate", "lengthen", "zero_a_page", "swap_names", "swap_contents", "write_other_columns",
        "write_other_types", "write_other_visits", "repeat_visits", "empty", "remove")  # fmt: skip


def test_every_answer_is_right_or_names_the_file_that_is_not_what_was_written(filled, tell):
    choice, outcomes = random.Random(6), Counter(wrong=0, refused=0)
    names = [name for name, entry in ENTRIES.items() if entry.shape != "parts"]
    with closing(Warehouse(filled)) as warehouse:

        def answers(some):
            variables = warehouse.variables(SCOPE)
            return {name: warehouse.answer(ENTRIES[name], variables) for name in some}

        right = answers(names)
        for number in range(COPIES):
            corruption = Corruption(filled, choice)
            getattr(corruption, WAYS[number % len(WAYS)])()
            if choice.random() < 0.5:
                corruption.set_time_back()
            asked = choice.sample(names, 2)
            try:
                outcomes["wrong"] += answers(asked) != {name: right[name] for name in asked}
            except LakeDamaged as error:
                outcomes["refused" if corruption.is_named_by(error) else "refused without a name"] += 1
            if number % 10 == 0:
                assert {trouble.path.rpartition("/")[2] for trouble in verify_lake(filled).findings} == corruption.names
            corruption.repair()
            assert answers(asked) == {name: right[name] for name in asked}
    tell(copies=COPIES, ways=len(WAYS), refused=outcomes["refused"], wrong_answers=outcomes["wrong"])
    assert outcomes == Counter(wrong=0, refused=COPIES)


def test_every_answer_about_links_is_right_or_names_their_file(filled, tell):
    """P6, of links: copies with one to three other bits."""
    urls = {f"c{number}": f"https://shop.example/{number}" for number in range(30)}
    links(filled, "acme", [{"short_code": code, "target_url": url} for code, url in urls.items()])
    path, choice, outcomes = links_path(filled), random.Random(8), Counter(wrong=0, refused=0)
    whole = path.read_bytes()
    with closing(Warehouse(filled)) as warehouse:

        def answers():
            top = warehouse.answer(ENTRIES["top-links"], warehouse.variables(SCOPE))
            return top, [LinkIndex(filled).links("acme").short_code_of(url) for url in urls.values()]

        right = answers()
        assert right[1] == list(urls)
        for number in range(COPIES):
            content, stat = bytearray(whole), path.stat()
            for place in choice.sample(range(len(whole) * 8), choice.randint(1, 3)):
                content[place // 8] ^= 1 << place % 8
            path.write_bytes(content)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            try:
                outcomes["wrong"] += answers() != right
            except LakeDamaged as error:
                outcomes["refused" if path.name in str(error) else "refused without a name"] += 1
            if number % 10 == 0:
                assert {trouble.path for trouble in verify_lake(filled).findings} == {
                    str(path.relative_to(filled.root))
                }
            path.write_bytes(whole)
            assert answers()[0] == right[0]
    tell(copies_of_links=COPIES, refused=outcomes["refused"], wrong_answers=outcomes["wrong"])
    assert outcomes == Counter(wrong=0, refused=COPIES)


def look_at_all(lake, files):
    """Look again, as a server does in a day, at as many files as there are."""
    findings = set()
    with closing(ControlDatabase(lake)) as control:
        upkeep = Maintenance(lake, control, lambda: datetime.now(UTC) + timedelta(hours=25), None)
        for _ in files:
            try:
                upkeep.recheck_files()
            except (LakeDamaged, OSError) as error:
                findings.add(str(error))
    return findings


def test_rot_that_leaves_no_trace_is_found_within_a_day(filled, tell):
    files = [filled.root / file.path for file in filled.manifest.live_files("acme")]
    links(filled, "acme", [{"short_code": "a", "target_url": "https://shop.example"}])
    choice, found = random.Random(7), 0
    for path in [links_path(filled), *(files if IS_LONG else choice.sample(files, 3))]:
        content = path.read_bytes()
        rot(filled, path)
        assert [path.name in trouble for trouble in look_at_all(filled, [path, *files])] == [True]
        with pytest.raises(LakeDamaged, match=path.name):
            filled.visit_files("acme", date.min, date.max) and link_files(filled, "acme")
        path.write_bytes(content)
        assert len(filled.visit_files("acme", date.min, date.max)) == len(files) + 1
        found += 1
    tell(rotten_files=found, found=found)


@pytest.mark.parametrize("damage", ["write", "remove"])
def test_rot_is_found_beside_a_file_that_is_known_to_be_damaged(filled, damage):
    files = sorted(filled.manifest.live_files("acme"), key=lambda file: file.checked_at)
    damaged, rotten = filled.root / files[0].path, filled.root / files[-1].path
    damaged.write_bytes(b"damaged") if damage == "write" else damaged.unlink()
    rot(filled, rotten)
    assert any(rotten.name in trouble for trouble in look_at_all(filled, files))
