"""Lines for nginx and Caddy that carry out a job: they redirect or block its paths, block its agents or limit them.

Paths and agents are untrusted. Each is quoted for the server's syntax, or left out with a reason.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import orjson

from data import BadInput, Lake
from data.hosts import normalized_host
from data.links.links import Link
from data.links.redirect_maps import decoded_path, is_shortened, location_of, nginx_map, nginx_path, nginx_word
from data.rules.bots import agent_pattern
from data.rules.tables import Agent
from data.store.ip_list_files import intact_snapshots
from data.store.lake_tables import lake_tables
from service.jobs.records import Job
from service.jobs.redirects import ADD_REDIRECT
from service.jobs.texts import percent_encoded, sanitized

MAX_NETWORKS: Final = 2_000
"""Maximum number of networks per agent in a snippet."""
_MAX_WORD: Final = 4_000
"""Maximum size of a word in bytes; nginx rejects words in its configuration that are longer than 4,096."""
_NO_LIMIT: Final = "# Caddy cannot limit requests without a plugin: these lines block them instead."
_SEEN_ADDRESS: Final = "# Behind a proxy, first let the server read the client's address from the proxy's header."
_ESCAPED: Final = re.compile(r"\\(.)")
_OF_AGENTS: Final = ("limit_agent", "limit_flood", "block_agent")
_TRAINING: Final = ("training", "ai_data_provider")
_BROWSERS: Final = (
    "mozilla/5.0 (windows nt 10.0; win64; x64) (macintosh; intel mac os x 10_15_7) (x11; ubuntu; linux x86_64) "
    "(iphone; cpu iphone os 18_7 like mac os x) (linux; android 10; k) applewebkit/537.36 (khtml, like gecko) rv:145.0 "
    "gecko/20100101 firefox/145.0 samsungbrowser/29.0 version/26.1 chrome/143.0.0.0 mobile/15e148 safari/537.36 "
    "edg/143.0 opr/120.0"
)
"""Words in the user agents of people's browsers, in lower case; no rule may match them."""


class Snippet(NamedTuple):
    """Lines for one web server."""

    server: str  # nginx or Caddy
    text: str  # "": everything was left out
    left_out: Sequence[tuple[str, str]]  # path or agent, encoded and truncated, and the reason as a sentence


class _LinesOfOne(NamedTuple):
    """Lines for one path or agent: outside nginx's server blocks, and inside the domain's server or site block."""

    outside: Sequence[str]
    inside: Sequence[str]


_Rule = Callable[[str, str], _LinesOfOne]
"""Returns the lines for a path or an agent, given a unique name for their variables. Raises BadInput."""


def snippets_of(job: Job, lake: Lake, target: str) -> list[Snippet]:
    """Return lines for nginx and for Caddy that carry out a job; none if a web server alone cannot. Blocks its thread.

    Redirects go to `target`. Raises BadInput if the lake's own tables of agents cannot be read.
    """
    subjects = orjson.loads(job.subjects)
    paths = [one["path"] for one in subjects if one.get("path")]
    agents = [one["agent"] for one in subjects if one.get("agent")]
    rows = lake_tables(lake).agents() if job.action_id in _OF_AGENTS else []
    if job.action_id == "limit_agent":
        operators = {one.get("operator") for one in subjects}
        agents = sorted({one.agent for one in rows if one.operator in operators and one.agent_kind in _TRAINING})
    rules: dict[str, tuple[_Rule, _Rule]] = {
        ADD_REDIRECT: (lambda path, _: _nginx_redirect(path, target),
                       lambda path, name: _caddy_redirect(path, target, name)),
        "hide_path": (_nginx_block, _caddy_block),
        "limit_agent": (lambda agent, name: _nginx_limit(agent, rows, name),
                        lambda agent, name: _caddy_refusal(agent, rows, name)),
        "block_agent": (lambda agent, name: _nginx_impostor(agent, rows, name, _networks(agent, rows, lake)),
                        lambda agent, name: _caddy_impostor(agent, rows, name, _networks(agent, rows, lake))),
    }  # fmt: skip
    rules["limit_flood"] = rules["limit_agent"]
    if job.action_id not in rules:
        return []
    nginx, caddy = rules[job.action_id]
    named = agents if job.action_id in _OF_AGENTS else paths
    return [_snippet("nginx", named, nginx, job), _snippet("Caddy", named, caddy, job)]


