"""The victims of kills and failures: every command that changes a lake, with its initial state and its expected result.

To add a command, write a function that prepares a folder, and add an entry to VICTIMS.
"""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from data import Lake, LakeDamaged
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.ingest.visitor_ids import daily_salts
from data.links.exports import read_export
from data.links.links import LinkEdit, change_links, edit_links, links_of, new_link
from data.manifest.policies import MERGING
from data.publish.publisher import LakePublisher
from data.store.pending import flush_all
from data.tasks.compaction import Compactor
from queries import RollupBuilder
from service.access.api_keys import ApiKeys
from service.core.setting_values import parse_networks
from service.hooks.registry import Hooks
from tests.faults.lakes import batches, line, log, report, visits
from tests.support import published
from tests.support.control import open_store
from tests.support.lakes import opened, remove_manifest
from tests.support.visits import land, visit

JOB = "job_00000000000000000001"
HOOK_NETWORKS = "127.0.0.0/8"
"""The hook's network, where no program listens."""
OLD_SALT, OLD_SALT_AT = "ca5a" * 16, datetime(2026, 1, 5, tzinfo=UTC)


def everything(folder):
    """Return the visits by organization and day."""
    with opened(folder / "lake") as lake:
        return visits(lake)


def classified_and_judged(folder):
    """Return the classified visits by organization and day, and separately their signals, which change later."""
    days = everything(folder)
    judged = {(*day, "signals"): [row["signals"] for row in rows] for day, rows in days.items()}
    return {day: [row | {"signals": None} for row in rows] for day, rows in days.items()} | judged


def by_log(folder):
    """Return the number of visits from each log or reported batch."""
    with opened(folder / "lake") as lake:
        return batches(lake)


@dataclass(frozen=True)
class Victim:
    """A command that is killed or made to fail."""

    name: str
    prepare: Callable
    """Fills an empty folder, in which the command then works."""
    words: tuple[str, ...]
    state: Callable = everything
    """Returns the state in units that change as a whole."""
    told: str = r"$^"
    """The pattern of its message about completed work. A group in it names the completed part; otherwise, that is all
    work."""
    function: str = "traffic"
    again: Callable = lambda victim, state: victim.words
    """Returns the words that finish the work from a state, or none if nothing is left to do."""
    gone: tuple[bytes, ...] = ()
    """Content that must not be anywhere on the disk after the work."""
    has_threads: bool = False
    """True if one of its libraries has threads, whose calls change no file."""

    def acknowledged(self, run, state):
        """Return the names of the parts of a state that a run has acknowledged."""
        found = re.findall(self.told, run.told)
        names = {name for name in found if name in state}
        return set(state) if run.code == 0 or (found and not names) else names


# Initial states


def nothing(folder):
    Lake(folder / "lake", create=True).manifest.close()


def two_logs(folder):
    nothing(folder)
    (folder / "a.log").write_text(log("a", 8))
    (folder / "b.log").write_text(log("b", 4, days=1))


def grown_log(folder):
    """Prepare an expired salt, and a log that was imported with an unfinished last line and has grown since."""
    whole = log("a", 8)
    with opened(folder / "lake", create=True) as lake:
        daily_salts(lake.salts, [date(2026, 1, 1)], OLD_SALT_AT)
        with closing(sqlite3.connect(lake.salts)) as db, db:
            db.execute("UPDATE salts SET salt = ?", [OLD_SALT])
        (folder / "a.log").write_text(whole[:-20])
        Importer(lake, now=lambda: OLD_SALT_AT + timedelta(hours=1)).run(folder / "a.log", Options("acme"))
    (folder / "a.log").write_text(whole + line("/a/8") + line("/a/9") + "198.51.100.213 is not a line of a log\n")


def rotated_log(folder):
    """Prepare a log that was read, then grew and was renamed, and a new log with the old name."""
    with opened(folder / "lake", create=True) as lake:
        (folder / "a.log").write_text(log("a", 4))
        Importer(lake).run(folder / "a.log", Options("acme"))
    (folder / "a.log").rename(folder / "a.log.1")
    (folder / "a.log.1").write_text(log("a", 8))
    (folder / "a.log").write_text(log("b", 6))


