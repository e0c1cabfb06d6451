"""The folders of a lake, and its seeds. This module opens no database."""

import fcntl
import os
import shutil
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from data.disk.files import READ_ERRORS, move_durably, versioned, write_parquet
from data.visits import SCHEMA_VERSION, VISITS

LINKS: Final = pa.schema(
    [
        ("organization", pa.string()),
        ("short_code", pa.string()),
        ("domain", pa.string()),  # "": the link works on every domain
        ("target_url", pa.string()),
        ("created_at", pa.timestamp("us")),  # UTC
        ("tags", pa.list_(pa.string())),  # sorted; null: the link has none, like all links in files from 1.0.0
    ]
)
"""The columns of an organization's base file of links."""
LINK_CHANGES: Final = LINKS.append(pa.field("removed", pa.bool_()))
"""The columns of the file of changes: a link's current state. A removed link has no target, time or tags."""

SPILL_LOCK: Final = "spilling-"
"""Prefix of the names of lock files, which running engines and holders of claims keep locked. The rest of the name is
the claim's name, or the name of the engine's folder without `engine-`."""


class LakeFolders:
    """The folders of a lake, and its seeds.

    A seed is an empty file with all columns. It always exists, so that queries work even without other files.
    """

    def __init__(self, root: Path, seeds: Path) -> None:
        """Set the paths in the lake at `root`. `seeds` is the folder for seeds and staged files: `root`, unless the
        lake is read-only.
        """
        self.root, self.seeds = root, seeds
        self.staging = seeds / ".staging"  # the folder where files are written before they are committed
        self.rejects = root / "rejects"
        """The folder of files that list unparsable lines by line number, with the reasons."""
        self.ip_lists = root / "ip-lists"  # the folder of IP lists, which operators publish for their agents
        self.own_agents = root / "agents.toml"  # the table of agents written by the lake's operator
        self.released = root / "rules.toml"  # newer tables, fetched by `traffic agents refresh`
        self.country_database = root / "countries" / "countries.mmdb"  # the file set up by `traffic countries`
        self.salts = root / "salts.sqlite"  # the database of the daily salts, which backups leave out
        self.links_root = root / "links"  # the folder with the links of all organizations

    def links_folder(self, organization: str) -> Path:
        """Return the folder of an organization's links, which exists only if the organization has links."""
        return self.links_root / f"organization={organization}"

    @cached_property
    def seed_visits(self) -> str:
        """The path of the empty visit file."""
        name = "visits/organization=_seed/day=1970-01-01/seed.parquet"
        return self.seed(name, VISITS, versioned(SCHEMA_VERSION))

    @cached_property
    def seed_links(self) -> str:
        """The path of the empty file of links."""
        return self.seed("links/organization=_seed/links.parquet", LINKS)

    @cached_property
    def seed_link_changes(self) -> str:
        """The path of the empty file of changes to links."""
        return self.seed("links/organization=_seed/changes.parquet", LINK_CHANGES)

    def seed(self, name: str, schema: pa.Schema, metadata: Mapping[str, str] | None = None) -> str:
        """Return the path of an empty file; write it first if it is missing or damaged, or has other columns."""
        with suppress(*READ_ERRORS):
            if pq.read_schema(self.root / name).equals(schema):
                return f"{self.root}/{name}"
        staged, path = self.staging / f"seed-{uuid.uuid4()}.parquet", self.seeds / name
        write_parquet([schema.empty_table()], schema, staged, metadata=metadata)
        move_durably(staged, path)
        return str(path)


def spill_folder(staging: Path, engine: object) -> tuple[str, Callable[[], object]]:
    """Return the path of a folder into which only this engine can spill, and a function to call once the engine is
    closed.

    In a shared folder, DuckDB would mix up the files of two engines. DuckDB creates the folder only when it spills.
    Until the engine is closed or freed, a locked file shows that the folder is in use. Leftovers from processes that
    have ended are deleted first.
    """
    name, held = f"{os.getpid()}-{uuid.uuid4().hex}", ExitStack()
    with suppress(OSError):  # a full disk: leftovers from this engine are deleted after a day
        delete_abandoned(staging)
        lock = staging / f"{SPILL_LOCK}{name}"
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        held.callback(os.close, handle)
        held.callback(lock.unlink, missing_ok=True)
        fcntl.flock(handle, fcntl.LOCK_EX)
    return str(staging / f"engine-{name}"), weakref.finalize(engine, held.close)


def holder_of(staging: Path, name: str) -> str:
    """Return the `text` that the holder of this claim passed to `claim`; "" if no program holds the claim."""
    with suppress(FileNotFoundError), (staging / f"{SPILL_LOCK}{name}").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read()
    return ""


@contextmanager
def claim(staging: Path, name: str, text: str) -> Iterator[None]:
    """Hold the claim `name` during the context, so that `holder_of` returns `text`, unless another program holds it."""
    with (staging / f"{SPILL_LOCK}{name}").open("a+") as file:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(text)
            file.flush()
        yield


def delete_abandoned(staging: Path) -> None:
    """Delete spilled files with an unlocked lock file. The process id in its name is not checked: it may be reused."""
    for lock in staging.glob(f"{SPILL_LOCK}*"):
        with suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(staging / f"engine-{lock.name.removeprefix(SPILL_LOCK)}", ignore_errors=True)
            lock.unlink()
