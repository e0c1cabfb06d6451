"""What a person's user agent tells of the person's device, operating system and browser."""

from typing import NamedTuple

import re2
from ua_parser import Domain, RegexResolver
from ua_parser.loaders import load_lazy_builtins

_TABLET = re2.compile(r"ipad|tablet|kindle|playbook|silk/")
_SCREEN = re2.compile(
    r"smart-?tv|google ?tv|apple ?tv|hbbtv|bravia|crkey|\baft[a-z]|web0s|webos\.tv|netcast|viera"
    r"|roku|playstation|xbox|nintendo|\btv\b"
)
_PHONE = re2.compile(r"android|iphone|ipod|mobile|phone|blackberry|symbian|opera mini|midp|kaios|nokia|windows ce")


class Device(NamedTuple):
    """What a person uses."""

    device_type: str
    operating_system: str | None
    browser: str | None


class Devices:
    """The rules of ua-parser, compiled once."""

    def __init__(self) -> None:
        if RegexResolver is None:  # ua-parser would fall back to pure Python, 25 times slower, without a word
            raise RuntimeError("the package ua-parser-rs is missing; install ua-parser with its extra 'regex'.")
        self._parse = RegexResolver(load_lazy_builtins())

    def of(self, user_agent: str) -> Device:
        """The device, operating system and browser of a person's readable user agent."""
        parsed = self._parse(user_agent, Domain.USER_AGENT | Domain.OS)
        return Device(
            device_type_of(user_agent),
            parsed.os.family if parsed.os else None,
            parsed.user_agent.family if parsed.user_agent else None,
        )


def device_type_of(user_agent: str) -> str:
    """desktop, mobile or tablet, for a person's user agent. Televisions and consoles are desktops."""
    text = user_agent.lower().replace("tablet pc", "")  # a Windows laptop with a pen
    if _SCREEN.search(text):
        return "desktop"
    if _TABLET.search(text) or ("android" in text and "mobile" not in text):
        return "tablet"
    return "mobile" if _PHONE.search(text) else "desktop"
