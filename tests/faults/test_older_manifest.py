"""Rebuilds of a lost, damaged or older manifest: whatever programs did before and do afterwards, in any order, a
rebuild loses no visit, counts no visit twice, restores no erased visit (P1), and keeps the latest state of each link.

Programs refuse to overwrite such a manifest and name the remedy, unless nothing shows that the manifest is older.
"""

import random
import re
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pytest

from data.errors import LakeDamaged, OutdatedManifest
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.links.links import LinkEdit, edit_links, links_of, new_link
from data.manifest.files import READERS_GRACE
from data.recovery.rebuild import Rebuild, locked_for_rebuild
from data.recovery.verification import verify_lake
from data.store.link_files import fold_links
from data.store.pending import flush_all
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from tests.faults.lakes import PER_BATCH, line, report
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import kept_manifest, opened, paths, put_back
from tests.support.manifests import database_of
from tests.support.own_agents import change_rules

REBUILDS = scaled(1, 34)
"""Number of rebuilds for each way to lose a manifest; 204 in total in the long form."""
DAYS = 3


def day_of(path):
    """Return the day in January of the visit with a path: /log-n is line n of a log, /batch/n is visit n of a batch."""
    number = int(re.split("[-/]", path)[-1])
    return 1 + number % (DAYS if "-" in path else 2)


class World:
    """A lake, the logs next to it, and its expected content."""

    def __init__(self, folder, choice, cuts_lines):
        """Create an empty lake. `cuts_lines`: whether logs may end without a newline."""
        nothing(folder)
        self.cuts_lines = cuts_lines
        self.folder, self.root, self.choice = folder, folder / "lake", choice
        self.names = iter(range(1000))
        self.written, self.imported = Counter(), Counter()  # lines of each log
        self.there, self.waiting, self.erased = set(), set(), set()
        self.links = {}  # targets of short codes
        self.unsure = set()  # neither their presence nor their absence is promised

    def act(self, lake):
        """Make a program chosen at random do its work."""
        programs = [self.import_log] * 4 + [self.follow, self.report, self.flush, self.compact, self.reclassify]
        programs += [self.edit_links, self.fold_links]
        self.choice.choice([*programs, self.choice.choice([self.erase, self.erase, self.expire])])(lake)

    def import_log(self, lake):
        """Import a grown log, often without its final newline: its last line lands, and must not land again after it
        has grown."""
        name = self._grown_log(is_finished=not self.cuts_lines or self.choice.random() < 0.3)
        Importer(lake).run(self.folder / f"{name}.log", Options("acme"))
        self._landed(name)

    def follow(self, lake):
        name = self._grown_log(is_finished=True)
        path = self.folder / f"{name}.log"
        with closing(Follower(lake, Importer(lake), path, Options("acme"), notify=print)) as follower:
            follower.tick()
            if follower._last_error:
                raise follower._last_error
        self._landed(name)

    def _grown_log(self, is_finished):
        """Add lines to a log, possibly without the newline at the end; return the log's name."""
        name = self.choice.choice([*self.written, f"log{next(self.names)}"])
        self.written[name] += self.choice.choice([1, 1, self.choice.randrange(2, 12)])
        text = "".join(line(f"/{name}-{number}", day_of(f"{name}-{number}")) for number in range(self.written[name]))
        (self.folder / f"{name}.log").write_text(text if is_finished else text.removesuffix("\n"))
        return name

    def _landed(self, name):
        lines = {f"/{name}-{number}" for number in range(self.imported[name], self.written[name])}
        self.imported[name] = self.written[name]
        self.unsure |= lines & self.erased
        self.there |= lines

    def report(self, lake):
        batch = f"batch{next(self.names)}"
        report(LiveIngest(lake), batch)
        self.waiting |= {f"/{batch}/{number}" for number in range(PER_BATCH)}

    def flush(self, lake):
        flush_all(lake)
        self.there |= self.waiting
        self.waiting = set()

    def compact(self, lake):
        Compactor(lake).run()
        if self.choice.random() < 0.5:
            Compactor(lake, lambda: datetime.now(UTC) + 2 * READERS_GRACE).sweep()

    def reclassify(self, lake):
        """Change the rules, then reclassify all visits under the new ones."""
        change_rules(lake, next(self.names))
        Reclassifier(lake).run(["acme"])

    def edit_links(self, lake):
        """Set one link and remove another."""
        code, gone = self.choice.sample("abcdef", 2)
        link = new_link(code, "", f"https://example.com/{next(self.names)}", datetime.now(UTC))
        edit_links(lake, "acme", [LinkEdit(code, "", link), LinkEdit(gone, "", None)])
        self.links[code] = link.target_url
        self.links.pop(gone, None)

    def fold_links(self, lake):
        fold_links(lake, "acme")

    def erase(self, lake):
        """Erase the visits of a link, of a day, or of all days up to a day."""
        self.flush(lake)
        if not self.there:
            return
        path = self.choice.choice(sorted(self.there))
        day = date(2026, 1, day_of(path))
        if "-" in path and self.choice.random() < 0.5:
            self._erase(lake, Criteria(short_code=path[1:]), {path})
        elif self.choice.random() < 0.5:
            gone = {one for one in self.there if day_of(one) == day_of(path)}
            self._erase(lake, Criteria(since=day, before=day + timedelta(1)), gone)
        else:
            gone = {one for one in self.there if day_of(one) <= day_of(path)}
            self._erase(lake, Criteria(before=day + timedelta(1)), gone)

    def _erase(self, lake, criteria, gone):
        try:
            done = Eraser(lake).run("acme", criteria)
        except LakeDamaged:
            self.unsure |= gone
            raise
        delete_files(lake, done.dead, done.ended_at)
        self.erased |= gone
        self.there -= gone

    def expire(self, lake):
        """Delete all days before a day because of their age."""
        self.flush(lake)
        first_kept = self.choice.randrange(2, DAYS + 1)
        gone = {one for one in self.there if day_of(one) < first_kept}
        try:
            done = apply_retention(lake, 30, datetime(2026, 1, first_kept, 12, tzinfo=UTC) + timedelta(days=30))
        except LakeDamaged:
            self.unsure |= gone
            raise
        delete_files(lake, done.dead, datetime.now(UTC))
        self.erased |= gone
        self.there -= gone


