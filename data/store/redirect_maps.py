"""Redirects of short links for web servers: files that nginx and Caddy include."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from data.errors import BadInput
from data.hosts import normalized_host
from data.store.links import Link
from data.text import plural

_URL_CHARACTERS: Final = "!#$%&'()*+,/:;=?@[]~"
"""Characters that a URL contains unencoded, besides letters, digits and -._; all others are percent-encoded."""
_MAX_NGINX_WORD: Final = 4_000
"""Bytes; nginx refuses words of its configuration that are longer than 4,096."""
_DOLLAR: Final = "traffic_dollar"
"""The variable whose value is a dollar sign: nginx has no way to escape one."""


def links_on(links: Iterable[Link], domain: str) -> list[Link]:
    """The links that work on a domain: its own, and those for every domain whose short code it has no own link for.

    Without a domain, all links. Raises BadInput when some of them name one.
    """
    all_links = list(links)
    if not domain:
        if domains := sorted({link.domain for link in all_links} - {""}):
            raise BadInput(f"some links are for one domain only ({', '.join(domains[:5])}): choose one with --domain.")
        return all_links
    chosen = {link.short_code: link for link in all_links if not link.domain}
    chosen |= {link.short_code: link for link in all_links if link.domain == domain}
    return [chosen[short_code] for short_code in sorted(chosen)]


def nginx_map(links: Iterable[Link]) -> str:
    """Locations for a server block of nginx. Raises BadInput naming a link that nginx cannot be given.

    Locations, not a `map`: a map of nginx takes upper and lower case for the same.
    """
    targets = _targets_by_path(links)
    lines = [f"# Redirects of {plural(len(targets), 'short link')}. Include this file in a server block."]
    if any("$" in target for target in targets.values()):
        lines.append(f'# The http block needs this line, once: geo ${_DOLLAR} {{ default "$"; }}')
    for path, target in targets.items():
        words = _nginx_word(path), _nginx_word(target).replace("$", f"${{{_DOLLAR}}}")
        if max(len(word.encode()) for word in words) > _MAX_NGINX_WORD:
            raise BadInput(f"the link {path[1:]!r} is too long for nginx; shorten its target.")
        lines.append(f"location = {words[0]} {{ return 302 {words[1]}; }}")
    return "".join(f"{line}\n" for line in lines)


def caddy_map(links: Iterable[Link]) -> str:
    """Directives for a site of a Caddyfile. Raises BadInput naming a link that Caddy cannot be given."""
    targets = _targets_by_path(links)
    lines = ""
    for path, target in targets.items():
        if any(character in path for character in "{}`"):
            raise BadInput(f"the link {path[1:]!r}: a Caddyfile has no way to write {{, }} or ` here; rename it.")
        lines += f"\t`{path}` `{target}`\n"
    return (
        f"# Redirects of {plural(len(targets), 'short link')}. Import this file in a site block.\n"
        f'map {{path}} {{traffic_target}} {{\n{lines}\tdefault ""\n}}\n'
        '@traffic_link not vars {traffic_target} ""\n'
        "redir @traffic_link {traffic_target} 302\n"
    )


def _targets_by_path(links: Iterable[Link]) -> Mapping[str, str]:
    """The target for the Location header of each path, as a web server has it decoded. Raises BadInput."""
    targets: dict[str, str] = {}
    for link in links:
        try:
            path = f"/{unquote(link.short_code, errors='strict')}"
        except UnicodeDecodeError:
            raise BadInput(f"the link {link.short_code!r} is not UTF-8 when it is decoded; rename it.") from None
        if not path.isprintable():
            raise BadInput(f"the link {link.short_code!r} contains characters that cannot be printed; rename it.")
        if path in targets:
            raise BadInput(f"the link {link.short_code!r} is the same as another one when it is decoded; remove one.")
        name = f"the target of the link {link.short_code!r}"
        if any(character < " " or character in "\x7f\\" for character in link.target_url):
            raise BadInput(f"{name} contains a control character or a backslash, which browsers read differently.")
        try:
            parts = urlsplit(link.target_url)
            user, at, host = parts.netloc.rpartition("@")
            port = f":{parts.port}" if parts.port is not None else ""
        except ValueError as error:
            raise BadInput(f"{name} is not a valid URL: {error}.") from None
        name_of_host = normalized_host(host)
        if not name_of_host:
            raise BadInput(f"{name} has no valid host.")
        address = parts.netloc if host.isascii() else f"{user}{at}{name_of_host}{port}"
        targets[path] = quote(link.target_url.replace(parts.netloc, address, 1), safe=_URL_CHARACTERS)
    return targets


def _nginx_word(text: str) -> str:
    """A text as one word of nginx's configuration, in which backslashes and quotes are escaped by a backslash."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
