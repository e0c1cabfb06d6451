"""Every setting of the project, declared once as a field of Settings, with its parser, its default and its meaning.

The environment variables, command-line flags, messages about values and the table in service/core/settings.md are
derived from these fields.
"""

# ruff: noqa: RUF009  # _row calls dataclasses.field

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from data import SHORT_CODE_PATTERN, BadInput
from data.buckets.target import parse_target
from service.core.mail_settings import SmtpServer, parse_recipients, parse_sender, parse_smtp
from service.core.setting_values import (
    JWT_ALGORITHMS,
    Network,
    PinnedFile,
    optional,
    parse_algorithms,
    parse_base_path,
    parse_engine,
    parse_memory,
    parse_networks,
    parse_organization,
    parse_origins,
    parse_pinned_file,
    parse_public_url,
    parse_roles,
    parse_scopes,
    parse_short_code_pattern,
    parse_switch,
    whole_number,
)

if TYPE_CHECKING:
    from queries import ClusterOptions

Value = TypeVar("Value")


def _row(
    parse: Callable[[str], Value],
    meaning: str,
    default: str = "",
    *,
    flag: str = "",
    needs: tuple[str, ...] = (),
    is_secret: bool = False,
) -> Value:
    """Return a field of Settings. `flag` is its command-line flag, if any; if the field is set, the settings in `needs`
    are required.
    """
    metadata = {"parse": parse, "meaning": meaning, "default": default, "flag": flag, "needs": needs}
    return field(default_factory=lambda: parse(default), repr=not is_secret, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """The validated settings of one server."""

    # fmt: off
    lake: Path = _row(Path, "folder for visits, manifest, links, API keys and jobs", "data/lake", flag="--lake")
    host: str = _row(str, "address that the server listens on; `::`: all IPv6 and IPv4", "127.0.0.1", flag="--host")
    port: int = _row(
        whole_number(0, 65_535), "port that the server listens on; 0: any free port", "8000", flag="--port")
    monitor_port: int | None = _row(
        optional(whole_number(0, 65_535)),
        "port on 127.0.0.1 for `/healthz` and `/metrics`, without authentication or rate limit; empty: none")
    cors_origins: tuple[str, ...] = _row(
        parse_origins,
        "origins of pages that may call the API (CORS), separated by commas (`https://a.example`); empty: none")
    base_path: str = _row(parse_base_path, "path prefix of all routes", "/", flag="--base-path")
    pages: bool = _row(parse_switch, "the web dashboard under `/app/`: on or off", "on")
    public_url: str = _row(
        parse_public_url, "origin at which browsers reach the server (`https://traffic.example`), for links and secure "
        "cookies; empty: derived from each request")
    trusted_proxies: tuple[Network, ...] = _row(
        parse_networks, "networks of proxies with a trusted X-Forwarded-For, for the server and in logs, separated by "
        "commas (`10.0.0.0/8,::1`); empty: none for the server, private and loopback addresses in logs",
        flag="--trusted-proxies")
    hook_networks: tuple[Network, ...] = _row(
        parse_networks, "your own networks that Agent Hooks may reach, even by plain http, separated by commas "
        "(`192.168.7.0/24`); empty: only public addresses, by https")
    values: Path | None = _row(
        optional(Path), "file with the value of a visit in each category, like queries/traffic_values.toml",
        flag="--values")
    memory: str = _row(
        parse_memory, "memory that queries may use before they spill to disk; increase it for large lakes", "300MB",
        flag="--memory")
    engine: str = _row(
        parse_engine, "Spark Connect cluster for queries that are too large for one machine (`sc://host:15002`)",
        flag="--engine", is_secret=True)
    engine_from: int = _row(
        whole_number(0), "minimum number of visits that an answer must read for the cluster to compute it", "50000000",
        flag="--engine-from")
    engine_timeout: int = _row(whole_number(1), "seconds after which a query on the cluster is stopped", "120")
    engine_lake: str = _row(
        str, "the lake's folder on the cluster's workers; empty: where it is published (`TRAFFIC_PUBLISH`), or "
        "at the same path as here", flag="--engine-lake")
    publish: str = _row(
        parse_target,
        "folder or bucket (`s3://bucket/prefix`) in which visits are published for other engines; empty: none",
        flag="--publish")
    retention_days: int | None = _row(
        optional(whole_number(1, 99_999)), "days after which visits are deleted; empty: never", flag="--days")
    short_code_pattern: str = _row(
        parse_short_code_pattern, "regular expression (RE2) with one group, which captures the short code in a path",
        SHORT_CODE_PATTERN, flag="--short-code-pattern")
    skip_assets: bool = _row(
        parse_switch, "whether import and follow leave out images, icons, stylesheets, scripts, source maps and fonts: "
        "on or off", "off", flag="--skip-assets")
    geoip: Path | None = _row(
        optional(Path), "country database in MaxMind's format; empty: the database set up by `traffic countries`",
        flag="--geoip")
    rules: PinnedFile | None = _row(
        optional(parse_pinned_file), "newer tables of agents and referrers, which `traffic agents refresh` fetches, as "
        "`https://host/rules.toml#sha256=…`; empty: the tables of this version")
    jwks: str = _row(
        str, "key set (JWKS) of the identity provider, a file or an https URL; empty: API keys only",
        needs=("jwt_issuer", "jwt_audience"))
    jwt_issuer: str = _row(str, "required `iss` of the provider's tokens")
    jwt_audience: str = _row(str, "required `aud` of the provider's tokens")
    jwt_algorithms: tuple[str, ...] = _row(
        parse_algorithms, "allowed signature algorithms, separated by commas", ",".join(JWT_ALGORITHMS))
    jwt_lifetime: int = _row(whole_number(1, 720), "maximum number of hours from `iat` to `exp`", "24")
    jwt_organization_claim: str = _row(str, "claim with the caller's organization", "org_id")
    jwt_role_claim: str = _row(str, "claim with the caller's role; without it the caller is a viewer", "role")
    jwt_writers: tuple[str, ...] = _row(
        parse_roles, "roles that may write, separated by commas; all others are viewers; empty: every role but viewer")
    jwt_organization: str = _row(
        parse_organization, "organization for tokens without an organization claim; empty: such tokens are rejected")
    oidc_client_id: str = _row(
        str, "client id for signing in at the identity provider; empty: disabled",
        needs=("jwks", "jwt_issuer", "public_url"))
    oidc_client_secret: str = _row(str, "secret of the OIDC client; empty: a public client", is_secret=True)
    oidc_scopes: str = _row(
        parse_scopes, "scopes to request from the provider, separated by spaces; must include `openid`",
        "openid profile")
    session_hours: int = _row(
        whole_number(1, 8), "hours, 1 to 8, after which a session ends and the user signs in again at the provider",
        "8")
    smtp: SmtpServer | None = _row(
        optional(parse_smtp), "mail server, as `smtp://host:25` or `smtps://user:password@host:465`; empty: no mail is "
        "sent", needs=("mail_from",))
    mail_to: Mapping[str, tuple[str, ...]] = _row(
        parse_recipients, "recipients of weekly reports: `acme=ops@acme.example,anna@acme.example; other=x@y.example`",
        needs=("smtp",))
    mail_from: str = _row(parse_sender, "sender of the weekly reports")
    # fmt: on


class Setting(NamedTuple):
    """A field of Settings, as declared by its row."""

    name: str
    parse: Callable[[str], Any]
    meaning: str
    default: str
    flag: str
    needs: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The environment variable of the setting."""
        return f"TRAFFIC_{self.name.upper()}"

    def read(self, text: str) -> Any:  # noqa: ANN401  # as the field of Settings
        """Parse a value. Raises BadInput with the name of the variable, and of the flag if there is one."""
        try:
            return self.parse(text)
        except BadInput as error:
            raise BadInput(f"{self.variable}{f' or {self.flag}' if self.flag else ''}: {error}") from error


SETTINGS: Final = tuple(Setting(one.name, **one.metadata) for one in fields(Settings))
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """Return the setting with this name."""
    return _BY_NAME[name]


def read_settings(environ: Mapping[str, str], **flags: str) -> Settings:
    """Read the settings from `flags`, by name, and otherwise from `environ`; an empty value means the default.

    Raises BadInput, with the name of the variable, if a value is invalid or a setting that another needs is missing.
    """
    texts = {one.name: flags.get(one.name, environ.get(one.variable, "")).strip() or one.default for one in SETTINGS}
    for one in SETTINGS:
        missing = ", ".join(setting(name).variable for name in one.needs if texts[one.name] and not texts[name])
        if missing:
            raise BadInput(f"{one.variable} needs {missing} too.")
    return Settings(**{one.name: one.read(texts[one.name]) for one in SETTINGS})


def cluster_options(settings: Settings) -> "ClusterOptions | None":
    """Return the cluster given by TRAFFIC_ENGINE and related settings; None if TRAFFIC_ENGINE is not set."""
    from queries import ClusterOptions  # noqa: PLC0415  # slow, and commands import this file

    if not settings.engine:
        return None
    lake = settings.engine_lake or settings.publish
    is_published = bool(lake) and lake == settings.publish
    return ClusterOptions(settings.engine, settings.engine_from, settings.engine_timeout, lake, is_published)
