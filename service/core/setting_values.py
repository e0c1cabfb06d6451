"""Parsers for the values of settings. Each raises BadInput; the setting adds its name to the message."""

import ipaddress
import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from data import SHORT_CODE_PATTERN, BadInput, is_organization
from data.text import bytes_of_memory

JWT_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
"""Signature algorithms that may be allowed, without HS256: its secret would have to be shared with the provider."""
_ENGINE: Final = re.compile(r"sc://[^/;\s]+(/(;\S*)?)?")
_ORIGIN: Final = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}

_SWITCHES: Final = dict.fromkeys(("on", "1", "true", "yes"), True) | dict.fromkeys(("off", "0", "false", "no"), False)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Value = TypeVar("Value")


class PinnedFile(NamedTuple):
    """A file to fetch, and its expected SHA-256."""

    url: str
    sha256: str


def optional(parse: Callable[[str], Value]) -> Callable[[str], Value | None]:
    """Return a parser that returns None for empty text, and otherwise the result of `parse`."""
    return lambda text: parse(text) if text else None


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser for whole numbers from `least` to `most`, in ASCII digits, without leading zeros."""
    expected = f"{least} or more" if most is None else f"{least} to {most}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"0|[1-9]\d{0,14}", text, re.ASCII) or not least <= int(text) <= (most or int(text)):
            raise BadInput(f"{text!r} must be a whole number, {expected}.")
        return int(text)

    return parse


def parse_switch(text: str) -> bool:
    """Parse on, 1, true or yes as true, and off, 0, false or no as false, in any letter case."""
    if text.lower() not in _SWITCHES:
        raise BadInput(f"{text!r} must be on or off.")
    return _SWITCHES[text.lower()]


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parse networks in CIDR notation, or single addresses, separated by commas."""
    try:
        return tuple(map(ipaddress.ip_network, _parts(text)))
    except ValueError as error:
        raise BadInput(f"{error}; write networks like 10.0.0.0/8.") from error


def parse_origin(text: str) -> str:
    """Parse an origin; return it as browsers send it, in lower case and without its scheme's default port."""
    found = _ORIGIN.fullmatch(text.lower())
    if not found:
        hint = "" if text.isascii() else " (non-ASCII letters as xn--…)"
        raise BadInput(f"{text!r} is not an origin; write it like https://app.example, without a path{hint}.")
    scheme, host, port = found.groups()
    try:
        number = int(port or 1)
        if not 1 <= number <= 65_535:
            raise BadInput(f"{text!r} has a port that does not exist; use 1 to 65535.")
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
    except ipaddress.AddressValueError as error:
        raise BadInput(f"{text!r} is not an origin: {error}.") from error
    return f"{scheme}://{host}" + (f":{number}" if port and str(number) != _DEFAULT_PORTS[scheme] else "")


def parse_origins(text: str) -> tuple[str, ...]:
    """Parse origins separated by commas."""
    return tuple(map(parse_origin, _parts(text)))


def parse_public_url(text: str) -> str:
    """Parse an origin, which may end with slashes, or empty text."""
    origin = text.rstrip("/")
    return parse_origin(origin) if origin else ""


def parse_base_path(text: str) -> str:
    """Parse the prefix of all paths; return it without a final slash: empty, or like /v1."""
    path = "/" + text.strip("/")
    if any(character in path for character in "?#{} ") or "//" in path:
        raise BadInput(f"{text!r} must be a plain path like /v1.")
    return path.rstrip("/")


def parse_short_code_pattern(text: str) -> str:
    """Parse an RE2 regular expression with one group."""
    if text == SHORT_CODE_PATTERN:
        return text
    from data.rules.patterns import check_short_code_pattern  # noqa: PLC0415  # slow, and rarely needed

    return check_short_code_pattern(text)


def parse_organization(text: str) -> str:
    """Parse the name of an organization, or empty text."""
    if text and not is_organization(text):
        raise BadInput(
            f"{text!r} is not a valid organization name; use 1 to 64 of A-Z a-z 0-9 _ -, not starting with _."
        )
    return text


def parse_engine(text: str) -> str:
    """Parse the URL of a Spark Connect server, or empty text. The message of BadInput does not quote the URL, which may
    contain a token.
    """
    if text and not _ENGINE.fullmatch(text):
        raise BadInput("this is not a Spark Connect URL; write it like sc://host:15002.")
    return text


def parse_memory(text: str) -> str:
    """Parse an amount of memory in DuckDB's notation; return it as text."""
    bytes_of_memory(text)
    return text


def parse_algorithms(text: str) -> tuple[str, ...]:
    """Parse one or more of JWT_ALGORITHMS, separated by commas."""
    names = tuple(dict.fromkeys(_parts(text)))
    if not names or not set(names) <= set(JWT_ALGORITHMS):
        raise BadInput(f"{text!r} must be one or more of {', '.join(JWT_ALGORITHMS)}, separated by commas.")
    return names


def parse_roles(text: str) -> tuple[str, ...]:
    """Parse roles separated by commas; return them in lower case."""
    return tuple(dict.fromkeys(part.lower() for part in _parts(text)))


def is_allowed_url(address: str) -> bool:
    """Return whether a URL that does not come from users may be fetched: https, or http on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return (parts.scheme == "https" and bool(host)) or (
        parts.scheme == "http" and host in ("127.0.0.1", "::1", "localhost")
    )


def parse_pinned_file(text: str) -> PinnedFile:
    """Parse an https URL (or http, on this machine) with the SHA-256 of the file, such as `https://host/file#sha256=…`."""
    url, _, fragment = text.partition("#")
    found = re.fullmatch("sha256=([0-9a-fA-F]{64})", fragment, re.ASCII)
    if not is_allowed_url(url):
        raise BadInput(f"{url!r} is not an https address; write one like https://host/rules.toml#sha256=….")
    if not found:
        raise BadInput(f"{text!r} does not end with #sha256= and 64 hexadecimal digits; add the file's checksum.")
    return PinnedFile(url, found[1].lower())


def parse_scopes(text: str) -> str:
    """Parse OpenID Connect scopes; return them separated by single spaces."""
    scopes = text.split()
    if "openid" not in scopes:
        raise BadInput(f"{text!r} must contain openid.")
    return " ".join(scopes)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
