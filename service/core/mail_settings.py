"""Parsers for the mail settings: an SMTP server as a URL, and the addresses of each organization."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from data import BadInput, is_organization

_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)
_WRITTEN_LIKE: Final = (
    "write it like smtp://host:25, smtps://user:password@host:465 or smtp://user:password@host:587, "
    "with %-encoded special characters"
)


@dataclass(frozen=True)
class SmtpServer:
    """A mail server, with the credentials for it."""

    host: str
    port: int
    tls: bool  # True: from the first byte; False: STARTTLS if the server offers it; a password requires it
    user: str = ""
    password: str = field(default="", repr=False)


def parse_smtp(text: str) -> SmtpServer:
    """Parse the URL of a mail server. Raises BadInput without quoting the URL, which may contain a password."""
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        raise BadInput(f"the URL has no valid host or port; {_WRITTEN_LIKE}.") from None
    user, password = unquote(url.username or ""), unquote(url.password or "")
    if url.scheme not in {"smtp", "smtps"} or not host or port == 0 or url.path.strip("/") or url.query or url.fragment:
        raise BadInput(f"this is not the URL of an SMTP server; {_WRITTEN_LIKE}.")
    if bool(user) != bool(password) or not (user + password).isascii():
        raise BadInput(f"the URL needs a user and a password, both ASCII, or neither; {_WRITTEN_LIKE}.")
    tls = url.scheme == "smtps"
    return SmtpServer(host, port or (465 if tls else 587 if password else 25), tls, user, password)


def parse_recipients(text: str) -> dict[str, tuple[str, ...]]:
    """Parse the addresses of each organization. Raises BadInput."""
    recipients: dict[str, tuple[str, ...]] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        organization, equals, addresses = part.partition("=")
        organization = organization.strip()
        if not equals or not is_organization(organization) or organization in recipients:
            example = "acme=ops@acme.example,anna@acme.example; other=x@y.example"
            raise BadInput(f"{part!r} must be one organization and its addresses, like {example}.")
        recipients[organization] = parse_addresses(addresses)
    return recipients


def parse_addresses(text: str) -> tuple[str, ...]:
    """Parse email addresses, separated by commas. Raises BadInput if one is invalid, or if there are none."""
    addresses = tuple(dict.fromkeys(map(str.strip, text.split(","))))
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise BadInput(f"{address!r} is not an email address; write it like ops@acme.example (ASCII only).")
    return addresses


def parse_sender(text: str) -> str:
    """Parse one email address, or empty text. Raises BadInput."""
    addresses = parse_addresses(text) if text else ("",)
    if len(addresses) > 1:
        raise BadInput(f"{text!r} must be a single address.")
    return addresses[0]