def _snippet(server: str, subjects: Iterable[str], rule: _Rule, job: Job) -> Snippet:
    """Return the snippet for all subjects; `rule` returns the lines for each."""
    outside, inside, left_out = dict[str, None](), dict[str, None](), list[tuple[str, str]]()
    for number, subject in enumerate(subjects, 1):
        try:
            part = rule(subject, f"traffic_{job.id[-8:]}_{number}")
        except BadInput as error:
            left_out.append((str(sanitized(subject)), f"{error}."))
            continue
        outside |= dict.fromkeys(part.outside)
        inside |= dict.fromkeys(part.inside)
    lines = list[str]()
    if outside:
        lines += ["# Next to the server blocks:", *outside]
    if inside:
        host = job.domain if job.domain and normalized_host(job.domain) == job.domain else "the domain"
        lines += [f"# In the {'server' if server == 'nginx' else 'site'} block of {host}:", *inside]
    if inside and server == "Caddy" and job.action_id in {"limit_agent", "limit_flood"}:
        lines = [_NO_LIMIT, *lines]
    return Snippet(server, "".join(f"{line}\n" for line in lines), left_out)


def _nginx_redirect(path: str, target: str) -> _LinesOfOne:
    """Return a location that redirects. Raises BadInput."""
    _check_single(path)
    found = nginx_map([Link(percent_encoded(path)[1:], "", target, datetime.min)])
    if found.left_out:
        raise BadInput(found.left_out[0].reason)
    return _LinesOfOne([], found.text.splitlines()[1:])


def _caddy_redirect(path: str, target: str, name: str) -> _LinesOfOne:
    """Return a matcher for a path, and its redirect. Raises BadInput."""
    _check_single(path)
    word = _caddy_path(decoded_path(percent_encoded(path)))
    return _LinesOfOne([], [f"@{name} path_regexp {word}\nredir @{name} `{location_of(target)}` 302"])


def _nginx_block(path: str, _: str) -> _LinesOfOne:
    """Return a location that returns 404, for a path or for a hidden folder and its contents. Raises BadInput."""
    folder = _folder(path)
    word = nginx_path(folder or decoded_path(percent_encoded(path)))
    return _LinesOfOne([], [f"location {'^~' if folder else '='} {word} {{ return 404; }}"])


def _caddy_block(path: str, name: str) -> _LinesOfOne:
    """Return a matcher for a path or a hidden folder, and its 404. Raises BadInput."""
    folder = _folder(path)
    word = _caddy_path(folder, "") if folder else _caddy_path(decoded_path(percent_encoded(path)))
    return _LinesOfOne([], [f"@{name} path_regexp {word}\nrespond @{name} 404"])


def _nginx_limit(agent: str, rows: Sequence[Agent], name: str) -> _LinesOfOne:
    """Return a rate limit for an agent's requests, per address if its name is a whole user agent. Raises BadInput."""
    is_browser = _is_user_agent(agent, rows)
    patterns = [_exactly(agent)] if is_browser else _patterns(agent, rows)
    named = _nginx_names(patterns, name, '""', "$binary_remote_addr" if is_browser else "1")
    notes = [_SEEN_ADDRESS] if is_browser else []
    zone = f"limit_req_zone ${name} zone={name}:1m rate=60r/m;"
    return _LinesOfOne([*notes, named, zone], [f"limit_req zone={name} burst=20 nodelay;", "limit_req_status 429;"])


def _caddy_refusal(agent: str, rows: Sequence[Agent], name: str) -> _LinesOfOne:
    """Return a matcher for an agent, and its 403. Raises BadInput."""
    if _is_user_agent(agent, rows):
        raise BadInput("blocking a browser's user agent would also block people who use that browser")
    return _LinesOfOne([], [f"@{name} header_regexp User-Agent {_caddy_names(agent, rows)}\nrespond @{name} 403"])


def _nginx_impostor(agent: str, rows: Sequence[Agent], name: str, networks: Sequence[str]) -> _LinesOfOne:
    """Return lines that refuse requests with an agent's name from outside these networks. Raises BadInput."""
    own = "\n".join([f"geo ${name}_own {{", "    default 0;", *(f"    {one} 1;" for one in networks), "}"])
    named = _nginx_names(_patterns(agent, rows), f"{name}_name", "0", "1")
    both = f'map "${name}_name${name}_own" ${name} {{\n    default 0;\n    10 1;\n}}'
    return _LinesOfOne([_SEEN_ADDRESS, own, named, both], [f"if (${name}) {{ return 403; }}"])


