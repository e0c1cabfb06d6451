"""Compiles an nginx log_format description into a regular expression (RE2) for its lines.

formats/nginx.sql and its macros in formats/fields.sql map the variables to the columns of a request.
"""

import re
from dataclasses import dataclass
from typing import Final

import re2

from data.errors import BadInput

VARIABLES: Final = (
    "time_iso8601", "time_local", "msec", "remote_addr", "http_x_forwarded_for", "proxy_add_x_forwarded_for",
    "http_forwarded", "http_x_real_ip", "http_cf_connecting_ip", "http_true_client_ip", "request", "request_method",
    "request_uri", "uri", "args", "server_protocol", "status", "http_referer", "http_user_agent", "host", "http_host",
    "server_name", "http_cf_ipcountry", "geoip_country_code", "geoip2_data_country_code", "body_bytes_sent",
    "bytes_sent", "scheme", "http_x_forwarded_proto", "http_sec_fetch_mode", "http_sec_fetch_dest", "http_sec_purpose",
    "http_purpose", "http_x_purpose", "http_x_moz", "http_x_firefox_ai", "http_accept_language",
    "http_signature_agent", "http_signature_input",
)  # fmt: skip
"""The variables that are used. Others are matched and ignored."""
VARIABLES_TYPE: Final = f"CREATE TYPE nginx_variables AS STRUCT({', '.join(f'{name} VARCHAR' for name in VARIABLES)});"
"""The type of a line's variables; those that are not logged are NULL."""

_REQUIRED: Final = {"time": ("time_local", "time_iso8601", "msec"), "request": ("request", "request_uri", "uri")}
"""What a log must hold, and the variables of which one says it."""
_SHAPES: Final = {
    "time_local": r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "time_iso8601": r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d)",
    "msec": r"\d+(?:\.\d+)?",
}
"""Exact patterns of variables with a fixed shape, so that no text in another field can be mistaken for them."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


@dataclass(frozen=True)
class NginxLogFormat:
    """A compiled log_format: an RE2 pattern with one group for each of `names`, in this order."""

    pattern: str
    names: tuple[str, ...]


def parse_nginx_log_format(text: str) -> NginxLogFormat:
    """Compile a description such as `$remote_addr [$time_local] "$request" $status`.

    Raises BadInput when it lacks the time or the request, or when two variables have no text between them.
    """
    text = text.replace("\\t", "\t")  # as nginx reads it
    pattern, names, end, before = "", [], 0, ""
    for match in _VARIABLE.finditer(text):
        name, literal = match[1] or match[2], text[end : match.start()]
        if before and not literal:
            raise BadInput(
                f"--log-format has ${before} and ${name} next to each other, so their boundary is ambiguous; "
                "add the text between them."
            )
        shape = _SHAPES.get(name, ".*?")
        is_new = name in VARIABLES and name not in names
        pattern += re2.escape(literal) + (f"({shape})" if is_new else f"(?:{shape})")
        names += [name] if is_new else []
        end, before = match.end(), name
    for what, wanted in _REQUIRED.items():
        if not set(names) & set(wanted):
            *others, last = (f"${name}" for name in wanted)
            raise BadInput(f"--log-format has no {what}: add {', '.join(others)} or {last}.")
    return NginxLogFormat(f"^{pattern}{re2.escape(text[end:])}$", tuple(names))
