"""Every setting of the project in one table: its environment variable, its default and its meaning.

The flags of the command line and the table in service/README.md are generated from it.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from data import SHORT_CODE_PATTERN, BadInput, is_organization
from service.mail_settings import SmtpServer, parse_recipients, parse_sender, parse_smtp
from service.setting_values import (
    JWT_ALGORITHMS,
    parse_algorithms,
    parse_count,
    parse_engine,
    parse_lifetime,
    parse_memory,
    parse_scopes,
    parse_session_hours,
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ORIGIN: Final = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?", re.ASCII)


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
    Setting("lake", "data/lake", "folder of visits, manifest, links, API keys and jobs"),
    Setting("host", "127.0.0.1", "address that the server listens on"),
    Setting("port", "8000", "port that the server listens on; 0 takes a free one"),
    Setting(
        "monitor_port",
        "",
        "port on 127.0.0.1 for `/healthz` and `/metrics`, without authentication or rate limit; empty: none",
    ),
    Setting(
        "cors_origins",
        "",
        "origins whose pages may call the API (CORS), separated by commas (`https://a.example`); empty: none",
    ),
    Setting("base_path", "/", "path prefix of all routes"),
    Setting("pages", "on", "the web dashboard under `/app/`: on or off"),
    Setting(
        "public_url",
        "",
        "origin at which browsers reach the server (`https://traffic.example`), for links and secure cookies; "
        "empty: as each request says",
    ),
    Setting(
        "trusted_proxies",
        "",
        "networks of proxies whose X-Forwarded-For is trusted, separated by commas (`10.0.0.0/8,::1`)",
    ),
    Setting(
        "hook_networks",
        "",
        "networks of your own that Agent Hooks may reach, also by plain http, separated by commas (`192.168.7.0/24`); "
        "empty: public addresses by https only",
    ),
    Setting("values", "", "file with the value of one visit of each category, like queries/traffic_values.toml"),
    Setting("memory", "300MB", "memory that queries may use before they spill to disk; increase it for large lakes"),
    Setting("engine", "", "cluster for what is too much for one machine, by Spark Connect (`sc://host:15002`)"),
    Setting("engine_from", "50000000", "visits from which on the cluster answers, if an answer has to read that many"),
    Setting("engine_timeout", "120", "seconds after which an answer of the cluster is stopped"),
    Setting("engine_lake", "", "the lake's folder as the cluster's workers see it; empty: at the same path as here"),
    Setting("retention_days", "", "days after which visits are deleted; empty: never"),
    Setting(
        "short_code_pattern",
        SHORT_CODE_PATTERN,
        "regular expression (RE2) whose only group captures the short code in a path",
    ),
    Setting(
        "skip_assets",
        "",
        "`1`: import and follow leave out images, icons, styles, scripts, source maps and fonts; empty: they land",
    ),
    Setting("geoip", "", "country database in MaxMind's format; empty: only countries given in the log"),
    Setting("jwks", "", "key set (JWKS) of the identity provider, a file or an https URL; empty: API keys only"),
    Setting("jwt_issuer", "", "required `iss` of its tokens"),
    Setting("jwt_audience", "", "required `aud` of its tokens"),
    Setting("jwt_algorithms", ",".join(JWT_ALGORITHMS), "allowed signature algorithms, separated by commas"),
    Setting("jwt_lifetime", "24", "maximum hours from `iat` to `exp`"),
    Setting("jwt_organization_claim", "org_id", "claim with the caller's organization"),
    Setting("jwt_role_claim", "role", "claim with the caller's role; without it the caller is a viewer"),
    Setting("jwt_organization", "", "organization of tokens without that claim; empty: they are rejected"),
    Setting("oidc_client_id", "", "client id with which browsers sign in at the identity provider; empty: they cannot"),
    Setting("oidc_client_secret", "", "secret of that client; empty: a public client"),
    Setting("oidc_scopes", "openid profile", "scopes to ask the provider for, separated by spaces; `openid` is needed"),
    Setting("session_hours", "8", "hours, 1 to 8, after which a session of the provider ends and it is asked again"),
    Setting("smtp", "", "mail server, as `smtp://host:25` or `smtps://user:password@host:465`; empty: no mail is sent"),
    Setting("mail_to", "", "who gets weekly reports: `acme=ops@acme.example,anna@acme.example; other=x@y.example`"),
    Setting("mail_from", "", "sender of these mails"),
)
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """The setting of that name."""
    return _BY_NAME[name]


@dataclass(frozen=True)
class Settings:
    """The validated settings of one server."""

    lake: Path
    host: str
    port: int
    monitor_port: int | None
    cors_origins: tuple[str, ...]
    base_path: str  # "" or "/prefix", without a final slash
    pages: bool
    public_url: str  # "" or an origin
    trusted_proxies: tuple[Network, ...]
    hook_networks: tuple[Network, ...]
    values: Path | None
    memory: str
    engine: str = field(repr=False)  # "" or an address, which may hold a token
    engine_from: int
    engine_timeout: int  # seconds
    engine_lake: str
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
    oidc_client_id: str
    oidc_client_secret: str = field(repr=False)
    oidc_scopes: str  # separated by spaces
    session_hours: int
    smtp: SmtpServer | None
    mail_to: Mapping[str, tuple[str, ...]]  # addresses by organization
    mail_from: str


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings in `environ`; an empty variable counts as unset. Raises BadInput naming the variable."""
    text = {one.name: environ.get(one.variable, "").strip() or one.default for one in SETTINGS}
    if text["jwks"] and not (text["jwt_issuer"] and text["jwt_audience"]):
        raise BadInput("TRAFFIC_JWKS needs TRAFFIC_JWT_ISSUER and TRAFFIC_JWT_AUDIENCE too.")
    needed = ("jwks", "jwt_issuer", "public_url")
    if text["oidc_client_id"] and not all(text[name] for name in needed):
        missing = ", ".join(setting(name).variable for name in needed if not text[name])
        raise BadInput(f"TRAFFIC_OIDC_CLIENT_ID needs {missing} too.")
    if text["jwt_organization"] and not is_organization(text["jwt_organization"]):
        raise BadInput(f"TRAFFIC_JWT_ORGANIZATION: {text['jwt_organization']!r} is not a valid organization name.")
    if (text["mail_to"] and not text["smtp"]) or (text["smtp"] and not text["mail_from"]):
        raise BadInput("TRAFFIC_MAIL_TO needs TRAFFIC_SMTP, and TRAFFIC_SMTP needs TRAFFIC_MAIL_FROM.")
    return Settings(
        lake=Path(text["lake"]),
        host=text["host"],
        port=_port("TRAFFIC_PORT or --port", text["port"]),
        monitor_port=_port("TRAFFIC_MONITOR_PORT", text["monitor_port"]) if text["monitor_port"] else None,
        cors_origins=_origins(text["cors_origins"]),
        base_path=_base_path(text["base_path"]),
        pages=_pages(text["pages"]),
        public_url=_public_url(text["public_url"]),
        trusted_proxies=parse_networks(text["trusted_proxies"]),
        hook_networks=parse_networks(text["hook_networks"], "hook_networks"),
        values=Path(text["values"]) if text["values"] else None,
        memory=parse_memory(text["memory"]),
        engine=parse_engine(text["engine"]),
        engine_from=parse_count("engine_from", text["engine_from"], 0),
        engine_timeout=parse_count("engine_timeout", text["engine_timeout"], 1),
        engine_lake=text["engine_lake"],
        retention_days=parse_retention_days(text["retention_days"]),
        short_code_pattern=_short_code_pattern(text["short_code_pattern"]),
        geoip=Path(text["geoip"]) if text["geoip"] else None,
        jwks=text["jwks"],
        jwt_issuer=text["jwt_issuer"],
        jwt_audience=text["jwt_audience"],
        jwt_algorithms=parse_algorithms(text["jwt_algorithms"]),
        jwt_lifetime=parse_lifetime(text["jwt_lifetime"]),
        jwt_organization_claim=text["jwt_organization_claim"],
        jwt_role_claim=text["jwt_role_claim"],
        jwt_organization=text["jwt_organization"],
        oidc_client_id=text["oidc_client_id"],
        oidc_client_secret=text["oidc_client_secret"],
        oidc_scopes=parse_scopes(text["oidc_scopes"]),
        session_hours=parse_session_hours(text["session_hours"]),
        smtp=parse_smtp(text["smtp"]),
        mail_to=parse_recipients(text["mail_to"]),
        mail_from=parse_sender(text["mail_from"]),
    )