def _caddy_impostor(agent: str, rows: Sequence[Agent], name: str, networks: Sequence[str]) -> _LinesOfOne:
    """Return lines that refuse requests with an agent's name from outside these networks. Raises BadInput."""
    named = f"\theader_regexp User-Agent {_caddy_names(agent, rows)}\n\tnot remote_ip {' '.join(networks)}"
    return _LinesOfOne([], [_SEEN_ADDRESS, f"@{name} {{\n{named}\n}}\nrespond @{name} 403"])


def _nginx_names(patterns: Iterable[str], name: str, default: str, value: str) -> str:
    """Return an nginx map that sets a variable for user agents that match a pattern. Raises BadInput."""
    words = [nginx_word(f"~*{pattern}") for pattern in patterns]
    if any(len(word.encode()) > _MAX_WORD for word in words):
        raise BadInput("its name is too long for nginx")
    lines = "".join(f"    {word} {value};\n" for word in words)
    return f"map $http_user_agent ${name} {{\n    default {default};\n{lines}}}"


def _caddy_names(agent: str, rows: Sequence[Agent]) -> str:
    """Return an agent's regular expression as a Caddyfile word. Raises BadInput."""
    return _caddy_word(f"(?i){'|'.join(_patterns(agent, rows))}")


def _caddy_word(pattern: str) -> str:
    """Return a pattern as a Caddyfile word. Escaped characters other than . / - _ become hexadecimal escapes, since
    Caddy interprets braces itself.
    """
    plain = {".": "\\.", "/": "/", "-": "-", "_": "_"}
    numbered = _ESCAPED.sub(lambda found: plain.get(found[1], rf"\x{ord(found[1]):02X}"), pattern)
    return f"`{numbered}`"


def _escaped(text: str) -> str:
    """Escape each space and ASCII punctuation character in a string with a backslash."""
    return re.sub(r"[!-/:-@[-`{-~ ]", r"\\\g<0>", text)


def _caddy_path(path: str, end: str = "$") -> str:
    """Return a Caddyfile word that matches a decoded path. Raises BadInput."""
    if is_shortened(path):
        raise BadInput("Caddy shortens paths with //, /./ or /../ before it compares them")
    return _caddy_word(f"^{_escaped(path)}{end}")


def _folder(path: str) -> str:
    """Return the hidden folder that a path such as /.git/* stands for; "" for a single path. Raises BadInput."""
    decoded = decoded_path(path)
    if decoded.endswith("/*") and decoded.split("/")[-2].startswith("."):
        return decoded[:-1]
    _check_single(path)
    return ""


def _check_single(path: str) -> None:
    """Check that a path is not a pattern. Raises BadInput."""
    if "*" in path:
        raise BadInput("it is a pattern for many paths; write a rule for each")


def _is_user_agent(agent: str, rows: Iterable[Agent]) -> bool:
    """Return whether an agent's name is a whole user agent, like a browser's."""
    return "/" in agent and agent not in {row.agent for row in rows}


def _exactly(text: str) -> str:
    """Return a pattern that matches only this string. Raises BadInput."""
    if not text.isprintable():
        raise BadInput("it contains characters that cannot be printed")
    return f"^{_escaped(text)}$"


def _patterns(agent: str, rows: Iterable[Agent]) -> list[str]:
    """Return the patterns that find an agent in user agents. Raises BadInput if people's user agents match, too, or if
    the agent is unknown or its name is not printable.
    """
    patterns = [agent_pattern(row.token, row.exact) for row in rows if row.agent == agent] or [agent_pattern(agent)]
    if not agent.isprintable():
        raise BadInput("it contains characters that cannot be printed")
    if agent == "unknown" or any(re.search(pattern, _BROWSERS) for pattern in patterns):
        raise BadInput("its name does not tell these requests from people's; find another way to recognize them")
    return patterns


def _networks(agent: str, rows: Sequence[Agent], lake: Lake) -> list[str]:
    """Return the networks that an agent's operator publishes, as strings. Raises BadInput if they are unknown, or more
    than MAX_NETWORKS.
    """
    verified = [row for row in rows if row.agent == agent and row.server_side]
    names = {method.removeprefix("ip:") for row in verified for method in row.verify if method.startswith("ip:")}
    lists = intact_snapshots(lake)
    if not names or not names <= lists.keys():
        raise BadInput("the addresses that its operator publishes are not in this lake")
    found = sorted({str(network) for name in names for network in lists[name].networks})
    if len(found) > MAX_NETWORKS:
        raise BadInput(f"its operator publishes {len(found):,} networks; a snippet has at most {MAX_NETWORKS:,}")
    return found
