"""Compiles the layout of a log's lines (nginx's log_format or Apache's LogFormat) into an RE2 pattern.

The macros in formats/fields.sql map nginx variables to the columns of a request. Apache directives get the name of the
nginx variable with the same value.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

import re2

from data.errors import BadInput

VARIABLES: Final = (
    "time_iso8601", "time_local", "msec", "remote_addr", "realip_remote_addr", "http_x_forwarded_for",
    "proxy_add_x_forwarded_for", "http_forwarded", "http_x_real_ip", "http_cf_connecting_ip", "http_true_client_ip",
    "request", "request_method", "request_uri", "uri", "args", "server_protocol", "status", "http_referer",
    "http_user_agent", "host", "http_host", "server_name", "http_cf_ipcountry", "geoip_country_code",
    "geoip2_data_country_code", "body_bytes_sent", "bytes_sent", "scheme", "https", "ssl_protocol",
    "http_x_forwarded_proto", "http_sec_fetch_mode", "http_sec_fetch_dest", "http_sec_fetch_site", "http_sec_purpose",
    "http_purpose", "http_x_purpose", "http_x_moz", "http_x_firefox_ai", "http_accept", "http_accept_language",
    "http_signature_agent", "http_signature_input",
)  # fmt: skip
"""The nginx variables that are used. Other variables are matched and ignored."""
VARIABLES_TYPE: Final = f"CREATE TYPE layout_variables AS STRUCT({', '.join(f'{name} VARCHAR' for name in VARIABLES)});"
"""The type of a line's variables; variables that are not logged are NULL."""

_ANY: Final = "(.*?)"
_QUOTED: Final = r"((?:[^\"\\]|\\.)*)"
"""Text between quotes, with any quotes inside it escaped."""
LOCAL: Final = r"(\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})"
ISO: Final = r"(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d))"
"""Patterns for times, each in a capturing group."""
_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_NGINX_SHAPES: Final = {"time_local": LOCAL, "time_iso8601": ISO, "msec": _NUMBER}
"""Patterns for variables with a fixed shape, so that no text in another field can be mistaken for them."""
_REQUIRED: Final = {"time": ("time_local", "time_iso8601", "msec"), "request": ("request", "request_uri", "uri")}
"""Values that a log must contain, and the variables that provide them."""

_APACHE: Final = {
    "h": ("remote_addr", _ANY), "a": ("remote_addr", _ANY), "{c}a": ("realip_remote_addr", _ANY),
    "t": ("time_local", rf"\[{LOCAL}\]"), "{%d/%b/%Y:%H:%M:%S %z}t": ("time_local", LOCAL),
    "{%Y-%m-%dT%H:%M:%S%z}t": ("time_iso8601", ISO), "{%FT%T%z}t": ("time_iso8601", ISO),
    "{sec}t": ("msec", _NUMBER), "{msec}t": ("msec", _NUMBER), "{usec}t": ("msec", _NUMBER),
    "r": ("request", _ANY), "m": ("request_method", _ANY), "U": ("uri", r"([^?]*?)"), "q": ("args", r"(?:\?(.*?))?"),
    "H": ("server_protocol", _ANY), "s": ("status", _ANY), "v": ("server_name", _ANY), "V": ("host", _ANY),
    "b": ("body_bytes_sent", _ANY), "B": ("body_bytes_sent", _ANY), "O": ("bytes_sent", _ANY),
    "{REQUEST_SCHEME}x": ("scheme", _ANY), "{HTTPS}x": ("https", _ANY), "{SSL_PROTOCOL}x": ("ssl_protocol", _ANY),
}  # fmt: skip
"""The nginx variable equivalent to each Apache directive, and its pattern; `%{Name}i` is `$http_name`.

Evidence: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats and mod_ssl.html#logformats
"""
_APACHE_REQUIRED: Final = {"time": ("%t", "%{%FT%T%z}t", "%{sec}t"), "request": ("%r", "%U")}
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_DIRECTIVE: Final = re.compile(r"%(!?\d+(?:,\d+)*)?[<>]?(\{[^}]*\})?(\^[A-Za-z]{2}|[A-Za-z%])")


