"""A log format as nginx's log_format describes it, turned into the regular expression (RE2) that reads such lines.

What the variables mean is in nginx.sql and the macros it uses.
"""

import re
from dataclasses import dataclass
from typing import Final

import re2

from data.errors import BadInput

VARIABLES: Final = (
    "time_iso8601", "time_local", "msec", "remote_addr", "http_x_forwarded_for", "request", "request_method",
    "request_uri", "uri", "args", "server_protocol", "status", "http_referer", "http_user_agent", "host", "http_host",
    "server_name", "http_cf_ipcountry", "geoip_country_code", "geoip2_data_country_code",
)  # fmt: skip
"""The variables that say something of a visit; the others are read over."""

_TIMES: Final = ("time_local", "time_iso8601", "msec")
_REQUESTS: Final = ("request", "request_uri", "uri")
_SHAPES: Final = {
    "time_local": r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "time_iso8601": r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d)",
    "msec": r"\d+(?:\.\d+)?",
}
"""What can be nothing else is said, so that a user named like a part of the line moves nothing."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


@dataclass(frozen=True)
class NginxLogFormat:
    """How the lines of a log look: a pattern with a group for each of `names`, in their order."""

    pattern: str
    names: tuple[str, ...]


def parse_nginx_log_format(text: str) -> NginxLogFormat:
    """A description such as `$remote_addr [$time_local] "$request" $status`, compiled.

    Raises BadInput when time or request are not in it, or when nothing stands between two variables.
    """
    text = text.replace("\\t", "\t")  # as nginx reads it
    pattern, names, end, before = "", [], 0, ""
    for found in _VARIABLE.finditer(text):
        name, literal = found[1] or found[2], text[end : found.start()]
        if before and not literal:
            raise BadInput(
                f"--log-format has ${before} and ${name} next to each other, so their boundary is ambiguous; "
                "add the text between them."
            )
        shape = _SHAPES.get(name, ".*?")
        is_new = name in VARIABLES and name not in names
        pattern += re2.escape(literal) + (f"({shape})" if is_new else f"(?:{shape})")
        names += [name] if is_new else []
        end, before = found.end(), name
    _require(names, _TIMES, "time")
    _require(names, _REQUESTS, "request")
    # Every variable has its group, one that the description does not name an empty one: a reader can name them all.
    absent = [name for name in VARIABLES if name not in names]
    return NginxLogFormat(f"^{pattern}{re2.escape(text[end:])}$" + "()" * len(absent), (*names, *absent))


def _require(names: list[str], wanted: tuple[str, ...], what: str) -> None:
    if not set(names) & set(wanted):
        *others, last = (f"${name}" for name in wanted)
        raise BadInput(f"--log-format has no {what}: add {', '.join(others)} or {last}.")
