"""Checks the values of single settings."""

import re
from typing import Final

from data import BadInput

JWT_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
"""Signature algorithms that may be allowed. No HS256: its secret would have to be shared with the provider."""
MAX_TOKEN_LIFETIME_HOURS: Final = 720
"""Upper limit of the setting jwt_lifetime: identity tokens cannot be revoked before they expire."""
_ENGINE: Final = re.compile(r"sc://[^/;\s]+(/(;\S*)?)?")


def parse_engine(text: str) -> str:
    """The setting engine, or `--engine`: "" or an address of Spark Connect. Raises BadInput."""
    if text and not _ENGINE.fullmatch(text):
        raise BadInput("TRAFFIC_ENGINE or --engine is no address of Spark Connect; write it like sc://host:15002.")
    return text


def parse_count(name: str, text: str, least: int) -> int:
    """A setting that is a whole number, `least` or more. Raises BadInput."""
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII) or int(text) < least:
        raise BadInput(f"TRAFFIC_{name.upper()} is {text!r}; it must be a whole number, {least} or more.")
    return int(text)


def parse_algorithms(text: str) -> tuple[str, ...]:
    """The setting jwt_algorithms. Raises BadInput."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in JWT_ALGORITHMS]
    if unknown or not names:
        problem = f"contains {unknown[0]!r}" if unknown else "contains no algorithm"
        raise BadInput(f"TRAFFIC_JWT_ALGORITHMS {problem}; use any of {', '.join(JWT_ALGORITHMS)}.")
    return names


def parse_lifetime(text: str) -> int:
    """The setting jwt_lifetime, in hours. Raises BadInput."""
    if not re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII) or int(text) > MAX_TOKEN_LIFETIME_HOURS:
        raise BadInput(
            f"TRAFFIC_JWT_LIFETIME is {text!r}; it must be a number of hours from 1 to {MAX_TOKEN_LIFETIME_HOURS}."
        )
    return int(text)


def parse_scopes(text: str) -> str:
    """The setting oidc_scopes. Raises BadInput."""
    scopes = text.split()
    if "openid" not in scopes:
        raise BadInput(f"TRAFFIC_OIDC_SCOPES is {text!r}; it must contain openid.")
    return " ".join(scopes)


def parse_session_hours(text: str) -> int:
    """The setting session_hours. Raises BadInput."""
    if not re.fullmatch("[1-8]", text):
        raise BadInput(f"TRAFFIC_SESSION_HOURS is {text!r}; it must be a number of hours from 1 to 8.")
    return int(text)


def parse_memory(text: str) -> str:
    """The setting memory. Raises BadInput."""
    if not re.fullmatch(r"[1-9]\d{0,5} ?[MG]i?B", text):
        raise BadInput(f"TRAFFIC_MEMORY is {text!r}; write it like 300MB or 4GB.")
    return text
