"""Every setting of the project in one table: its environment variable, its default and what it is for.

The command line's flags and the README's table follow from it.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from data import SHORT_CODE_PATTERN, BadInput, is_organization

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

JWT_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
"""All there are to choose from. A secret that signs (HS256) would have to be shared: it is none of them."""
MAX_TOKEN_LIFETIME_HOURS: Final = 720
"""Hours of a token that nobody can revoke."""


class Setting(NamedTuple):
    """One setting; its environment variable is TRAFFIC_<NAME>."""

    name: str
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"TRAFFIC_{self.name.upper()}"


SETTINGS: Final = (
    Setting("lake", "data/lake", "folder that holds visits, manifest, links, keys and jobs"),
    Setting("host", "127.0.0.1", "address to serve on"),
    Setting("port", "8000", "port to serve on; 0 takes a free one"),
    Setting("monitor_port", "", "port of 127.0.0.1 for `/healthz` and `/metrics`, without token or limit; empty: none"),
    Setting("cors_origins", "", "origins whose pages may ask, separated by commas (`https://a.example`); empty: none"),
    Setting("base_path", "/", "path prefix that all routes share"),
    Setting(
        "trusted_proxies", "", "networks, separated by commas, whose X-Forwarded-For is believed (`10.0.0.0/8,::1`)"
    ),
    Setting("values", "", "file of what one visit of each kind is worth, like queries/traffic_values.toml"),
    Setting("memory", "300MB", "memory that queries may use before they spill to disk; big lakes want more"),
    Setting("retention_days", "", "days that visits are kept; empty: for ever"),
    Setting(
        "short_code_pattern", SHORT_CODE_PATTERN, "pattern (RE2) whose one group captures the short code in a path"
    ),
    Setting("geoip", "", "database of countries in MaxMind's format; empty: countries only where a log names them"),
    Setting("jwks", "", "key set of the identity provider, a file or an https address; empty: API keys only"),
    Setting("jwt_issuer", "", "`iss` that its tokens must carry"),
    Setting("jwt_audience", "", "`aud` that its tokens must carry"),
    Setting("jwt_algorithms", ",".join(JWT_ALGORITHMS), "signatures that they may have, separated by commas"),
    Setting("jwt_lifetime", "24", "hours from `iat` to `exp` that they may live at most"),
    Setting("jwt_organization_claim", "org_id", "claim that names the caller's organization"),
    Setting("jwt_role_claim", "role", "claim that names the caller's role; without it the caller is a viewer"),
    Setting("jwt_organization", "", "organization of tokens that carry no such claim; empty: they are refused"),
)
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """The setting of that name."""
    return _BY_NAME[name]


@dataclass(frozen=True)
class Settings:
    """The settings of one server, read and checked."""

    lake: Path
    host: str
    port: int
    monitor_port: int | None
    cors_origins: tuple[str, ...]
    base_path: str  # "" or "/prefix", without a final slash
    trusted_proxies: tuple[Network, ...]
    values: Path | None
    memory: str
    retention_days: int | None
    short_code_pattern: str
    geoip: Path | None
    jwks: str
    jwt_issuer: str
    jwt_audience: str
    jwt_algorithms: tuple[str, ...]
    jwt_lifetime: int  # hours
    jwt_organization_claim: str
    jwt_role_claim: str
    jwt_organization: str


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings in `environ`; an empty variable counts as unset. Raises BadInput naming the variable."""
    text = {known.name: environ.get(known.variable, "").strip() or known.default for known in SETTINGS}
    if text["jwks"] and not (text["jwt_issuer"] and text["jwt_audience"]):
        raise BadInput("TRAFFIC_JWKS needs TRAFFIC_JWT_ISSUER and TRAFFIC_JWT_AUDIENCE too.")
    if text["jwt_organization"] and not is_organization(text["jwt_organization"]):
        raise BadInput(f"TRAFFIC_JWT_ORGANIZATION: {text['jwt_organization']!r} cannot name an organization.")
    return Settings(
        lake=Path(text["lake"]),
        host=text["host"],
        port=_port("port", text["port"]),
        monitor_port=_port("monitor_port", text["monitor_port"]) if text["monitor_port"] else None,
        cors_origins=_origins(text["cors_origins"]),
        base_path=_base_path(text["base_path"]),
        trusted_proxies=parse_networks(text["trusted_proxies"]),
        values=Path(text["values"]) if text["values"] else None,
        memory=_memory(text["memory"]),
        retention_days=parse_retention_days(text["retention_days"]),
        short_code_pattern=_short_code_pattern(text["short_code_pattern"]),
        geoip=Path(text["geoip"]) if text["geoip"] else None,
        jwks=text["jwks"],
        jwt_issuer=text["jwt_issuer"],
        jwt_audience=text["jwt_audience"],
        jwt_algorithms=_algorithms(text["jwt_algorithms"]),
        jwt_lifetime=_lifetime(text["jwt_lifetime"]),
        jwt_organization_claim=text["jwt_organization_claim"],
        jwt_role_claim=text["jwt_role_claim"],
        jwt_organization=text["jwt_organization"],
    )


def _port(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise BadInput(f"{setting(name).variable} is {text!r}; it must be a number from 0 to 65535.")
    return int(text)


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in origins:
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d{1,5})?", origin):
            raise BadInput(f"TRAFFIC_CORS_ORIGINS: {origin!r} is no origin; write it like https://app.example.")
    return origins


def _algorithms(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in JWT_ALGORITHMS]
    if unknown or not names:
        problem = f"names {unknown[0]!r}" if unknown else "names nothing"
        raise BadInput(f"TRAFFIC_JWT_ALGORITHMS {problem}; there are {', '.join(JWT_ALGORITHMS)} and no others.")
    return names


def _lifetime(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII) or int(text) > MAX_TOKEN_LIFETIME_HOURS:
        raise BadInput(f"TRAFFIC_JWT_LIFETIME is {text!r}; it must be hours, from 1 to {MAX_TOKEN_LIFETIME_HOURS}.")
    return int(text)


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,5} ?[MG]i?B", text):
        raise BadInput(f"TRAFFIC_MEMORY is {text!r}; write it like 300MB or 4GB.")
    return text


def parse_retention_days(text: str) -> int | None:
    """The days that a text says visits are kept; None: for ever. Raises BadInput."""
    if not text:
        return None
    if not re.fullmatch(r"[1-9]\d{0,4}", text, re.ASCII):  # 0 may mean "keep nothing" or "keep all": it is neither
        raise BadInput(f"TRAFFIC_RETENTION_DAYS or --days is {text!r}; it must be a number from 1 to 99999.")
    return int(text)


def _short_code_pattern(text: str) -> str:
    if text == SHORT_CODE_PATTERN:
        return text
    from data.rules.patterns import check_short_code_pattern  # noqa: PLC0415  # few need it

    try:
        return check_short_code_pattern(text)
    except BadInput as error:
        raise BadInput(f"TRAFFIC_SHORT_CODE_PATTERN: {error}") from error


def _base_path(text: str) -> str:
    path = "/" + text.strip("/")
    if any(character in path for character in "?#{} ") or "//" in path:
        raise BadInput(f"TRAFFIC_BASE_PATH is {text!r}; it must be a plain path like /v1.")
    return path.rstrip("/")


def parse_networks(text: str) -> tuple[Network, ...]:
    """The trusted proxies that a text names. Raises BadInput."""
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise BadInput(f"TRAFFIC_TRUSTED_PROXIES: {error}; write networks like 10.0.0.0/8.") from error
