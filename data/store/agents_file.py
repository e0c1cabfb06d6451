"""The operator's table of agents in a lake: `agents.toml`."""

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
    """Return the agents in a lake's `agents.toml`; () if it has none. Raises BadInput with the problem and a remedy."""
    return _checked_agents(str(lake.own_agents), content_of(lake.own_agents, MAX_BYTES))


def content_of(path: Path, most: int) -> bytes:
    """Return the bytes of a file; b"" if it is missing. Raises BadInput if it is too large, unreadable or not a regular
    file.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise BadInput(f"{path} is a symbolic link; replace it with the file it points to.")
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path} is a folder or a device; replace it with a regular file.")
        if status.st_size > most:
            raise BadInput(f"{path} has {status.st_size:,} bytes; keep at most {most:,}.")
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror}; give the service's user permission to read it."
        ) from error
