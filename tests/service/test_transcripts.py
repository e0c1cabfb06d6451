"""Commands in a terminal: each transcript is typed again and must print the same lines.

Each transcript has a separate lake, which TRAFFIC_LAKE names. Below `$` and a command of `traffic` or the shell is its
output: stdout after `>`, stderr after `!`, and the exit code after `?` unless it is 0. `…` is any text. A name in «» is
one word, which is the same wherever the name occurs; a number in «» is the date that many days ago. STEPS are the
events that may occur between commands.
"""

import fcntl
import json
import os
import pty
import re
import shlex
import sqlite3
import struct
import subprocess
import termios
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

import pytest

from data.disk.locks import locked
from data.store import pending
from data.tasks import erasure, retention
from service.core.commands import confirmation
from service.hooks.attempts import claim, finish
from service.hooks.delivery import Attempt
from service.hooks.records import DEFAULT_EVENTS
from service.hooks.registry import Hooks
from service.jobs.implementations import Draft
from service.jobs.store import Jobs
from service.ops import doctor
from tests.service.jobs.findings import ANNA, NOW, ROW, broken, mark
from tests.support.addresses import country_database
from tests.support.control import open_store
from tests.support.lakes import opened
from tests.support.runs import Run
from tests.support.visits import land, packed, visit


class Terminal:
    """A terminal in the folder that contains the lake, in which commands are typed."""

    def __init__(self, traffic, forks, patch, held):
        self.traffic, self.forks, self.patch, self.held = traffic, forks, patch, held
        self.names, self.typed = {}, b""

    def resolved(self, text):
        """Return the text with its names replaced by their words."""
        return re.sub("«([^»]+)»", lambda found: self.word(found[1]), text)

    def word(self, name):
        return str(datetime.now(UTC).date() - timedelta(int(name))) if name.isdecimal() else self.names[name]

    def pattern(self, expected):
        """Return a pattern for the output that a transcript expects; a new name matches any word."""
        parts, new = re.split("(…|«[^»]+»)", expected), set()
        for number, part in enumerate(parts):
            name = part.strip("«»")
            if part == "…":
                parts[number] = ".*"
            elif part == name or name.isdecimal() or name in self.names:
                parts[number] = re.escape(self.resolved(part))
            else:
                parts[number] = rf"(?P={name})" if name in new else rf"(?P<{name}>\S+)"
                new.add(name)
        return "".join(parts)

    def run(self, command, below):
        command = self.resolved(command)
        if command.startswith("traffic "):
            run = self.traffic(*shlex.split(command)[1:], stdin=self.typed)
        else:
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
            run = Run(done.returncode, done.stdout, done.stderr)
        code, out, err = ([line[2:] for line in below if line[0] == mark] for mark in "?>!")
        assert run.code == int(*code), run
        self.match(command, run.out, out)
        self.match(command, run.err, err)

    def show(self, command, below):
        """Check a command's output in a terminal with 80 columns, line by line; here, `…` is only itself."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        settings = {"TERM": "dumb", "COLUMNS": "", "TRAFFIC_LAKE": str(Path("lake").absolute())}
        process = self.forks.start(*shlex.split(command)[1:], settings=settings, out=theirs, err=theirs)
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while read := os.read(ours, 65_536):
                shown += read
        os.close(ours)
        assert process.wait() == 0, shown
        assert list(map(str.rstrip, shown.decode().splitlines())) == [line[2:] for line in below]

    def match(self, command, printed, lines):
        stripped = "\n".join(map(str.strip, printed.removesuffix("\n").split("\n")))
        found = re.fullmatch(self.pattern("\n".join(lines)), stripped, re.DOTALL)
        assert found, f"{command} printed:\n{stripped}"
        self.names |= found.groupdict()

    def file(self, name, below):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("".join(f"{line[2:]}\n" for line in below), "utf-8")

    def answer(self, text, below):
        """Answer the questions of the following commands with this line and the lines below."""
        self.patch.setattr(confirmation, "can_ask", lambda: True)
        self.typed = "".join(f"{line}\n" for line in (text, *(line[2:] for line in below))).encode()

    def set(self, assignment, below):
        self.patch.setenv(*self.resolved(assignment).split("=", 1))

    def hold(self, folder, below):
        """Hold the lock of a folder, as another program would, until `release`."""
        self.held.enter_context(locked(Path(folder), wait=False))

    def release(self, _, below):
        self.held.close()

    def limit(self, seconds, below):
        """Make `traffic doctor` accept writes and answers that take this many seconds."""
        for name in ("MAX_SYNC_SECONDS", "MAX_ANSWER_SECONDS"):
            self.patch.setattr(doctor, name, float(seconds))

    def sql(self, statement, below):
        """Change a database (`manifest UPDATE …`) or read it; the values that it returns are below, one per line."""
        name, _, statement = self.resolved(statement).partition(" ")
        with closing(sqlite3.connect(f"lake/{name}.sqlite")) as database, database:
            values = [str(value) for row in database.execute(statement) for value in row]
        self.match(statement, "\n".join(values), [line[2:] for line in below])

    def mmdb(self, words, below):
        """Write a country database with this record for 5.5.5.0/24: `countries.mmdb {"country": "FR"}`."""
        name, _, record = words.partition(" ")
        country_database(Path(name), {"5.5.5.0/24": json.loads(record)})

    def visits(self, words, below):
        """Land visits: `acme 2026-03-01 7*3 path=/a` means one visit on that day and three visits seven days ago."""
        organization, rows = self._visits(words)
        with opened(Path("lake")) as lake:
            land(lake, organization, rows)

    def pending(self, words, below):
        """Add acknowledged visits that are not in a file yet."""
        organization, rows = self._visits(words)
        with opened(Path("lake")) as lake:
            pending.enqueue(lake.manifest, [(organization, packed(rows))], datetime.now(UTC))

    def _visits(self, words):
        organization, *words = shlex.split(words)
        columns = dict(word.split("=", 1) for word in words if "=" in word)
        for name, value in columns.items():
            with suppress(ValueError):  # a value that is not JSON is a string
                columns[name] = json.loads(value)
        rows = []
        for day, _, times in (word.partition("*") for word in words if "=" not in word):
            at = datetime.fromisoformat(self.word(day) if day.isdecimal() else day)
            rows += [visit(visited_at=at, **columns)] * int(times or 1)
        return organization, rows

    def job(self, words, below):
        """Add a job about a broken link, `/gone`; with `/gone 70000`, its evidence contains a string of this length."""
        path, _, letters = words.partition(" ")
        rows = [{**ROW, "statuses": "4" * int(letters)}] if letters else ()
        with opened(Path("lake")) as lake, open_store(Jobs, lake) as jobs:
            jobs.upsert(broken(path.encode().decode("unicode_escape"), rows=rows), NOW)

    def approve(self, words, below):
        """Approve a job with a note: `«job» as discussed`. `dismiss` takes the same words; `redirect` takes a job and a
        URL."""
        self._act("approve_fix", words)

    def dismiss(self, words, below):
        self._act("dismiss", words)

    def _act(self, action, words):
        job_id, _, note = self.resolved(words).partition(" ")
        with opened(Path("lake")) as lake, open_store(Jobs, lake) as jobs:
            jobs.act("acme", job_id, action, ANNA, datetime.now(UTC), note=note or None)

    def redirect(self, words, below):
        job_id, url = self.resolved(words).split()
        with opened(Path("lake")) as lake, open_store(Jobs, lake) as jobs:
            jobs.attach("acme", job_id, Draft("patch", redirect_to=url), ANNA, datetime.now(UTC))

    def ship(self, words, below):
        """Mark a job's implementation as shipped this number of days ago: `«job» 5`."""
        job_id, days = self.resolved(words).split()
        now = datetime.now(UTC)
        with opened(Path("lake")) as lake, open_store(Jobs, lake) as jobs:
            mark(jobs, job_id, at=now, shipped_at=now - timedelta(int(days)))

    def hook(self, words, below):
        """Create a hook from its name, its URL, and its events unless they are the default ones."""
        name, url, *events = words.split()
        with opened(Path("lake")) as lake, open_store(Hooks, lake) as hooks:
            hooks.create("acme", name, url, events or DEFAULT_EVENTS)

    def test(self, hook_id, below):
        """Send a test message to a hook."""
        with opened(Path("lake")) as lake, open_store(Hooks, lake) as hooks:
            hooks.send_test("acme", self.resolved(hook_id))

    def attempt(self, words, below):
        """Record an attempt to deliver the next message: `204 null 7` are its status, error and milliseconds."""
        now = datetime.now(UTC)
        with opened(Path("lake")) as lake, open_store(Hooks, lake) as hooks, hooks.database.transaction() as outbox:
            finish(outbox, claim(outbox, now), Attempt(*map(json.loads, words.split())), now)


