"""The agents table of a lake's own: `agents.toml`, which its operator writes."""

import logging
import stat
from functools import lru_cache
from typing import Final

from data.errors import BadInput
from data.rules.own_agents import checked_agents
from data.rules.tables import OwnAgent, rules_version
from data.store.layout import LakeFolders

MAX_BYTES: Final = 1_000_000
_LOG: Final = logging.getLogger(__name__)
_checked_agents: Final = lru_cache(4)(checked_agents)


def own_agents(lake: LakeFolders) -> tuple[OwnAgent, ...]:
    """The agents of a lake's own table; none without one. Raises BadInput naming what is wrong, and a remedy."""
    path = lake.own_agents
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise BadInput(f"{path} is a symbolic link; put the file that it leads to in its place.")
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path} is a folder or a device; put a table of agents in its place.")
        if status.st_size > MAX_BYTES:
            raise BadInput(f"{path} has {status.st_size:,} bytes; keep at most {MAX_BYTES:,}.")
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; give it to the user of the service.") from error
    return _checked_agents(str(path), content)


def rules_version_of(lake: LakeFolders) -> str:
    """The version of the rules of a lake: the shipped ones with its own agents, without those that cannot be read."""
    try:
        return rules_version(own_agents(lake))
    except BadInput:  # which `traffic doctor` and every command that classifies say
        return rules_version()


class OwnAgents:
    """The agents of a lake's own table, read again when the file has changed."""

    def __init__(self, lake: LakeFolders) -> None:
        """Read the table. Raises BadInput when it is not valid."""
        self._lake = lake
        self._read = self._state()
        self._rows = own_agents(lake)

    def current(self) -> tuple[OwnAgent, ...]:
        """The rows as they are now; while the file is not valid, which is logged once, the last valid ones."""
        state = self._state()
        if state != self._read:
            self._read = state
            try:
                self._rows = own_agents(self._lake)
            except BadInput as error:
                _LOG.warning("%s Until then, the agents of its last valid version are used.", error)
        return self._rows

    def _state(self) -> tuple[int, ...]:
        """What changes when the file does; nothing without a file."""
        try:
            status = self._lake.own_agents.lstat()
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
