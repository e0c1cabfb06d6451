"""Recognizes a person's device type, operating system and browser from the user agent."""

import re
from functools import cache
from typing import Final

import re2
from ua_parser import Domain, RegexResolver, Resolver
from ua_parser.loaders import load_lazy_builtins

from data.rules.patterns import pattern_set
from data.rules.tables import Browser, Device, load

_FALSE_MATCHES: Final = re.compile("tablet pc|coolpad|padfone|phonepad|tech[ _]?pad|klipad|gpad_|dtv|letv")
"""Words that contain a device's pattern but do not identify the device, such as names of phones or manufacturers."""


@cache
def _ua_parser() -> Resolver:
    """Return ua-parser's patterns for browsers and operating systems, without its slow patterns for devices."""
    if RegexResolver is None:  # ua-parser would silently fall back to pure Python, which is 25 times slower
        raise RuntimeError("the package ua-parser-rs is missing; install ua-parser with its extra 'regex'.")
    browsers, systems, _ = load_lazy_builtins()
    return RegexResolver((browsers, systems, []))


class DeviceRules:
    """The rules of devices.toml, browsers.toml and ua-parser, compiled once."""

    def __init__(self) -> None:
        self._parse = _ua_parser()
        self._devices: list[Device] = load(Device, "devices")
        self._browsers: list[Browser] = load(Browser, "browsers")
        self._browser_set = pattern_set(row.pattern for row in self._browsers)
        self._browser_names = {name: row.name for row in self._browsers for name in row.names}
        self._device_set = pattern_set(row.pattern for row in self._devices)

    def device_info(self, user_agent: str) -> tuple[str, str | None, str | None]:
        """Return the device type, operating system and browser for a person's (unescaped) user agent."""
        parsed = self._parse(user_agent, Domain.USER_AGENT | Domain.OS)
        browser = parsed.user_agent.family if parsed.user_agent else None
        numbers: list[int] = self._browser_set.Match(user_agent.lower()) or []
        browser = self._browsers[min(numbers)].name if numbers else self._browser_names.get(browser or "", browser)
        return self.device_type(user_agent), parsed.os.family if parsed.os else None, browser

    def device_type(self, user_agent: str) -> str:
        """Return desktop, mobile or tablet. Televisions, consoles and cars count as desktops."""
        text = _FALSE_MATCHES.sub("", user_agent.lower())
        numbers: list[int] = self._device_set.Match(text) or []
        for number in sorted(numbers):
            row = self._devices[number]
            if row.unless is None or not re2.search(row.unless, text):
                return row.device_type
        return "desktop"
