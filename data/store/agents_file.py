"""The agents table of a lake's own: `agents.toml`, which its operator writes."""

import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

from data.errors import BadInput
from data.rules.own_agents import checked_agents
from data.rules.tables import OwnAgent
from data.store.layout import LakeFolders

MAX_BYTES: Final = 1_000_000
_checked_agents: Final = lru_cache(4)(checked_agents)


def own_agents(lake: LakeFolders) -> tuple[OwnAgent, ...]:
    """The agents of a lake's own table; none without one. Raises BadInput naming what is wrong, and a remedy."""
    return _checked_agents(str(lake.own_agents), content_of(lake.own_agents, MAX_BYTES))


def content_of(path: Path, most: int) -> bytes:
    """A file with a table; nothing without one. Raises BadInput when it cannot be read or is too large."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise BadInput(f"{path} is a symbolic link; put the file that it leads to in its place.")
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path} is a folder or a device; put a table of agents in its place.")
        if status.st_size > most:
            raise BadInput(f"{path} has {status.st_size:,} bytes; keep at most {most:,}.")
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; give it to the user of the service.") from error
