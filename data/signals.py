"""What the visits of a day say about one of them: the bits of the column `signals`, filled when a past day is judged.

Days are judged in data/tasks/judging.py. The weights of signals, and so what makes a bot in disguise, are in
queries/prelude/2_signals.sql: files keep what was seen, and answers decide what it means.
"""

from typing import Final, NamedTuple

BEHAVIOUR_VERSION: Final = 4
"""The version of what days are judged by. Raise it with every change of what a signal means; 0: not judged."""


class Signal(NamedTuple):
    """One bit of `signals`."""

    name: str
    bit: int
    meaning: str


ATTACKED: Final = 1
"""The bit that a visit has when it lands."""

SIGNALS: Final = (
    Signal("attacked", ATTACKED, "its query string is an attack; seen when it lands, and a probe of its visitor"),
    Signal("probed", 2, "its visitor asked for what only scanners ask for and is not there; thrice, if redirected"),
    Signal("outdated", 4, "its browser was superseded years before"),
    Signal("errors", 8, "of five and more pages that its visitor asked for, four in five were not found"),
    Signal("breadth", 16, "its visitor opened thirty and more pages, one every three seconds or faster"),
    Signal("no_assets", 32, "twenty and more pages by its user agent came without what others load with them"),
    Signal("stale", 64, "half as old as an outdated browser, its visitor loaded nothing that others load with a page"),
    Signal("sweep", 128, "its visitor opened two hundred and more pages, one every second or faster"),
)
"""Every signal. A bit keeps its meaning for ever, because files do."""