@dataclass(frozen=True)
class LineLayout:
    """The layout of a log's lines: an RE2 pattern with one group for each of `names`, in this order."""

    server: str
    """nginx or apache: the name of the log's format."""
    pattern: str
    names: tuple[str, ...]


class _Piece(NamedTuple):
    """A variable in a layout, with the literal text before it."""

    before: str
    written: str
    name: str
    pattern: str


def parse_layout(text: str) -> LineLayout:
    r"""Compile a layout like `$remote_addr [$time_local] "$request" $status` (nginx) or `%h %t "%r" %>s` (Apache).

    Quotes may be written as `\"`, as in Apache's configuration. Raises BadInput if the layout lacks the time or the
    request, or if two variables have no text between them.
    """
    text = text.replace(r"\t", "\t").replace(r"\"", '"')  # as the servers read it
    is_apache = not _VARIABLE.search(text) and _DIRECTIVE.search(text) is not None
    pieces, rest = _pieces_of_apache(text) if is_apache else _pieces_of_nginx(text)
    pattern, names, last = "", list[str](), None
    for number, piece in enumerate(pieces, 1):
        shape, after = piece.pattern, pieces[number].before if number < len(pieces) else rest
        if last and not piece.before and shape == _ANY == last.pattern:
            raise BadInput(
                f"--log-format has {last.written} and {piece.written} next to each other, so their boundary is "
                "ambiguous; add the text that separates them."
            )
        if is_apache and shape == _ANY and piece.before.endswith('"') and after.startswith('"'):
            shape = _QUOTED
        is_new = piece.name in VARIABLES and piece.name not in names
        pattern += re2.escape(piece.before) + (shape if is_new else _without_group(shape))
        names += [piece.name] if is_new else []
        last = piece
    for what, wanted in _REQUIRED.items():
        if not set(names) & set(wanted):
            *others, best = _APACHE_REQUIRED[what] if is_apache else (f"${name}" for name in wanted)
            raise BadInput(f"--log-format has no {what}: add {', '.join(others)} or {best}.")
    return LineLayout("apache" if is_apache else "nginx", f"^{pattern}{re2.escape(rest)}$", tuple(names))


def _pieces_of_nginx(text: str) -> tuple[list[_Piece], str]:
    """Return the variables in a log_format, and the text after the last."""
    pieces, end = list[_Piece](), 0
    for match in _VARIABLE.finditer(text):
        name = match[1] or match[2]
        pieces.append(_Piece(text[end : match.start()], f"${name}", name, _NGINX_SHAPES.get(name, _ANY)))
        end = match.end()
    return pieces, text[end:]


def _pieces_of_apache(text: str) -> tuple[list[_Piece], str]:
    """Return the directives in a LogFormat, and the text after the last."""
    pieces, before, end = list[_Piece](), "", 0
    for match in _DIRECTIVE.finditer(text):
        before += text[end : match.start()]
        end = match.end()
        statuses, parameter, letter = match.groups()
        if letter == "%":
            before += "%"
            continue
        directive = re.sub(r"^\{(begin|end):", "{", parameter or "") + letter
        name, pattern = _APACHE.get(directive, ("", _ANY))
        if letter == "i" and parameter:
            name = f"http_{parameter[1:-1].lower().replace('-', '_')}"
        # a directive with a list of statuses logs a dash for other statuses, which would be read as an absent header
        pieces.append(_Piece(before, match[0], "" if statuses else name, pattern))
        before = ""
    return pieces, before + text[end:]


def _without_group(shape: str) -> str:
    """Return a pattern from _APACHE or _NGINX_SHAPES without its group, to match text and ignore it."""
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", shape, count=1)