def dropped_logs(folder):
    """Prepare a folder with two logs, one of them twice, all old enough to be read."""
    nothing(folder)
    (folder / "drop").mkdir()
    for name, letter in (("1.log", "a"), ("2.log", "b"), ("3.log", "a")):
        (folder / "drop" / name).write_text(log(letter, 4))
        os.utime(folder / "drop" / name, (1, 1))


def of_day(day, path, **columns):
    return visit(visited_at=datetime(2026, 1, day, 10), path=path, **columns)


def many_files(folder):
    """Prepare files of two days that can be merged, pending visits, and a file that may be deleted."""
    with opened(folder / "lake", create=True) as lake:
        for part in range(3):
            land(lake, "acme", [of_day(day, f"/{part}/{day}") for day in (1, 2)])
        dead = lake.manifest.files.live("acme", date(2026, 1, 1), date(2026, 1, 1))[:1]
        lake.manifest.replace(dead, list, MERGING, now=OLD_SALT_AT, grace=timedelta(0))
        report(LiveIngest(lake), "waiting")


def other_rules(folder):
    """Prepare visits of two organizations that were classified by other rules."""
    with opened(folder / "lake", create=True) as lake:
        for name in ("acme", "other"):
            land(lake, name, [of_day(day, f"/{day}", user_agent="GPTBot/1.2") for day in (1, 2)])


def land_secrets(lake):
    """Land visits to erase on two days, and one visit to keep."""
    goes = {"domain": "gone.example", "user_agent": "canary-agent", "bot_category": "other_bot"}
    land(lake, "acme", [of_day(1, "/canary-path", **goes), of_day(1, "/stays")])
    land(lake, "acme", [of_day(2, "/canary-path", **goes)])


def secrets_to_erase(folder):
    """Prepare two days with visits to erase, visits to keep, and pending visits."""
    with opened(folder / "lake", create=True) as lake:
        land_secrets(lake)
        land(lake, "other", [of_day(1, "/other")])
        RollupBuilder(lake).run()
        report(LiveIngest(lake), "waiting")


def old_days(folder):
    """Prepare expired days of two organizations, one of them also in an unknown file, and a day to keep."""
    with opened(folder / "lake", create=True) as lake:
        for name in ("acme", "other"):
            goes = {"user_agent": "canary-agent", "bot_category": "other_bot"}
            land(lake, name, [of_day(day, "/canary-path", **goes) for day in (1, 2)])
        RollupBuilder(lake).run()
        forgotten = lake.manifest.files.live("acme")[0].path
        unknown = lake.root / forgotten.replace("visits/", "unknown/")
        unknown.parent.mkdir(parents=True)
        shutil.copy(lake.root / forgotten, unknown)
        land(lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None), path="/stays")])


def merged_and_waiting(folder):
    """Prepare a merged file next to its sources, a file that is not merged, pending visits, and a link."""
    with opened(folder / "lake", create=True) as lake:
        for part in range(2):
            land(lake, "acme", [of_day(day, f"/{part}/{day}") for day in (1, 2)])
        Compactor(lake).run()
        RollupBuilder(lake).run()
        land(lake, "acme", [of_day(1, "/single")])
        report(LiveIngest(lake), "waiting")
    a_link(folder)


def lost_manifest(folder):
    """Prepare visits without a manifest; one file was moved away because the manifest did not list it."""
    merged_and_waiting(folder)
    with opened(folder / "lake") as lake:
        flush_all(lake)
        single = lake.manifest.files.live("acme", end=date(2026, 1, 1))[0].path
    unknown = folder / "lake" / single.replace("visits/", "unknown/")
    unknown.parent.mkdir(parents=True)
    (folder / "lake" / single).rename(unknown)
    remove_manifest(folder / "lake")


