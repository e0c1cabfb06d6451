"""Checks the rows of tables of rules: every field is there, is of its type, and holds what can be used."""

import ipaddress
import re
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from datetime import date
from typing import Final, TypeVar

from data.rules.patterns import compile_pattern
from data.visits import CATEGORY_OF_KIND, CONFIDENCE_SCORES, DEVICE_TYPES, REFERRER_TYPES

Row = TypeVar("Row")

_ALLOWED: Final[dict[str, Collection[str]]] = {
    "agent_kind": CATEGORY_OF_KIND,
    "confidence": CONFIDENCE_SCORES,
    "referrer_type": REFERRER_TYPES,
    "device_type": DEVICE_TYPES,
}
_VERIFICATION_METHOD: Final = re.compile(r"(ip|dns|signature):[a-z0-9.-]+")


def checked_row(row_type: type[Row], location: str, row: dict[str, object]) -> Row:
    """A row of a TOML file as its dataclass. Raises ValueError naming `location`, the field and why."""
    declared = {field.name: field for field in fields(row_type)}  # type: ignore[arg-type]  # always a dataclass
    for name in row.keys() - declared.keys():
        raise ValueError(f"{location}: unknown field {name!r}")
    for name, field in declared.items():
        if name not in row:
            if field.default is MISSING:
                raise ValueError(f"{location}: field {name!r} is missing")
        elif not _fits(field.type, row[name]) or (name == "verify" and not _are_verification_methods(row[name])):
            raise ValueError(f"{location}: field {name!r} has an invalid value: {row[name]!r}")
        elif name in _ALLOWED and row[name] not in _ALLOWED[name]:
            raise ValueError(f"{location}: field {name!r} is {row[name]!r}, not one of {', '.join(_ALLOWED[name])}")
        elif name in _CHECKS:
            try:
                _CHECKS[name](str(row[name]))
            except ValueError as error:
                raise ValueError(f"{location}: field {name!r} {error}") from error
    return row_type(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})


def _are_verification_methods(values: object) -> bool:
    return isinstance(values, list) and all(_VERIFICATION_METHOD.fullmatch(value) for value in values)


def _check_evidence(text: str) -> None:
    if not text.startswith(("https://", "http://")):
        raise ValueError("must be a web address that begins with https:// or http://")


def _check_pattern(text: str) -> None:
    try:
        compile_pattern(text)
    except ValueError as error:
        raise ValueError(f"is not a valid RE2 pattern: {error}") from error


def _check_format(text: str) -> None:
    if text not in ("prefixes", "text", "geofeed") and not re.fullmatch("json:.+", text):
        raise ValueError(f"is {text!r}, not one of prefixes, text, geofeed, json:<key>")


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"is not a valid network: {error}") from error


_CHECKS: Final[dict[str, Callable[[str], None]]] = {
    "evidence": _check_evidence,
    "format": _check_format,
    "network": _check_network,
    "path": _check_pattern,
    "pattern": _check_pattern,
    "unless": _check_pattern,
}
"""The validator of each field, by name; raises ValueError."""


def _fits(declared: object, value: object) -> bool:
    if declared in (date, bool, int):
        return type(value) is declared  # isinstance would accept a datetime as a date, and a bool as an int
    if declared == tuple[str, ...]:
        return isinstance(value, list) and all(isinstance(text, str) and text for text in value)
    return isinstance(value, str) and value != ""