WAYS = ("lost", "emptied", "cut", "older", "older_beside_the_log_of_the_newer_one", "older_without_its_number")


def lose(world, way, kept):
    """Lose or damage the manifest, or replace it with an older copy."""
    manifest = world.root / "manifest.sqlite"
    if way == "lost":
        manifest.unlink()
    elif way == "emptied":
        manifest.write_bytes(b"")
    elif way == "cut":
        content = manifest.read_bytes()
        manifest.write_bytes(content[: world.choice.randrange(1, len(content))])
    else:
        put_back(kept, world.root)
    if way == "older_beside_the_log_of_the_newer_one":
        manifest.with_name("manifest.sqlite-wal").write_bytes((world.folder / "wal").read_bytes())
    if way == "older_without_its_number":
        (world.root / "generation").unlink()


@pytest.mark.parametrize("way", WAYS)
def test_a_rebuild_neither_loses_nor_repeats_a_visit(way, tell, tmp_path, caplog):
    refused = questions = visits = 0
    for seed in range(REBUILDS):
        (folder := tmp_path / str(seed)).mkdir()
        # if nothing shows that a manifest is older, logs that continue an unfinished line cannot be distinguished
        world = World(folder, random.Random(f"{way} {seed}"), cuts_lines=way != "older_without_its_number")
        some, asked = one_loss(world, way)
        refused, questions = refused + some, questions + asked
        visits += len(world.there)
    tell(rebuilds=REBUILDS, visits=visits, refused=refused, questions=questions, lost=0, doubled=0, back=0)
    if way in ("lost", "emptied", "older"):
        assert refused


def one_loss(world, way):
    """Lose a manifest, continue, and rebuild; return the number of programs that refused and of questions asked."""
    with opened(world.root) as lake:
        world.import_log(lake)
        world.edit_links(lake)
        for _ in range(world.choice.randrange(1, 5)):
            world.act(lake)
        kept, imported, waiting = kept_manifest(world.root), Counter(world.imported), set(world.waiting)
        for _ in range(world.choice.randrange(1, 5)):
            world.act(lake)
            if world.choice.random() < 0.3:
                database_of(lake.manifest).rows("PRAGMA wal_checkpoint(TRUNCATE)")
        world.edit_links(lake)
        world.report(lake)  # at least these are missing from older manifests
        (world.folder / "wal").write_bytes((world.root / "manifest.sqlite-wal").read_bytes())
    is_older = way in ("older", "older_without_its_number")
    world.unsure |= world.waiting - waiting if is_older else world.waiting
    world.waiting = waiting & world.waiting if is_older else set()
    if way == "older_without_its_number":
        world.imported = imported
        world.unsure |= waiting & world.erased
    lose(world, way, kept)
    refused = sum(is_refused(world, way) for _ in range(world.choice.randrange(1, 4)))
    with locked_for_rebuild(world.root):
        rebuild = Rebuild(world.root)
        questions = list(rebuild.plan.questions)
        for question in questions:
            rebuild.plan.answer(question, True)
        assert rebuild.run().damaged == []
    with opened(world.root) as lake:
        world.flush(lake)
        found = paths(lake)
        assert {path: found[path] for path in found if found[path] != 1} == {}
        assert world.there - world.unsure - found.keys() == set()
        assert found.keys() - world.there - world.unsure == set()
        assert {link.short_code: link.target_url for link in links_of(lake, "acme")} == world.links
        assert verify_lake(lake).findings == []
        world.act(lake)
    return refused, len(questions)


def is_refused(world, way):
    """Have a program try to work before the manifest is rebuilt; return whether it refused and advised a rebuild."""
    before = set(world.there), set(world.waiting), set(world.erased), Counter(world.imported), dict(world.links)
    try:
        with opened(world.root) as lake:
            world.act(lake)
    except (LakeDamaged, OutdatedManifest) as error:
        refusal = str(error)
    else:
        return False
    if way == "older_without_its_number":
        assert "is missing; restore it from a backup" in refusal
        return False
    is_mixed = (
        way == "older_beside_the_log_of_the_newer_one"
    )  # then the manifest may list files that an erasure deleted
    assert "traffic rebuild" in refusal or (is_mixed and "is missing; restore it from a backup" in refusal)
    world.there, world.waiting, world.erased, world.imported, world.links = before
    return True
