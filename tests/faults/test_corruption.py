"""A damaged file is never used for an answer: an answer is right, or an error that names the file."""

import io
import os
import random
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import LakeDamaged
from data.ingest.importer import Importer, Options
from data.links.index import LinkIndex
from data.recovery.verification import verify_lake
from data.store.link_files import link_files
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.visits import VISITS
from queries import ENTRIES, Scope, Warehouse
from service.core.control_database import ControlDatabase
from service.ops.maintenance import Maintenance
from tests.faults.lakes import log
from tests.faults.trials import IS_LONG, scaled
from tests.support.lakes import links_path, rot
from tests.support.visits import links

COPIES = scaled(24, 1_000)
DAY = date(2026, 1, 1)
SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 1, 31))


@pytest.fixture
def filled(lake, tmp_path):
    """A lake with several files, some of equal size."""
    importer = Importer(lake)
    for name in ("a", "b", "c"):
        path = tmp_path / f"{name}.log"
        path.write_text(log(name, 90, days=3))
        importer.run(path, Options("acme"))
    return lake


def flipped(content, choice, most=64):
    """Return some bytes with one to `most` changed bits."""
    changed = bytearray(content)
    for place in choice.sample(range(len(content) * 8), choice.randint(1, most)):
        changed[place // 8] ^= 1 << place % 8
    return changed


def with_a_page_of_zeros(content, choice):
    start = choice.randrange(len(content)) & -512
    return content[:start] + bytes(len(content[start : start + 512])) + content[start + 512 :]


def rewritten(change):
    """Return a function that applies `change` to the table in a Parquet file's bytes, and returns the new bytes."""

    def rewritten(content, choice):
        pq.write_table(change(pq.read_table(pa.BufferReader(content)), choice), written := io.BytesIO())
        return written.getvalue()

    return rewritten


WAYS = (
    flipped,
    lambda content, choice: content[: choice.randrange(len(content))],
    lambda content, choice: content + choice.randbytes(choice.randint(1, 4096)),
    with_a_page_of_zeros,
    rewritten(lambda table, choice: table.drop_columns([choice.choice(VISITS.names)])),
    rewritten(lambda table, _: table.set_column(5, "status", table["status"].cast(pa.string()))),
    rewritten(lambda table, _: table.slice(1)),
    rewritten(lambda table, _: pa.concat_tables([table] * 2)),
    lambda *_: b"",
    "removed",
    "names swapped",
    "contents swapped",
)
"""Ways to change the content of a file, or of two files."""


def corrupt(way, files, choice):
    """Change the first of two files, or both; return the names of the changed files."""
    first, second = files
    if way == "removed":
        first.unlink()
    elif way == "names swapped":
        aside = first.rename(first.with_suffix(".aside"))
        second.rename(first)
        aside.rename(second)
    elif way == "contents swapped":
        whole = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(whole)
    else:
        first.write_bytes(way(first.read_bytes(), choice))
    return {file.name for file in (files if "swapped" in str(way) else files[:1])}


def set_time_back(path, stat):
    """Make a file look as if it had not been written to."""
    if path.exists():
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_every_answer_is_right_or_names_the_corrupt_file(filled, tell):
    choice = random.Random(6)
    names = [name for name, entry in ENTRIES.items() if entry.shape != "parts"]
    paths = [filled.root / file.path for file in filled.manifest.files.live("acme")]
    with closing(Warehouse(filled)) as warehouse:

        def answers(some):
            snapshot = warehouse.snapshot(SCOPE)
            return {name: warehouse.answer(ENTRIES[name], snapshot) for name in some}

        right = answers(names)
        for number in range(COPIES):
            files = {path: (path.read_bytes(), path.stat()) for path in choice.sample(paths, 2)}
            changed = corrupt(WAYS[number % len(WAYS)], [*files], choice)
            for path, (_, stat) in files.items():
                if number // len(WAYS) % 2:
                    set_time_back(path, stat)
            asked = choice.sample(names, 2)
            with pytest.raises(LakeDamaged, match="|".join(path.name for path in files)):
                answers(asked)
            if number % 10 == 0:
                assert {trouble.path.rpartition("/")[2] for trouble in verify_lake(filled).findings} == changed
            for path, (content, _) in files.items():
                path.write_bytes(content)
            assert answers(asked) == {name: right[name] for name in asked}
    tell(copies=COPIES, ways=len(WAYS), refused=COPIES, wrong_answers=0)


def test_every_answer_about_links_is_right_or_names_their_file(filled, tell):
    """P6 for links: copies with one to three changed bits."""
    urls = {f"c{number}": f"https://shop.example/{number}" for number in range(30)}
    links(filled, "acme", [{"short_code": code, "target_url": url} for code, url in urls.items()])
    path, choice = links_path(filled), random.Random(8)
    whole = path.read_bytes()
    with closing(Warehouse(filled)) as warehouse:

        def answers():
            top = warehouse.answer(ENTRIES["top-links"], warehouse.snapshot(SCOPE))
            return top, [*map(LinkIndex(filled).links("acme").short_code_of, urls.values())]

        right = answers()
        assert right[1] == list(urls)
        for number in range(COPIES):
            stat = path.stat()
            path.write_bytes(flipped(whole, choice, most=3))
            set_time_back(path, stat)
            with pytest.raises(LakeDamaged, match=path.name):
                answers()
            if number % 10 == 0:
                findings = {trouble.path for trouble in verify_lake(filled).findings}
                assert findings == {str(path.relative_to(filled.root))}
            path.write_bytes(whole)
            assert answers()[0] == right[0]
    tell(copies_of_links=COPIES, refused=COPIES, wrong_answers=0)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda lake: Compactor(lake).run(),
        lambda lake: Reclassifier(lake).run(["acme"]),
        lambda lake: Eraser(lake).run("acme", Criteria(short_code="a")),
    ],
    ids=["merge", "reclassify", "erase"],
)
def test_silent_rot_is_found_before_its_file_is_rewritten(filled, rewrite, tell):
    """Otherwise, the new file would have a valid checksum of corrupted visits."""
    paths, choice = [filled.root / file.path for file in filled.manifest.files.live("acme", DAY, DAY)], random.Random(9)
    for path in choice.choices(paths, k=COPIES):
        content = path.read_bytes()
        rot(filled, path, choice.randrange(len(content)))
        with pytest.raises(LakeDamaged, match=path.name):
            rewrite(filled)
        path.write_bytes(content)
    assert [filled.root / file.path for file in filled.manifest.files.live("acme", DAY, DAY)] == paths
    tell(rotten_files=COPIES, refused=COPIES)


def test_rot_that_leaves_no_trace_is_found_within_a_day(filled, tell):
    files = [filled.root / file.path for file in filled.manifest.files.live("acme")]
    links(filled, "acme", [{"short_code": "a", "target_url": "https://shop.example"}])
    rotten = [links_path(filled), *(files if IS_LONG else random.Random(7).sample(files, 3))]
    for path in rotten:
        content = path.read_bytes()
        rot(filled, path)
        with closing(ControlDatabase(filled)) as control:
            upkeep = Maintenance(filled, control, lambda: datetime.now(UTC) + timedelta(hours=25))
            findings = []
            for _ in [path, *files]:
                try:
                    upkeep.recheck_files()
                except LakeDamaged as error:
                    findings.append(path.name in str(error))
        assert findings == [True]
        with pytest.raises(LakeDamaged, match=path.name):
            filled.visit_files("acme", date.min, date.max) and link_files(filled, "acme")
        path.write_bytes(content)
        assert len(filled.visit_files("acme", date.min, date.max)) == len(files) + 1
    tell(rotten_files=len(rotten), found=len(rotten))
