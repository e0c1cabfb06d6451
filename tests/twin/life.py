"""A scripted life of a lake: the programs of one revision are run, and all their output is recorded."""

import hashlib
import http.client
import json
import os
import re
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from tests.twin.inputs import AUDIENCE, ISSUER, Inputs
from tests.twin.masks import ZONES, Clock, Step

SALTED_DAYS = 80
MAX_WAIT_SECONDS = 300
"""Maximum time for which a life waits for the other one, or for a task of its server."""
_OWN = re.compile(r'"(id|imported_at|written_at|traffic\.sequence)": .*')
"""Values in footers that differ between lives; they are ignored when files with equal rows are sorted."""


class Answer(NamedTuple):
    """An HTTP response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """Return the value of a header, or "" if it is missing."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class OnePacket(http.client.HTTPConnection):
    """A connection that sends the head and body of a request in one packet.

    Otherwise the response to a request that is rejected early would show whether the body had arrived.
    """

    def _send_output(self, message_body: Any = None, encode_chunked: bool = False) -> None:
        head = b"\r\n".join([*self._buffer, b"", b""])
        self._buffer.clear()
        self.send(head + (message_body or b""))


class Life:
    """The programs in one source tree, with a separate folder. Methods that get output record it as a step."""

    def __init__(self, tree: Path, home: Path, inputs: Inputs, clock: Clock, meeting: Barrier) -> None:
        self.tree, self.home, self.inputs, self.clock = tree, home, inputs, clock
        self._meeting = meeting
        self.steps: list[Step] = []
        self.names = {str(home): "<home>", str(tree): "<tree>"}
        """The values that only this life has, with the names that replace them in both records."""
        self.lake = home / "lake"
        self._sources = count(1)
        self._port = 0
        self.callers: dict[str, dict[str, str]] = {"nobody": {}}
        """The headers of each kind of caller."""
        self.share = ""
        """The address of a shared page."""
        self.receiver = 0
        """The port on which the hooks' messages are received."""
        self.messages: Callable[[], list[str]] = list
        home.mkdir(parents=True)

    def show(self, label: str, text: str) -> None:
        """Record a step; a number is appended to a label that is repeated."""
        again = sum(step.label.partition(" #")[0] == label for step in self.steps)
        self.steps.append(Step(f"{label} #{again + 1}" if again else label, text))

    def meet(self) -> None:
        """Wait until the other life is here and the minute is young, before a step that depends on the minute."""
        with suppress(BrokenBarrierError):  # the other life took another way, which its record shows
            self._meeting.wait(MAX_WAIT_SECONDS)

    # commands

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the environment variables for a program with these settings."""
        own = {f"TRAFFIC_{name.upper()}": value for name, value in {"lake": str(self.lake), **settings}.items()}
        fixed = {"COLUMNS": "120", "NO_COLOR": "1", "TZ": "UTC", "LANG": "C.UTF-8", "HOME": str(self.home)}
        return {"PATH": os.environ["PATH"], **fixed, **own}

    def run(self, *words: str, label: str = "", text: str | None = None, **settings: str) -> str:
        """Run a command, record its output and exit code, and return its stdout."""
        done = subprocess.run(
            [self.tree / ".venv/bin/traffic", *words], cwd=self.home, env=self.environment(**settings),
            input=text, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        shown = f"{done.stdout}--- stderr\n{done.stderr}--- exit {done.returncode}\n"
        self.show(
            label or f"command: {' '.join(word.replace(str(self.inputs.folder), 'logs') for word in words)}", shown
        )
        return done.stdout

    def input(self, name: str) -> str:
        """Return the path of an input file."""
        return str(self.inputs.folder / name)

    def day(self, ago: int) -> str:
        """Return the date `ago` days before today."""
        return str(self.clock.today - timedelta(days=ago))

    def salt(self) -> None:
        """Give every day the same salt that it has in the other life."""
        with closing(sqlite3.connect(self.lake / "salts.sqlite")) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS salts (zone TEXT NOT NULL, day TEXT NOT NULL, salt TEXT NOT NULL, "
                "created_at REAL NOT NULL, PRIMARY KEY (zone, day))"
            )
            for zone in ZONES:
                for ago in range(-1, SALTED_DAYS):
                    salt = hashlib.sha256(f"{zone} {ago}".encode()).hexdigest()
                    row = [zone, self.day(ago), salt, time.time()]
                    db.execute("INSERT OR REPLACE INTO salts VALUES (?, ?, ?, ?)", row)
            db.commit()

    # files

    def files(self, label: str, root: Path | None = None) -> None:
        """Record every visit file, rollup and links file: its folder, a hash of its sorted rows, and its footer."""
        root = root or self.lake
        shown, found = [], []
        for path in sorted(root.glob("*/organization=[!_]*/**/*.parquet")):
            table = pq.ParquetFile(path).read()
            rows = sorted(json.dumps(self._without_now(row), default=str, sort_keys=True) for row in table.to_pylist())
            digest = hashlib.sha256("\n".join([str(table.schema.remove_metadata()), *rows]).encode()).hexdigest()[:12]
            place = path.parent.relative_to(root)
            self.names.setdefault(path.name, f"<{place} {digest}>")
            found.append((f"{place} {digest} {len(rows)} rows", table.schema.metadata or {}))
        for head, metadata in found:
            footers = {key.decode(): value.decode(errors="replace") for key, value in metadata.items()}
            footers.pop("ARROW:schema", None)
            shown.append(f"{head}\n{_named_lists(footers, self.names)}")
        self.show(f"files: {label}", "\n".join(sorted(shown, key=lambda text: _OWN.sub("", text))))

    def _without_now(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of a file, with <now> instead of times after the beginning of the life."""
        started = datetime.fromtimestamp(self.clock.started, UTC).replace(tzinfo=None)
        return {
            name: "<now>" if isinstance(value, datetime) and value.replace(tzinfo=None) >= started else value
            for name, value in row.items()
        }

    def rows(self, label: str, organization: str) -> None:
        """Record every visit of an organization, as a user's SQL reads it."""
        days = ("--start-date", self.day(70), "--end-date", self.day(0))
        self.run(
            "query", self.input("rows.sql"), "--org", organization, *days, "--format", "csv", label=f"rows: {label}"
        )

    # HTTP

    @contextmanager
    def served(self, **settings: str) -> Iterator[None]:
        """Run the server while in this context; record its exit code."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.names[f"127.0.0.1:{self._port}"] = "127.0.0.1:<port>"
        fixed = {"jwks": self.input("jwks.json"), "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
        environment = self.environment(port=str(self._port), trusted_proxies="127.0.0.1", **fixed, **settings)
        with (
            (self.home / "serve.log").open("ab") as log,
            subprocess.Popen(
                [self.tree / ".venv/bin/traffic", "serve"], cwd=self.home, env=environment, stdout=log, stderr=log
            ) as server,
        ):
            try:
                self._wait(server)
                yield
            finally:
                server.terminate()
                self.show("server: exit code", str(server.wait(60)))

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            if server.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError((self.home / "serve.log").read_text())

    def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None) -> Answer:
        """Send a request from a new client address, without recording it."""
        number = next(self._sources)
        source = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with closing(OnePacket("127.0.0.1", self._port, timeout=120)) as connection:
            connection.request(method, path, content, {"X-Forwarded-For": source, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())

    def ask(self, method: str, path: str, caller: str = "nobody", body: Any = None, **headers: str) -> Answer:
        """Send a request as one of the callers, and record the whole response."""
        found = self.send(method, path, {**self.callers[caller], **headers}, body)
        lines = [f"{found.status}", *sorted(f"{name.lower()}: {value}" for name, value in found.headers), ""]
        text = found.body.decode(errors="replace")
        if "json" in found.header("content-type") and text:
            text = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        elif "html" in found.header("content-type"):
            text = text.replace("><", ">\n<")
        lines = [line for line in lines if not line.startswith("content-length: ")]
        self.show(f"{method} {path} as {caller}", "\n".join([*lines, text]))
        return found


def _named_lists(footers: dict[str, str], names: Mapping[str, str]) -> str:
    """Return a file's footer as indented JSON; lists in the order of random ids are sorted by other values."""
    decoded = {}
    for key, value in footers.items():
        try:
            decoded[key] = json.loads(value)
        except ValueError:
            decoded[key] = value
    for record in decoded.values():
        if isinstance(record, dict) and "replaces" in record:
            record["replaces"] = sorted(names.get(name, "<file>") for name in record["replaces"])
        if isinstance(record, dict) and "batches" in record:
            record["batches"] = sorted(record["batches"], key=lambda batch: json.dumps(_without_id(batch)))
    return json.dumps(decoded, indent=1, sort_keys=True)


def _without_id(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {name: value for name, value in batch.items() if name not in {"id", "imported_at"}}
    return batch
