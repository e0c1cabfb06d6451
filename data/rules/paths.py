"""Recognizes requests for paths that people do not open: probes by vulnerability scanners, and files for programs.

Such a request is never a person's, whatever its user agent says. Named agents keep their classification.
"""

from collections.abc import Iterator
from typing import Final

import re2

from data.rules.bots import RuleMatch, bot_classification
from data.rules.patterns import encodable
from data.rules.tables import Attack, Probe, load
from data.visits import Classification

PROBE: Final = "probe"
"""The kind of a path that only vulnerability scanners request."""
PROGRAM: Final = "program"
"""The kind of a path that programs fetch on their own, such as /robots.txt."""


class PathRules:
    """The rows of probes.toml and attacks.toml.

    `probe_pattern` and `program_pattern` are regular expressions (RE2) for all paths of these kinds, and
    `attack_pattern` for all attacks in queries.
    """

    def __init__(self) -> None:
        self._rows = [(re2.compile(f"(?i){row.path}"), row) for row in load(Probe, "probes")]
        self.probe_pattern = self._pattern(scanners=True)
        self.program_pattern = self._pattern(scanners=False)
        self._probe, self._program = re2.compile(self.probe_pattern), re2.compile(self.program_pattern)
        self.attack_pattern = "(?i)" + "|".join(f"(?:{row.pattern})" for row in load(Attack, "attacks"))
        self._attack = re2.compile(self.attack_pattern)

    def kind(self, path: str, is_link: bool = False) -> str:
        """Return PROBE, PROGRAM, or '' for other paths. With `is_link` (the path is a short link's), never return
        PROBE.
        """
        return path_kind(*self.match(path), is_link)

    def match(self, path: str) -> tuple[bool, bool]:
        """Return whether `probe_pattern` matches a path, and whether `program_pattern` does."""
        path = encodable(path)
        return self._probe.search(path) is not None, self._program.search(path) is not None

    def is_attack(self, query: str) -> bool:
        """Return whether a query string, without its question mark, is an attack."""
        return bool(query) and self._attack.search(encodable(query)) is not None

    def matches(self, path: str, classification: Classification) -> Iterator[RuleMatch]:
        """Yield the first row that matches `path`, if it changes the classification."""
        for pattern, row in self._rows:
            if pattern.search(encodable(path)):
                changed = classify_path(classification, PROBE if row.agent_kind == "scanner" else PROGRAM)
                if changed != classification:
                    yield RuleMatch(f"probes.toml: {row.family}", row.evidence, changed)
                return

    def _pattern(self, scanners: bool) -> str:
        paths = (row.path for _, row in self._rows if (row.agent_kind == "scanner") is scanners)
        return "(?i)" + "|".join(f"(?:{path})" for path in paths)


def path_kind(is_probe: bool, is_program: bool, is_link: bool) -> str:
    """Return PROBE, PROGRAM, or '' for other paths, by the patterns that match the path. A link is never PROBE."""
    if is_probe and not is_link:
        return PROBE
    return PROGRAM if is_program else ""


def classify_path(classification: Classification, path_kind: str) -> Classification:
    """Correct a classification by the kind of the requested path.

    If the path is a probe, people, AI referrals, libraries and bots without a name in the tables become scanners. If
    programs fetch the path, people and AI referrals become bots with low confidence.
    """
    is_person = classification.device_type != "bot"
    kind, method = classification.agent_kind, classification.detection_method
    is_unknown = is_person or kind == "library" or method == "heuristic" or (kind == "other" and method == "edge")
    if path_kind == PROBE and is_unknown:
        new_kind, confidence = "scanner", "medium"
    elif path_kind == PROGRAM and is_person:
        new_kind, confidence = "other", "low"
    else:
        return classification
    agent, operator = classification.agent, classification.operator
    return bot_classification(new_kind, agent, confidence, method="path", operator=operator)