STEPS = {"$": Terminal.run} | {
    step.__name__: step
    for step in (
        Terminal.show, Terminal.file, Terminal.answer, Terminal.set, Terminal.hold, Terminal.release, Terminal.limit,
        Terminal.sql, Terminal.mmdb, Terminal.visits, Terminal.pending, Terminal.job, Terminal.approve,
        Terminal.dismiss, Terminal.redirect, Terminal.ship, Terminal.hook, Terminal.test, Terminal.attempt,
    )
}  # fmt: skip


def transcripts():
    for path in sorted(Path(__file__).with_name("transcripts").glob("*.txt")):
        for text in re.split("^== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            name, *steps = [line for line in text.splitlines() if line]
            yield pytest.param(steps, id=f"{path.stem}: {name}")


@pytest.mark.usefixtures("today")
@pytest.mark.parametrize("steps", [*transcripts()])
def test_a_transcript_is_reproduced(traffic, forks, lake, tmp_path, monkeypatch, steps):
    lake.manifest.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAFFIC_LAKE", "lake")
    for module in (erasure, retention):
        monkeypatch.setattr(module, "GRACE", timedelta(0))
    with ExitStack() as held:
        terminal = Terminal(traffic, forks, monkeypatch, held)
        terminal.limit(60, [])  # whatever else the machine is doing
        while steps:
            word, _, rest = steps[0].partition(" ")
            below = [*takewhile(lambda line: line[0] in "?>!|", steps[1:])]
            STEPS[word](terminal, rest, below)
            steps = steps[1 + len(below) :]