def _port(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise BadInput(f"{name} is {text!r}; it must be a number from 0 to 65535.")
    return int(text)


def _pages(text: str) -> bool:
    if text not in {"on", "off"}:
        raise BadInput(f"TRAFFIC_PAGES is {text!r}; it must be on or off.")
    return text == "on"


def _public_url(text: str) -> str:
    origin = text.rstrip("/")
    if origin and not is_origin(origin):
        raise BadInput(f"TRAFFIC_PUBLIC_URL is {text!r}; it must be an origin like https://traffic.example.")
    return origin


def is_origin(text: str) -> bool:
    """Whether text is the origin of web pages in lower case, such as https://app.example or http://127.0.0.1:8080."""
    return _ORIGIN.fullmatch(text) is not None


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in origins:
        if not is_origin(origin):
            raise BadInput(f"TRAFFIC_CORS_ORIGINS: {origin!r} is not an origin; write it like https://app.example.")
    return origins


def parse_retention_days(text: str) -> int | None:
    """Parse the setting retention_days; None if it is empty. Raises BadInput."""
    if not text:
        return None
    if not re.fullmatch(
        r"[1-9]\d{0,4}", text, re.ASCII
    ):  # 0 is ambiguous (keep nothing or everything), so it is invalid
        raise BadInput(f"TRAFFIC_RETENTION_DAYS or --days is {text!r}; it must be a number from 1 to 99999.")
    return int(text)


def _short_code_pattern(text: str) -> str:
    if text == SHORT_CODE_PATTERN:
        return text
    from data.rules.patterns import check_short_code_pattern  # noqa: PLC0415  # slow, and rarely needed

    try:
        return check_short_code_pattern(text)
    except BadInput as error:
        raise BadInput(f"TRAFFIC_SHORT_CODE_PATTERN: {error}") from error


def _base_path(text: str) -> str:
    path = "/" + text.strip("/")
    if any(character in path for character in "?#{} ") or "//" in path:
        raise BadInput(f"TRAFFIC_BASE_PATH or --base-path is {text!r}; it must be a plain path like /v1.")
    return path.rstrip("/")


def parse_networks(text: str, name: str = "trusted_proxies") -> tuple[Network, ...]:
    """Parse a setting with networks, separated by commas; `name` is the setting's. Raises BadInput."""
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise BadInput(f"{setting(name).variable}: {error}; write networks like 10.0.0.0/8.") from error
