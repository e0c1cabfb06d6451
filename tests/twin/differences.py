"""The differences that a change intends, each with its reason; see differences.toml."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("differences.toml")


@dataclass
class Differences:
    """The intended differences, and the entries that have matched.

    An entry has `step` (a regular expression that matches a step's whole label), `reason`, and optionally `theirs` and
    `ours`: a regular expression and a replacement that turn the other revision's text into this revision's. Without
    these two, the step may differ in any way.
    """

    entries: list[dict[str, str]]
    used: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path = FILE) -> "Differences":
        """Read the entries from a file. Raises KeyError for an entry without a step or a reason."""
        entries = tomllib.loads(path.read_text("utf-8")).get("difference", [])
        return cls([{**entry, "step": entry["step"], "reason": entry["reason"]} for entry in entries])

    def unexpected(self, label: str, theirs: str | None, ours: str | None) -> bool:
        """Return whether two texts of a step differ in a way that no entry covers; None stands for a missing step."""
        if theirs == ours:
            return False
        for number, entry in enumerate(self.entries):
            if not re.fullmatch(entry["step"], label):
                continue
            if "theirs" not in entry:
                self.used.add(number)
                return False
            if theirs is not None:
                changed = re.sub(entry["theirs"], entry["ours"], theirs)
                self.used |= {number} if changed != theirs else set()
                theirs = changed
        return theirs != ours

    def unused(self) -> list[str]:
        """Return the steps of the entries that matched no difference."""
        return [entry["step"] for number, entry in enumerate(self.entries) if number not in self.used]