def older_manifest(folder):
    """Prepare visits and a merge newer than the manifest, which lists as pending visits that are now in files."""
    merged_and_waiting(folder)
    with opened(folder / "lake") as lake:
        with closing(sqlite3.connect(lake.root / "manifest.sqlite")) as db:
            db.execute("VACUUM INTO ?", [str(folder / "older")])
        flush_all(lake)
        land(lake, "acme", [of_day(2, "/later")])
        Compactor(lake).run()
    remove_manifest(folder / "lake")
    (folder / "older").rename(folder / "lake" / "manifest.sqlite")


def a_link(folder):
    with opened(folder / "lake") as lake:
        (folder / "links.csv").write_text("short_code,target_url\nold,https://old.example\n")
        change_links(lake, "acme", read_export(folder / "links.csv", OLD_SALT_AT).links, OLD_SALT_AT)


def links_file(folder):
    """Prepare a link, and a file with another link."""
    nothing(folder)
    a_link(folder)
    (folder / "links.csv").write_text("short_code,target_url\nnew,https://new.example\n")


def an_edited_link(folder):
    """Prepare links that have been edited since the base file of links was written."""
    nothing(folder)
    a_link(folder)
    with opened(folder / "lake") as lake:
        link = new_link("new", "", "https://new.example", OLD_SALT_AT)
        edit_links(lake, "acme", [LinkEdit("old", "", None), LinkEdit("new", "", link)])


def something_to_copy(folder):
    """Prepare everything that a backup contains."""
    many_files(folder)
    a_link(folder)
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as control:
        control.create_key("acme", "test")


def undecided_job(folder):
    """Prepare a new job, and a hook that gets approved jobs."""
    with opened(folder / "lake", create=True) as lake:
        with open_store(Hooks, lake, parse_networks(HOOK_NETWORKS)) as hooks:
            hooks.create("acme", "receiver", "http://127.0.0.1:9/")
        with closing(sqlite3.connect(lake.root / "control.sqlite")) as database, database:
            database.execute(
                "INSERT INTO jobs (id, organization, type, status, title, created_at, updated_at) "
                "VALUES (?, 'acme', 'manual', 'new', 'A job', '2026-03-01T00:00:00', '2026-03-01T00:00:00')",
                [JOB],
            )


# States


def names_of_keys(folder):
    if not (folder / "lake" / "manifest.sqlite").exists():
        return {}
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as control:
        return {key.name: key.organization for key in control.all_keys()}


def links_there(folder):
    with opened(folder / "lake") as lake:
        return {"links": [link.target_url for link in links_of(lake, "acme")]}


def unless_refused(folder):
    """Return visits and links, or nothing if the lake is rejected with advice to rebuild it."""
    try:
        return everything(folder) | links_there(folder)
    except LakeDamaged as error:
        if "run `traffic rebuild`" not in str(error):
            raise
        return {}


def something_to_publish(folder):
    """Prepare visits of two organizations, and links of one."""
    other_rules(folder)
    a_link(folder)


def secrets_published(folder):
    """Prepare days with some visits to erase, both in the lake and in its copy."""
    with opened(folder / "lake", create=True) as lake:
        land_secrets(lake)
        LakePublisher(lake, str(folder / "copy")).publish("acme")


def copied(folder):
    """Return the visits in the lake, which must not change, and in the copy, which must be complete if it exists."""
    there = folder / "copy"
    found = {"lake": everything(folder)}
    if there.exists():
        with opened(there) as lake:
            found["copy"] = visits(lake)
    return found


def published_there(folder):
    """Return the visits in the lake, and the rows that a reader sees in each published table that has any."""
    tables = sorted((folder / "copy").glob("*/*"))
    found = {f"{table.parent.name}'s {table.name}": rows for table in tables if (rows := rows_in(table))}
    return everything(folder) | found


def rows_in(table):
    """Return the sorted rows of a published table, in which each visitor hash is reduced to whether it exists."""
    rows = [{**row, "visitor": row.get("visitor") is not None} for row in published.rows_of(table)]
    return sorted(rows, key=str)


