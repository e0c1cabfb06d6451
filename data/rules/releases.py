"""Determines the age of a browser by its version, and finds versions that no browser ever had.

The facts are in releases.toml (when a version was superseded), lifetimes.toml (how long people keep using it), and
forged.toml (what no browser sends).
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

import re2

from data.rules.bots import RuleMatch, bot_classification
from data.rules.patterns import pattern_set
from data.rules.tables import Forged, Lifetime, Release, load

_CHROME_ALONE: Final = re.compile(
    r"Mozilla/5\.0 \([^()]*\) AppleWebKit/[\d.]+ \(KHTML, like Gecko\) "
    r"Chrome/(\d+)\.0\.(\d+)\.\d+(?: Mobile)? Safari/[\d.]+(?: (?:Edg|OPR)/[\d.]+)?"
)
"""User agents of Chrome, Edge or Opera with nothing appended; other browsers with this engine may have their own build
numbers."""
_SAFARI_ON_IOS: Final = re.compile(
    r"Mozilla/5\.0 \(i[^()]* OS (\d+)_[^()]*\) AppleWebKit/[\d.]+ \(KHTML, like Gecko\) "
    r"Version/(\d+)[.\d]* Mobile/\w+ Safari/[\d.]+"
)
"""User agents that end with Safari on an iPhone or iPad, with the versions of the system and of Safari."""
_FIREFOX_ALONE: Final = re.compile(r"Mozilla/5\.0 \([^()]*rv:(\d{2,})\.0\) Gecko/[\d.]+ Firefox/(\d{2,})\.[\d.]+")
"""User agents that end with Firefox 10 or later; other browsers with this engine add their own names."""
_FROZEN_GECKO, _LAST_FROZEN = 109, 119
"""Up to Firefox 119, the engine's version is at most 109: servers mistook 110 and later for Internet Explorer 11."""
_OF_FIREFOX: Final = "https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/User-Agent/Firefox"
_HALF_A_YEAR: Final = timedelta(days=182)
_FIRST_OUTDATED: Final = 2
"""The number of years for which people keep using a version of a self-updating browser."""
_FIRST_EQUAL, _FROZEN, _FIRST_FREE = 6, 18, 26
"""Since iOS 6, Safari has the version of its system; since Safari 26, its user agent names iOS 18 on later systems."""


class BrowserReleases:
    """The rows of releases.toml, lifetimes.toml and forged.toml, compiled once."""

    def __init__(self) -> None:
        self._releases = {(row.browser, row.version): row for row in load(Release, "releases")}
        self._lifetimes = load(Lifetime, "lifetimes")
        self._forged = load(Forged, "forged")
        self._any_forged = pattern_set(row.pattern for row in self._forged)
        self._patterns = [re2.compile(row.pattern) for row in self._lifetimes]
        self._any_lifetime = pattern_set(row.pattern for row in self._lifetimes)
        self._superseded = lru_cache(1 << 14)(self._find_superseded)

    def matches(self, user_agent: str) -> Iterator[RuleMatch]:
        """Yield the rules that rule out every browser for this (unescaped) user agent: its parts disagree, or its form
        is forged.
        """
        build = _CHROME_ALONE.fullmatch(user_agent)
        if build and not self._had_build(int(build[1]), int(build[2])):
            row = self._releases["Chrome", int(build[1])]
            rule = f"releases.toml: Chrome {build[1]}, which never had build {build[2]}"
            yield RuleMatch(rule, row.evidence, bot_classification("other"))
        safari = _SAFARI_ON_IOS.fullmatch(user_agent)
        if safari and not _is_pair(int(safari[1]), int(safari[2])):
            rule = f"Safari {safari[2]} on iOS {safari[1]}, a combination that never existed"
            evidence = next(row.evidence for row in self._lifetimes if row.browser == "Safari")
            yield RuleMatch(rule, evidence, bot_classification("other"))
        firefox = _FIREFOX_ALONE.fullmatch(user_agent)
        if firefox and not _is_engine(int(firefox[1]), int(firefox[2])):
            rule = f"Firefox {firefox[2]} with the engine of Firefox {firefox[1]}, a combination that never existed"
            yield RuleMatch(rule, _OF_FIREFOX, bot_classification("other"))
        for row in (self._forged[number] for number in self._any_forged.Match(user_agent) or []):
            yield RuleMatch(f"forged.toml: {row.name}", row.evidence, bot_classification("other"))

    def _had_build(self, version: int, build: int) -> bool:
        """Return whether a version of Chrome can have a build: after the previous version's builds, up to its own
        newest.

        Return True for build 0, which hides the build, and if the table lacks the newest build of either version.
        """
        row, before = self._releases.get(("Chrome", version)), self._releases.get(("Chrome", version - 1))
        return not (build and row and row.build and before and before.build) or before.build < build <= row.build

    def outdated_since(self, user_agent: str) -> date | None:
        """Return the day from which only programs send this user agent.

        Return None if the tables have no such day, as for versions newer than the tables.
        """
        day, years = self._superseded(user_agent)
        try:
            return day and day.replace(year=day.year + years)
        except ValueError:  # 29 February
            return day and date(day.year + years, 3, 1)

    def stale_since(self, user_agent: str) -> date | None:
        """Return the day halfway to `outdated_since` (most people have a newer version by then), or None."""
        day, years = self._superseded(user_agent)
        return day + timedelta(days=round(365.25 * years / 2)) if day else None

    def late_since(self, user_agent: str) -> date | None:
        """Return the day a quarter of the way to `outdated_since` (half a year for self-updating browsers), or None."""
        day, years = self._superseded(user_agent)
        return day + timedelta(days=round(365.25 * years / 4)) if day else None

    def updates_itself(self, user_agent: str) -> bool:
        """Return whether this is a self-updating browser, the kind that becomes outdated first."""
        return self._superseded(user_agent)[1] == _FIRST_OUTDATED

    def old_since(self, user_agent: str) -> date | None:
        """Return the day half a year after the next version was released; None if this is unknown, or for versions
        that people never stop using.
        """
        day, _ = self._superseded(user_agent)
        return day + _HALF_A_YEAR if day else None

    def _find_superseded(self, user_agent: str) -> tuple[date | None, int]:
        """Return when this version was superseded, and the years for which people keep using it; (None, 0) if that is
        forever or unknown.
        """
        text = user_agent.lower()
        numbers: list[int] = self._any_lifetime.Match(text) or []
        if not numbers:
            return None, 0
        row, match = self._lifetimes[min(numbers)], self._patterns[min(numbers)].search(text)
        version = next((group for group in match.groups() if group), None)
        release = self._releases.get((row.browser, int(version))) if version and row.years else None
        return (release.superseded, row.years) if release else (None, 0)


def _is_pair(system: int, safari: int) -> bool:
    if system < _FIRST_EQUAL or safari >= _FIRST_FREE:
        return system < _FIRST_EQUAL or system >= _FROZEN
    return system == safari


def _is_engine(engine: int, firefox: int) -> bool:
    """Return whether a version of Firefox sends this version of its engine: its own, or 109 for Firefox 110 to 119."""
    return engine == firefox or (engine == _FROZEN_GECKO < firefox <= _LAST_FROZEN)
