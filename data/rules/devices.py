"""What a person's user agent tells of the person's device, operating system and browser."""

import re
from typing import Final, NamedTuple

import re2
from ua_parser import Domain, RegexResolver
from ua_parser.loaders import load_lazy_builtins

from data.rules.patterns import pattern_set
from data.rules.tables import Device, load

_FALSE_MATCHES: Final = re.compile("tablet pc|coolpad|padfone|phonepad|tech[ _]?pad|klipad|gpad_|dtv|letv")
"""Words that hold a sign of a device and are none: a laptop with a pen, names of phones and of makers."""


class DeviceInfo(NamedTuple):
    """What a person uses."""

    device_type: str
    operating_system: str | None
    browser: str | None


class DeviceRules:
    """The rules about devices and those of ua-parser, compiled once."""

    def __init__(self) -> None:
        if RegexResolver is None:  # ua-parser would fall back to pure Python, 25 times slower, without a word
            raise RuntimeError("the package ua-parser-rs is missing; install ua-parser with its extra 'regex'.")
        self._parse = RegexResolver(load_lazy_builtins())
        self._devices: list[Device] = load(Device, "devices")
        self._device_set = pattern_set(row.pattern for row in self._devices)

    def device_info(self, user_agent: str) -> DeviceInfo:
        """The device, operating system and browser of a person's readable user agent."""
        parsed = self._parse(user_agent, Domain.USER_AGENT | Domain.OS)
        return DeviceInfo(
            self.device_type(user_agent),
            parsed.os.family if parsed.os else None,
            parsed.user_agent.family if parsed.user_agent else None,
        )

    def device_type(self, user_agent: str) -> str:
        """desktop, mobile or tablet. Televisions, consoles and cars are desktops."""
        text = _FALSE_MATCHES.sub("", user_agent.lower())
        numbers: list[int] = self._device_set.Match(text) or []
        for number in sorted(numbers):
            row = self._devices[number]
            if row.unless is None or not re2.search(row.unless, text):
                return row.device_type
        return "desktop"