def job_and_messages(folder):
    """Return the job's status, version and moves, and the events in the outbox; these must change together."""
    with opened(folder / "lake") as lake, closing(sqlite3.connect(lake.root / "control.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (job,) = database.execute("SELECT status, version FROM jobs").fetchall()
        moves = database.execute("SELECT from_status, to_status, version FROM job_history").fetchall()
        messages = database.execute("SELECT event, job_id FROM deliveries").fetchall()
        return {"job": (job, moves, messages)}


def is_approved(state):
    """Return whether the job is approved; check that the hook then gets one message, and that otherwise nothing
    changed."""
    if state["job"] == (("new", 1), [], []):
        return False
    assert state["job"] == (("approved", 2), [("new", "approved", 2)], [("job.approved", JOB)])
    return True


def missing_batches(victim, state):
    """Return the words that resend the missing batches, as a client without a response does: nothing else has them."""
    root, *names = victim.words
    return [root, *(name for name in names if name not in state)]


def unless_copied(victim, state):
    """Return no words if the backup exists, since no backup replaces another; copied() checks that it is complete."""
    return () if "copy" in state else victim.words


def unless_approved(victim, state):
    """Return no words if the job is approved, since it cannot be approved again."""
    return () if is_approved(state) else victim.words


INTO = ("--org", "acme", "--domain", "go.example", "--lake", "lake")
VICTIMS = (
    Victim("import", two_logs, ("import", "a.log", "b.log", *INTO), by_log,
           r"(\w)\.log: \d+ visits? imported"),
    Victim("import of a grown log", grown_log, ("import", "a.log", *INTO), by_log,
           r"(\w)\.log: \d+ visits? imported", gone=(OLD_SALT.encode(),)),
    Victim("intake", nothing, ("lake", "x", "y", "z"), by_log, r"kept (\w)", "keep", missing_batches),
    Victim("follow", rotated_log, ("lake", "a.log"), by_log, "followed", "follow"),
    Victim("follow of a folder", dropped_logs, ("follow", "drop", "--once", *INTO), by_log, "3 objects read"),
    Victim("compact", many_files, ("compact", "--lake", "lake"), told="Merged"),
    Victim("reclassify", other_rules, ("reclassify", "--lake", "lake"), classified_and_judged, "reclassified"),
    Victim("keys create", lambda folder: None, ("keys", "create", "--org", "acme", "--name", "test", "--lake", "lake"),
           names_of_keys, "tak_"),
    Victim("links import", links_file,
           ("links", "import", "links.csv", "--org", "acme", "--replace", "--yes", "--lake", "lake"),
           links_there, "now has"),
    Victim("links add", an_edited_link,
           ("links", "add", "more", "https://more.example", "--org", "acme", "--lake", "lake"),
           links_there, "now has"),
    Victim("fold of links", an_edited_link, ("compact", "--lake", "lake"), links_there, "Merged"),
    Victim("approval", undecided_job, ("lake", JOB), job_and_messages, "is approved", "approve", unless_approved),
    Victim("erase", secrets_to_erase, ("erase", "--org", "acme", "--domain", "gone.example", "--yes", "--lake", "lake"),
           told="erased_at", gone=(b"canary-path", b"canary-agent")),
    Victim("retain", old_days, ("retain", "--days", "100", "--yes", "--lake", "lake"), told="are deleted",
           gone=(b"canary-path", b"canary-agent")),
    Victim("publish", something_to_publish, ("publish", "copy", "--lake", "lake"), published_there,
           r"other: \d files"),
    Victim("erase what was published", secrets_published, ("lake", "gone.example"), published_there, '"done":true',
           "erase_published", gone=(b"canary-path", b"canary-agent")),
    Victim("rebuild", lost_manifest, ("rebuild", "--yes", "--lake", "lake"), unless_refused, "manifest now counts"),
    Victim("rebuild of an older manifest", older_manifest, ("rebuild", "--yes", "--lake", "lake"), unless_refused,
           "manifest now counts"),
    Victim("backup", something_to_copy, ("backup", "copy", "--lake", "lake"), copied, "copy: ",
           again=unless_copied),
)  # fmt: skip
